// Hand-written splitters for the pre-tokenizer patterns of well-known models: same matches as their regular
// expressions, at the speed of a scan. Invalid UTF-8 is split too: a stray byte is a character that is no letter,
// number, mark, symbol or space.
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
  deepseek_numbers,  // the three successive steps of DeepSeek-V3
  deepseek_cjk,
  deepseek_words,
  deepseek_v3,     // all three
  single_numbers,  // \p{N}: the first step of StarCoder, SmolLM and others; the second is GPT-2's pattern
  starcoder,       // both
};

// By the exact text of the regular expression.
std::optional<Pattern> known_pattern(std::string_view regex);

// Names for the command line: "gpt2", "llama3", "qwen2", "gpt4o", "deepseek_v3", "starcoder", in this order.
std::span<const std::string_view> pattern_names();
std::optional<Pattern> pattern_by_name(std::string_view name);

// The equivalent regular expressions, each applied to the pieces of the one before.
std::span<const std::string_view> pattern_regexes(Pattern pattern);

// Reports the matches and the gaps between them as pieces, in order. The pieces cover the text.
void split_pattern(Pattern pattern, std::string_view text, FunctionRef<void(size_t begin, size_t end)> piece);

// The last offset in (0, text.size()) where the text can be cut without changing any piece, whatever text follows; 0 if
// there is none.
size_t last_cut(Pattern pattern, std::string_view text);

}  // namespace qkv
