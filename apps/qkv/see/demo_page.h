// The page beside the demo: served to this machine alone from the start, with the built-in model, the training as it
// goes, and at the end the demo's own model.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "see/demo_training.h"
#include "server/server.h"

namespace qkv::app {

class DemoPage {
 public:
  // Prints its address, and opens it where there is a screen. Without a terminal there is a page only if a port was asked
  // for; one that cannot be served is a line, and the demo goes on.
  explicit DemoPage(const DemoOptions& options);
  DemoPage(const DemoPage&) = delete;
  DemoPage& operator=(const DemoPage&) = delete;
  ~DemoPage();

  void training();  // the run begins to learn
  void trained();   // and is a model now
  void stay();      // on a terminal: until Ctrl-C

 private:
  std::string address() const;

  const DemoOptions& options_;
  bool built_in_ = false;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace qkv::app
