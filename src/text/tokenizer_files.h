// Reading whole tokenizers: tokenizer.json and the older files. Each reader fills TokenizerParts.
#pragma once

#include <filesystem>
#include <string_view>

#include "text/tokenizer.h"

namespace qkv {

// tokenizer.json.
TokenizerParts parts_of_json(std::string_view json, std::string_view what);

// GPT-2's pair, vocab.json and merges.txt.
TokenizerParts parts_of_vocab_and_merges(const std::filesystem::path& vocab, const std::filesystem::path& merges);

// BERT's vocab.txt, one token a line. `lowercase` is do_lower_case of tokenizer_config.json.
TokenizerParts parts_of_vocab_txt(const std::filesystem::path& vocab, bool lowercase);

// The tokens with a role that tokenizer_config.json or special_tokens_map.json in the folder names.
void name_tokens(const std::filesystem::path& folder, TokenizerParts& parts);

}  // namespace qkv
