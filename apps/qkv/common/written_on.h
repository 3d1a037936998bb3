// What a model writes on from a start, greedily, while a probe looks or edits.
#pragma once

#include <string>

#include "open/open_model.h"

namespace qkv::app {

struct WrittenOn {
  std::string prompt;          // of a model that translates, the source
  const TokenText& otherwise;  // without a prompt: the start of this text, up to where a character ends
  int64_t max_new = 24;
};
std::string prompt_of(const OpenModel& model, const WrittenOn& asked);  // as it is shown
std::string written_on(const OpenModel& model, const WrittenOn& asked, Probe* probe);

}  // namespace qkv::app
