// Readers of the components of Hugging Face's tokenizer.json. An unknown component is an Error with its name and path.
#pragma once

#include <vector>

#include "text/tokenizer/files/json_node.h"
#include "text/tokenizer/models/bpe.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

NormalizerPtr read_normalizer(const JsonNode& node);

struct PreTokenizerReadOptions {
  bool raw_bytes = false;  // the model reads raw bytes: a final ByteLevel only splits
};
PreTokenizerPtr read_pre_tokenizer(const JsonNode& node, PreTokenizerReadOptions options);

// Whether the last step of the pre-tokenizer maps bytes to GPT-2's byte alphabet.
bool ends_in_byte_level(const JsonNode& pre_tokenizer);

// The model's vocabulary and merges, as text because a tree of them would be too large.
struct ModelLists {
  JsonText vocab;  // empty: none
  Bpe::Merges merges;
  bool has_merges = false;
  bool byte_letters = false;  // pieces are in GPT-2's byte alphabet
};

// An object of tokens and their ids.
Vocab read_vocab(JsonText list, const std::string& where);

// Gives the merges of a list: "left right", or ["left", "right"] if tokens may contain spaces.
void give_merges(JsonText list, const std::string& where, Bpe::TakeMerge take);

// A byte-level BPE with all 256 bytes and no word prefix or suffix is built to read raw bytes; then reads_bytes is set.
struct LoadedModel {
  TokenModelPtr model;
  bool reads_bytes = false;
};
LoadedModel read_model(const JsonNode& node, const ModelLists& lists);

DecoderPtr read_decoder(const JsonNode& node);
bool has_byte_fallback(const JsonNode& decoder);

void read_post_processor(const JsonNode& node, PostProcessor& post);
Truncation read_truncation(const JsonNode& node);
Padding read_padding(const JsonNode& node);

std::vector<AddedToken> read_added_tokens(JsonText list, const std::string& where, const Vocab& vocab);

// {"String": "..."} or {"Regex": "..."}.
Matcher read_pattern(const JsonNode& node);

// The component's "type"; and the Error for an unknown one, which lists the known ones.
std::string type_of(const JsonNode& node);
[[noreturn]] void unknown_type(const JsonNode& node, std::string_view kind, std::span<const std::string_view> known);

}  // namespace qkv
