// qkv train --serve: a page that shows the training while it runs.
#pragma once

#include <string>
#include <vector>

#include "common/compute_options.h"

namespace qkv::app {

// `words`: the command line of the training, which runs in a process of its own; what it prints is printed. On a terminal
// the page stays until Ctrl-C; otherwise it ends with the training. Ends with the training's exit code.
void serve_training(const std::vector<std::string>& words, const std::string& run, const ComputeOptions& compute,
                    int port);

}  // namespace qkv::app
