// The pre-tokenizer patterns of well-known models, written by hand: what their regular expressions match, at the speed
// of a scan. Text that is not UTF-8 is split too: a stray byte is a character that is neither letter, number, mark,
// symbol nor space.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/function_ref.h"

namespace qkv {

enum class Pattern : uint8_t {
  gpt2,
  llama3,
  qwen2,
  gpt4o,
  deepseek_numbers,  // the three steps of DeepSeek-V3, one after the other
  deepseek_cjk,
  deepseek_words,
  deepseek_v3,  // all three
};

// By the exact text of the regular expression.
std::optional<Pattern> known_pattern(std::string_view regex);

// By the value of tokenizer.ggml.pre in a GGUF file.
std::optional<Pattern> pattern_of_gguf_pre(std::string_view pre);

// "gpt2", "llama3", "qwen2", "gpt4o", "deepseek_v3": what a user may ask for, in this order.
std::span<const std::string_view> pattern_names();
std::optional<Pattern> pattern_by_name(std::string_view name);

// The regular expressions to run one after the other, each on the pieces of the one before.
std::span<const std::string_view> pattern_regexes(Pattern pattern);

// The matches in order; text between two matches is a piece of its own. The pieces cover the text.
void split_pattern(Pattern pattern, std::string_view text, FunctionRef<void(size_t begin, size_t end)> piece);

// The last place in (0, text.size()) where the text may be cut without changing a piece, whatever follows it; 0 if
// there is none.
size_t last_cut(Pattern pattern, std::string_view text);

}  // namespace qkv
