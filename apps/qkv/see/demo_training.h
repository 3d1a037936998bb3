// The demo's first part: a model is trained in OUT/run, or its training continues, or it is there already.
#pragma once

#include <filesystem>
#include <string>

#include "common/compute_options.h"

namespace qkv::app {

struct DemoOptions {
  std::string out = "qkv-demo", lang = "en";
  ComputeOptions compute;
  bool json = false;

  bool chinese() const { return lang == "zh"; }
  std::filesystem::path run() const { return std::filesystem::path(out) / "run"; }
  std::filesystem::path page() const { return std::filesystem::path(out) / "demo.html"; }
  template <class Text>
  Text words(Text english, Text in_chinese) const {
    return chinese() ? in_chinese : english;
  }
};

// Throws Interrupted where Ctrl-C stopped it.
void train_demo(const DemoOptions& options);

}  // namespace qkv::app
