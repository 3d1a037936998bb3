// A small decoder of any weights with a tokenizer beside it, in a folder that is removed in the end.
#pragma once

#include <qkv/model.h>

#include <filesystem>

#include "api/inside.h"
#include "base/temp_folder.h"
#include "support/pass.h"

namespace qkv::test {

class SmallModel {
 public:
  explicit SmallModel(const char* golden = "llama", const char* tokenizer = "llama2") {
    namespace fs = std::filesystem;
    for (const char* file : {"config.json", "generation_config.json", "model.safetensors"}) {
      fs::copy_file(test::golden(golden) / file, folder_.path() / file);
    }
    if (tokenizer != nullptr) {
      fs::copy_file(test::golden("tokenizers") / tokenizer / "tokenizer.json", folder_.path() / "tokenizer.json");
    }
  }
  std::string path() const { return folder_.path().string(); }
  api::Model open(api::OpenOptions options = {}) const {
    options.threads = 1;
    return api::Model(path(), options);
  }

 private:
  TempFolder folder_;
};

}  // namespace qkv::test
