// Words as token ids, in the order in which they were first seen.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

class WordList {
 public:
  int32_t add(std::string_view word) {
    return ids_.try_emplace(std::string(word), static_cast<int32_t>(ids_.size())).first->second;
  }
  // Words with spaces between them.
  std::vector<int32_t> add_all(std::string_view words) {
    std::vector<int32_t> all;
    for (size_t at = 0; at < words.size();) {
      const size_t end = std::min(words.find(' ', at), words.size());
      if (end > at) all.push_back(add(words.substr(at, end - at)));
      at = end + 1;
    }
    return all;
  }
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }

 private:
  std::map<std::string, int32_t, std::less<>> ids_;
};

}  // namespace qkv
