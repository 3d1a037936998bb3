// The demo's first part: a model is trained in OUT/run, or its training continues, or it is there already.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/compute_options.h"

namespace qkv::app {

struct DemoOptions {
  std::string out, lang = "en";  // out: empty for a folder of the language
  ComputeOptions compute;
  bool json = false;
  std::optional<int> port;  // of the page; none: the usual one, on a terminal

  bool chinese() const { return lang == "zh"; }
  std::string folder() const { return !out.empty() ? out : chinese() ? "qkv-demo-zh" : "qkv-demo"; }
  std::filesystem::path run() const { return std::filesystem::path(folder()) / "run"; }
  std::filesystem::path page() const { return std::filesystem::path(folder()) / "demo.html"; }
  template <class Text>
  Text words(Text english, Text in_chinese) const {
    return chinese() ? in_chinese : english;
  }
};

// Whether a demo's run is in the folder, to be continued. An Error where something else is.
bool goes_on(const DemoOptions& options);
// Throws Interrupted where Ctrl-C stopped it.
void train_demo(const DemoOptions& options, bool resume);

}  // namespace qkv::app
