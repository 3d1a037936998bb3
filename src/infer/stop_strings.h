// Ends a text at a stop string and never shows a part of one. The stop string that is complete first counts; of several
// complete at once, the longest. So it does not matter how the text is split into pieces.
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
  // Shows nothing after the stop.
  Fed feed(std::string_view text);

  // The text held back, when no more follows.
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
