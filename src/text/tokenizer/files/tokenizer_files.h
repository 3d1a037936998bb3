// Readers of tokenizer files: tokenizer.json and the older formats. Each fills TokenizerParts.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/json.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

class Gguf;

// tokenizer.json.
TokenizerParts parts_of_json(std::string_view json, std::string_view what);

// GPT-2's pair, vocab.json and merges.txt.
TokenizerParts parts_of_vocab_and_merges(const std::filesystem::path& vocab, const std::filesystem::path& merges);

// BERT's vocab.txt, one token per line. `lowercase` is do_lower_case of tokenizer_config.json.
TokenizerParts parts_of_vocab_txt(const std::filesystem::path& vocab, bool lowercase);

// A vocabulary in a GGUF file.
TokenizerParts parts_of_gguf(const Gguf& file);

// tiktoken's ranks. The file does not contain its split pattern; it follows from the name (cl100k, o200k, ...) or size.
TokenizerParts parts_of_tiktoken(const std::filesystem::path& file);
bool is_tiktoken(std::string_view start);  // judged by the first line
bool is_tiktoken_file(const std::filesystem::path& file);

// Marian's source.spm or target.spm. Ids come from vocab.json in the same folder; decoding uses target.spm.
TokenizerParts parts_of_marian(const std::filesystem::path& spm);

// tokenizer_config.json or special_tokens_map.json, without added_tokens_decoder: it can be large, and tokenizer.json
// has the same tokens.
Json read_tokenizer_settings(const std::filesystem::path& file);

// Sets parts.named from tokenizer_config.json or special_tokens_map.json in the folder.
void read_named_tokens(const std::filesystem::path& folder, TokenizerParts& parts);

}  // namespace qkv
