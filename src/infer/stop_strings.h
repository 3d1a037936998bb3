// Ends a text where a stop string ends, and never shows a part of one. The first stop is the one that is complete
// first; of several that are complete at once, the longest. So it does not matter in which pieces the text comes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv {

class StopStrings {
 public:
  // At most 16 of 1 to 256 bytes each, in UTF-8; anything else is an Error.
  explicit StopStrings(std::vector<std::string> stops);

  struct Fed {
    std::string show;  // whole characters, and nothing that may turn out to be a stop string
    bool stopped = false;
    std::string which;  // the stop string; it is not shown
  };
  // After the stop nothing is shown any more.
  Fed feed(std::string_view text);

  // What was held back, when no more text follows.
  std::string finish();

 private:
  struct Stop {
    std::string text;
    std::vector<size_t> shorter;  // [n]: the longest proper suffix of the first n bytes that is a prefix, too
    size_t matched = 0;           // how many of its bytes the text ends with
  };
  const Stop* complete_with(char byte);

  std::vector<Stop> stops_;
  std::string held_;
  std::string which_;  // empty: not stopped
};

}  // namespace qkv
