// The committed tokenizers, loaded or as JSON to be edited first.
#pragma once

#include <string>

#include "base/file.h"
#include "base/json.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::test {

inline std::string golden_tokenizer_text(const std::string& name) {
  return read_file(golden("tokenizers/" + name + "/tokenizer.json"), 1 << 24);
}

inline Json golden_tokenizer_json(const std::string& name) {
  return parse_json(golden_tokenizer_text(name), name);
}

inline Tokenizer golden_tokenizer(const std::string& name) {
  return Tokenizer::load(golden("tokenizers/" + name));
}

inline Tokenizer tokenizer_of(const Json& json) {
  return Tokenizer::from_json(json.dump(), "test.json");
}

// A minimal WordLevel tokenizer, to which tests add one component.
inline Json word_level_json(std::initializer_list<const char*> words) {
  Json vocab = Json::object();
  vocab["<unk>"] = 0;
  for (const char* word : words) vocab[word] = vocab.size();
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "<unk>"}}}};
}

}  // namespace qkv::test
