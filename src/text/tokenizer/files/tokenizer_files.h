// Reading whole tokenizers: tokenizer.json and the older files. Each reader fills TokenizerParts.
#pragma once

#include <filesystem>
#include <string_view>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

class Gguf;

// tokenizer.json.
TokenizerParts parts_of_json(std::string_view json, std::string_view what);

// GPT-2's pair, vocab.json and merges.txt.
TokenizerParts parts_of_vocab_and_merges(const std::filesystem::path& vocab, const std::filesystem::path& merges);

// BERT's vocab.txt, one token a line. `lowercase` is do_lower_case of tokenizer_config.json.
TokenizerParts parts_of_vocab_txt(const std::filesystem::path& vocab, bool lowercase);

// A vocabulary in a GGUF file.
TokenizerParts parts_of_gguf(const Gguf& file);

// tiktoken's ranks. The file does not say how text is cut: its name does (cl100k, o200k, ...), or its size.
TokenizerParts parts_of_tiktoken(const std::filesystem::path& file);
bool is_tiktoken(std::string_view start);  // by the first line

// Marian's source.spm or target.spm, whose pieces get their ids from vocab.json beside it. Text is decoded by
// target.spm.
TokenizerParts parts_of_marian(const std::filesystem::path& spm);

// The tokens with a role that tokenizer_config.json or special_tokens_map.json in the folder names.
void name_tokens(const std::filesystem::path& folder, TokenizerParts& parts);

}  // namespace qkv
