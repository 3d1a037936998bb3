// How BPE vocabularies of GGUF files cut text: the names in tokenizer.ggml.pre. docs/gguf.md has the table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pipeline/pre_tokenizer.h"

namespace qkv {

struct GgufPre {
  std::string_view name;
  std::vector<std::string_view> steps;  // regular expressions, each applied to the pieces of the one before
  bool ignore_merges = false;           // a piece that is a token becomes it, whatever the merges say
  bool starts_with_bos = false;         // unless the file says otherwise
};

std::optional<GgufPre> find_gguf_pre(std::string_view name);
std::vector<std::string_view> gguf_pre_names();

PreTokenizerPtr gguf_pre_tokenizer(const GgufPre& pre, std::string_view what);

// The name for a tokenizer.json that cuts text by these steps; "" if there is none.
std::string_view gguf_pre_of(std::span<const std::string> steps, bool ignore_merges);

}  // namespace qkv
