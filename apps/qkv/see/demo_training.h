// The demo's first part: a model learns in OUT/run, or goes on, or is found there.
#pragma once

#include <filesystem>
#include <string>

namespace qkv::app {

struct DemoOptions {
  std::string out = "qkv-demo", lang = "en", json;
  int threads = 0;

  bool chinese() const { return lang == "zh"; }
  std::filesystem::path run() const { return std::filesystem::path(out) / "run"; }
  template <class Text>
  Text words(Text english, Text in_chinese) const {
    return chinese() ? in_chinese : english;
  }
};

// Throws Interrupted where Ctrl-C stopped it.
void train_demo(const DemoOptions& options);

}  // namespace qkv::app
