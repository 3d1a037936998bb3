#include "infer/grammar/dfa.h"

#include <algorithm>
#include <utility>

namespace qkv::grammar {
namespace {

constexpr size_t kDfaStateSteps = 8, kDfaPairSteps = 8;  // to allocate a state; to find a pair of states

}  // namespace

bool Dfa::accepts(std::string_view text) const {
  if (empty()) return false;
  int32_t state = 0;
  for (const char c : text) {
    state = edge_to(states[static_cast<size_t>(state)].edges, static_cast<uint8_t>(c));
    if (state < 0) return false;
  }
  return states[static_cast<size_t>(state)].accepts;
}

Dfa trimmed(const Dfa& dfa, Budget& budget) {
  const size_t count = dfa.states.size();
  std::vector<std::vector<int32_t>> from(count);
  std::vector<bool> reached(count), useful(count);
  std::vector<int32_t> open;
  if (count > 0) reached[0] = true, open.push_back(0);
  while (!open.empty()) {
    const int32_t state = open.back();
    open.pop_back();
    budget.spend(kDfaStateSteps + 4 * dfa.states[static_cast<size_t>(state)].edges.size());
    for (const ByteEdge& edge : dfa.states[static_cast<size_t>(state)].edges) {
      from[static_cast<size_t>(edge.to)].push_back(state);
      if (reached[static_cast<size_t>(edge.to)]) continue;
      reached[static_cast<size_t>(edge.to)] = true;
      open.push_back(edge.to);
    }
  }
  for (size_t s = 0; s < count; ++s) {
    if (reached[s] && dfa.states[s].accepts) useful[s] = true, open.push_back(static_cast<int32_t>(s));
  }
  while (!open.empty()) {
    const auto state = static_cast<size_t>(open.back());
    open.pop_back();
    for (const int32_t before : from[state]) {
      if (useful[static_cast<size_t>(before)]) continue;
      useful[static_cast<size_t>(before)] = true;
      open.push_back(before);
    }
  }
  if (count == 0 || !useful[0]) return {};
  std::vector<int32_t> number(count, -1);
  int32_t next = 0;
  for (size_t s = 0; s < count; ++s) {
    if (useful[s]) number[s] = next++;
  }
  Dfa out;
  for (size_t s = 0; s < count; ++s) {
    if (!useful[s]) continue;
    Dfa::State& state = out.states.emplace_back(Dfa::State{.accepts = dfa.states[s].accepts});
    for (ByteEdge edge : dfa.states[s].edges) {
      edge.to = number[static_cast<size_t>(edge.to)];
      if (edge.to >= 0) state.edges.push_back(edge);
    }
  }
  return out;
}

Dfa intersection(const Dfa& a, const Dfa& b, Budget& budget) {
  if (a.empty() || b.empty()) return {};
  using Pair = std::pair<int32_t, int32_t>;
  Dfa dfa;
  std::map<Pair, int32_t> known;
  std::deque<Pair> open;
  const auto state_of = [&](Pair pair) {
    const auto [at, is_new] = known.try_emplace(pair, static_cast<int32_t>(known.size()));
    if (is_new) {
      QKV_CHECK(known.size() <= kMostDfaStates, "the automaton has more than ", kMostDfaStates, " states",
                Hint("simplify the pattern, or make its counts and bounds smaller"));
      open.push_back(pair);
    }
    return at->second;
  };
  state_of({0, 0});
  for (; !open.empty(); open.pop_front()) {
    const Dfa::State &x = a.states[static_cast<size_t>(open.front().first)],
                     &y = b.states[static_cast<size_t>(open.front().second)];
    Dfa::State state{.accepts = x.accepts && y.accepts};
    budget.spend(kDfaStateSteps + kDfaPairSteps * (x.edges.size() + y.edges.size()));
    for (size_t i = 0, j = 0; i < x.edges.size() && j < y.edges.size();) {
      const uint8_t low = std::max(x.edges[i].low, y.edges[j].low), high = std::min(x.edges[i].high, y.edges[j].high);
      if (low <= high) state.edges.push_back({low, high, state_of({x.edges[i].to, y.edges[j].to})});
      x.edges[i].high < y.edges[j].high ? ++i : ++j;
    }
    dfa.states.push_back(std::move(state));
  }
  return trimmed(dfa, budget);
}

Dfa one_of(const std::vector<std::string>& texts, Budget& budget) {
  Dfa dfa;
  dfa.states.emplace_back();
  for (const std::string& text : texts) {
    int32_t at = 0;
    for (const char c : text) {
      const auto byte = static_cast<uint8_t>(c);
      budget.spend(1 + dfa.states[static_cast<size_t>(at)].edges.size() / 8);
      int32_t to = edge_to(dfa.states[static_cast<size_t>(at)].edges, byte);
      if (to < 0) {
        to = static_cast<int32_t>(dfa.states.size());
        std::vector<ByteEdge>& edges = dfa.states[static_cast<size_t>(at)].edges;
        const auto place = std::find_if(edges.begin(), edges.end(), [&](const ByteEdge& e) { return e.low > byte; });
        edges.insert(place, {byte, byte, to});
        dfa.states.emplace_back();
      }
      at = to;
    }
    dfa.states[static_cast<size_t>(at)].accepts = true;
  }
  return trimmed(dfa, budget);
}

}  // namespace qkv::grammar
