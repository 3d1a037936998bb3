#include "text/tokenizer/models/byte_trie.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"

namespace qkv {
namespace {

// A node to build: the range of the sorted keys that share its prefix.
struct KeyRange {
  size_t begin, end, depth;
};

}  // namespace

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, int32_t>> keys) {
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  nodes_.push_back({});
  labels_.push_back(0);

  std::vector<KeyRange> ranges{{.begin = 0, .end = keys.size(), .depth = 0}};
  for (size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    longest_key_ = std::max(longest_key_, narrow<uint32_t>(depth, "length of a key"));
    while (begin < end && keys[begin].first.size() == depth) {
      QKV_ASSERT(keys[begin].second >= 0, "trie value ", keys[begin].second, " is negative");
      if (depth > 0) nodes_[node].value = keys[begin].second;
      ++begin;
    }
    nodes_[node].first = narrow<uint32_t>(nodes_.size(), "trie node");
    while (begin < end) {
      const char label = keys[begin].first[depth];
      size_t next = begin + 1;
      while (next < end && keys[next].first[depth] == label) ++next;
      nodes_.push_back({});
      labels_.push_back(static_cast<unsigned char>(label));
      ranges.push_back({.begin = begin, .end = next, .depth = depth + 1});
      ++nodes_[node].children;
      begin = next;
    }
  }
}

int32_t ByteTrie::find(std::string_view key) const {
  uint32_t node = kRoot;
  for (const char c : key) {
    node = step(node, static_cast<unsigned char>(c));
    if (node == kNone) return -1;
  }
  return nodes_[node].value;
}

ByteTrie::Match ByteTrie::longest(std::string_view text) const {
  Match best;
  uint32_t node = kRoot;
  for (uint32_t i = 0; i < text.size(); ++i) {
    node = step(node, static_cast<unsigned char>(text[i]));
    if (node == kNone) break;
    if (nodes_[node].value >= 0) best = {.length = i + 1, .value = nodes_[node].value};
  }
  return best;
}

}  // namespace qkv
