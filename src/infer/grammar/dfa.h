// A regular language over bytes as a deterministic automaton. State 0 is the start.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "infer/grammar/budget.h"

namespace qkv::grammar {

struct ByteEdge {
  uint8_t low = 0, high = 0;  // both included
  int32_t to = 0;
};

struct Dfa {
  struct State {
    std::vector<ByteEdge> edges = {};  // sorted, apart from one another
    bool accepts = false;
  };
  std::vector<State> states;

  bool empty() const { return states.empty(); }  // of a trimmed one: no text is accepted
  bool accepts(std::string_view text) const;
};

constexpr size_t kMostDfaStates = 100'000;

// -1 if there is no such edge.
inline int32_t edge_to(const std::vector<ByteEdge>& edges, uint8_t byte) {
  for (const ByteEdge& edge : edges) {
    if (byte <= edge.high) return byte >= edge.low ? edge.to : -1;
  }
  return -1;
}

// Keeps the states on the way from the start to an accepting one.
Dfa trimmed(const Dfa& dfa, Budget& budget);

// Trimmed.
Dfa intersection(const Dfa& a, const Dfa& b, Budget& budget);

// Exactly these texts.
Dfa one_of(const std::vector<std::string>& texts, Budget& budget);

// The automaton of a function: step(key, byte) is the next key, if there is one. Trimmed.
template <class Key, class Step, class Accepts>
Dfa explored(const Key& start, const Step& step, const Accepts& accepts, Budget& budget) {
  Dfa dfa;
  std::map<Key, int32_t> known;
  std::deque<Key> open;
  const auto state_of = [&](const Key& key) {
    const auto [at, is_new] = known.try_emplace(key, static_cast<int32_t>(known.size()));
    if (is_new) {
      QKV_CHECK(known.size() <= kMostDfaStates, "the automaton has more than ", kMostDfaStates, " states",
                Hint("simplify the pattern, or make its counts and bounds smaller"));
      open.push_back(key);
    }
    return at->second;
  };
  state_of(start);
  for (; !open.empty(); open.pop_front()) {
    Dfa::State state{.accepts = accepts(open.front())};
    constexpr size_t kExploreSteps = 64, kKeySteps = 16;  // of its 256 bytes, and to find a key
    budget.spend(kExploreSteps);
    for (int byte = 0; byte < 256; ++byte) {
      const std::optional<Key> next = step(open.front(), static_cast<uint8_t>(byte));
      if (!next) continue;
      budget.spend(kKeySteps);
      const int32_t to = state_of(*next);
      if (!state.edges.empty() && state.edges.back().to == to && state.edges.back().high + 1 == byte) {
        ++state.edges.back().high;
      } else {
        state.edges.push_back({static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), to});
      }
    }
    dfa.states.push_back(std::move(state));
  }
  return trimmed(dfa, budget);
}

}  // namespace qkv::grammar
