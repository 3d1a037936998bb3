// What is measured over many texts: once for each model, on the page's thread while nobody waits. Who asks is told how
// far it is.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "inspect/texts/reading.h"
#include "server/page/page_thread.h"
#include "text/chat/ordered_json.h"

namespace qkv::server {

class PageMeasurements {
 public:
  explicit PageMeasurements(PageThread& thread) : thread_(thread) {}

  // Its result; `finished` is to be called between passes.
  using Measure = std::function<OrderedJson(const Reader::Finished& finished)>;
  // {"state": "measuring", "done": 3}, {"state": "failed", "error": ...}, or {"state": "ready"} with the result in it.
  // Begun by the first question about `name`.
  OrderedJson ask(const std::string& name, Measure measure);

 private:
  struct Measurement {
    OrderedJson answer = {{"state", "measuring"}, {"done", 0}};
  };
  PageThread& thread_;
  std::map<std::string, Measurement> all_;
};

}  // namespace qkv::server
