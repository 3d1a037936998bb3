// The parts of Hugging Face's tokenizer.json, read one by one. An unknown component is an Error that names it and the
// place.
#pragma once

#include <vector>

#include "text/tokenizer/files/json_node.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

NormalizerPtr read_normalizer(const JsonNode& node);

struct PreTokenizerReading {
  bool raw_bytes = false;  // the model reads bytes: a ByteLevel at the end only cuts
};
PreTokenizerPtr read_pre_tokenizer(const JsonNode& node, PreTokenizerReading reading);

// Whether the last thing a pre-tokenizer does is to spell bytes in GPT-2's alphabet.
bool ends_in_byte_level(const JsonNode& pre_tokenizer);

// The model's vocabulary and merges, which are too many for a Json.
struct ModelLists {
  const JsonTape& vocab;
  const JsonTape& merges;  // empty: none
  bool spelled;            // pieces come spelled in GPT-2's alphabet
};

// A BPE over spelled bytes, all of them and without marks at a word's ends, is made to read the bytes themselves:
// reads_bytes says so.
struct ModelRead {
  TokenModelPtr model;
  bool reads_bytes = false;
};
ModelRead read_model(const JsonNode& node, const ModelLists& lists);

DecoderPtr read_decoder(const JsonNode& node);
bool has_byte_fallback(const JsonNode& decoder);

void read_post_processor(const JsonNode& node, PostProcessor& post);
Truncation read_truncation(const JsonNode& node);
Padding read_padding(const JsonNode& node);

std::vector<AddedToken> read_added_tokens(const JsonNode& list, const Vocab& vocab);

// {"String": "..."} or {"Regex": "..."}.
Matcher read_pattern(const JsonNode& node);

// The component's "type", and an Error that lists what is known.
std::string type_of(const JsonNode& node);
[[noreturn]] void unknown_type(const JsonNode& node, std::string_view kind, std::span<const std::string_view> known);

}  // namespace qkv
