// Small models of any weights with a tokenizer beside them, in a folder that is removed in the end.
#pragma once

#include <qkv/model.h>

#include <filesystem>

#include "api/inside.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_folder.h"
#include "model/checkpoint/convert.h"
#include "model/initialise.h"
#include "open/convert_tokenizer.h"
#include "support/pass.h"

namespace qkv::test {

enum class Small { decoder, encoder, translator };

class SmallModel {
 public:
  explicit SmallModel(Small kind = Small::decoder) {
    const char* tokenizer = kind == Small::decoder ? "qwen2" : kind == Small::encoder ? "wordpiece" : "unigram";
    ThreadPool pool(1);
    write_new_model(path(), config_of(kind), {.seed = 4}, pool);
    std::filesystem::copy_file(golden("tokenizers") / tokenizer / "tokenizer.json",
                               folder_.path() / "model" / "tokenizer.json");
  }
  std::string path() const { return (folder_.path() / "model").string(); }
  std::filesystem::path beside(const char* name) const { return folder_.path() / name; }
  // The same in bf16, as most models are.
  std::string bf16_path() const {
    const std::filesystem::path to = folder_.path() / "bf16";
    if (!std::filesystem::exists(to)) {
      convert_model(path(), to, with_tokenizer({.to = ConvertOptions::To::hugging_face, .dtype = "BF16"}));
    }
    return to.string();
  }
  v1::Model open(v1::OpenOptions options = {}) const {
    options.threads = 1;
    return v1::Model(path(), options);
  }

 private:
  static Json config_of(Small kind) {
    if (kind == Small::decoder) {
      return {{"model_type", "llama"},    {"vocab_size", 608},      {"hidden_size", 32},
              {"intermediate_size", 64},  {"num_hidden_layers", 2}, {"num_attention_heads", 4},
              {"num_key_value_heads", 2}, {"rms_norm_eps", 1e-5},   {"max_position_embeddings", 512},
              {"bos_token_id", 0},        {"eos_token_id", 470},    {"tie_word_embeddings", false}};
    }
    const char* name = kind == Small::encoder ? "bert" : "t5";
    Json config = parse_json(read_file(golden(name) / "config.json", 1 << 20), name);
    config["vocab_size"] = kind == Small::encoder ? 608 : 124;
    return config;
  }
  TempFolder folder_;
};

inline v1::Model open_golden(const char* name, v1::OpenOptions options = {}) {
  options.threads = 1;
  return v1::Model(golden(name).string(), options);
}

}  // namespace qkv::test
