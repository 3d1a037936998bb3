#include "text/tokenizer/models/byte_trie.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"

namespace qkv {
namespace {

// A node to build: the range of the sorted keys that share its prefix.
struct KeyRange {
  uint32_t begin, end, depth, node;
};

size_t common_bytes(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

ByteTrie::ByteTrie(const std::vector<Key>& keys) : ByteTrie(keys.size(), [&](size_t i) { return keys[i]; }) {}

ByteTrie::ByteTrie(size_t keys, FunctionRef<Key(size_t index)> key) {
  const auto text = [&](uint32_t i) { return key(i).first; };
  std::vector<uint32_t> order(narrow<uint32_t>(keys, "number of trie keys"));
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int less = text(a).compare(text(b));
    return less != 0 ? less < 0 : a < b;
  });
  const auto last =
      std::unique(order.rbegin(), order.rend(), [&](uint32_t a, uint32_t b) { return text(a) == text(b); });
  order.erase(order.begin(), last.base());

  // A key has nodes up to the byte that tells it from its neighbours; those it shares with the key before exist.
  size_t nodes = 1, tails = 0, before = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string_view own = text(order[i]);
    const size_t after = i + 1 < order.size() ? common_bytes(own, text(order[i + 1])) : 0;
    const size_t told = std::min(own.size(), std::max(before, after) + 1);
    nodes += told - std::min(told, before);
    tails += own.size() - told;
    before = after;
  }
  narrow<uint32_t>(std::max(nodes, tails), "size of a trie");
  nodes_.reserve(nodes);
  labels_.reserve(nodes);
  tails_.reserve(tails);
  nodes_.push_back({});
  labels_.push_back(0);

  // Only nodes with children wait in the queue: most are leaves.
  std::deque<KeyRange> ranges;
  const auto settle = [&](const KeyRange& range) {
    const Key own = key(order[range.begin]);
    QKV_ASSERT(own.second >= 0, "trie value ", own.second, " is negative");
    if (range.end - range.begin > 1) return ranges.push_back(range);
    const std::string_view rest = own.first.substr(range.depth);
    if (rest.empty()) {
      nodes_[range.node].value = own.second;
    } else {
      nodes_[range.node] = {static_cast<uint32_t>(tails_.size()), kTail | static_cast<uint32_t>(rest.size()),
                            own.second};
      tails_ += rest;
    }
  };
  if (!order.empty()) ranges.push_back({.begin = 0, .end = static_cast<uint32_t>(order.size()), .depth = 0, .node = 0});
  while (!ranges.empty()) {
    auto [begin, end, depth, node] = ranges.front();
    ranges.pop_front();
    if (const Key first = key(order[begin]); first.first.size() == depth) {
      if (depth > 0) nodes_[node].value = first.second;
      ++begin;
    }
    nodes_[node].first = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char label = text(order[begin])[depth];
      uint32_t next = begin + 1;
      while (next < end && text(order[next])[depth] == label) ++next;
      nodes_.push_back({});
      labels_.push_back(static_cast<unsigned char>(label));
      ++nodes_[node].children;
      settle({.begin = begin, .end = next, .depth = depth + 1, .node = static_cast<uint32_t>(nodes_.size() - 1)});
      begin = next;
    }
  }
}

int32_t ByteTrie::find(std::string_view key) const {
  Place at;
  for (const char c : key) {
    if (!step(at, static_cast<unsigned char>(c))) return -1;
  }
  return value(at);
}

ByteTrie::Match ByteTrie::longest(std::string_view text) const {
  Match best;
  Place at;
  for (uint32_t i = 0; i < text.size() && step(at, static_cast<unsigned char>(text[i])); ++i) {
    if (const int32_t found = value(at); found >= 0) best = {.length = i + 1, .value = found};
  }
  return best;
}

}  // namespace qkv
