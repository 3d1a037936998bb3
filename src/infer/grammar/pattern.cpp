#include "infer/grammar/pattern.h"

#include <algorithm>
#include <array>
#include <utility>

#include "infer/grammar/pattern_tree.h"

namespace qkv::grammar {
namespace {

constexpr size_t kMostNfaStates = 20'000, kMostPatternStates = 10'000, kMostWork = 5'000'000;

// A nondeterministic automaton over bytes; ^ and $ are steps without a byte that are open only at the ends.
struct Nfa {
  enum class Step : uint8_t { always, at_start, at_end };
  struct State {
    std::vector<ByteEdge> edges = {};
    std::vector<std::pair<int32_t, Step>> also = {};
  };
  std::string_view at;
  Budget& budget;
  std::vector<State> states = {};

  int32_t add() {
    QKV_CHECK(states.size() < kMostNfaStates, at, ": the pattern needs more than ", kMostNfaStates, " states",
              Hint("make its repeats smaller"));
    states.emplace_back();
    return static_cast<int32_t>(states.size()) - 1;
  }
  void join(int32_t from, int32_t to, Step step = Step::always) {
    states[static_cast<size_t>(from)].also.emplace_back(to, step);
  }

  // Adds the node after `from` and returns where it ends.
  int32_t append(const PatternNode& node, int32_t from) {
    using Kind = PatternNode::Kind;
    budget.spend(1);
    switch (node.kind) {
      case Kind::sequence:
        for (const PatternNode& part : node.parts) from = append(part, from);
        return from;
      case Kind::either: {
        const int32_t end = add();
        for (const PatternNode& part : node.parts) {
          const int32_t begin = add();
          join(from, begin);
          join(append(part, begin), end);
        }
        return end;
      }
      case Kind::one_of: {
        const int32_t end = add();
        utf8_ranges(node.set, [&](const std::vector<ByteRange>& bytes) {
          budget.spend(2 * bytes.size());
          int32_t state = from;
          for (size_t i = 0; i < bytes.size(); ++i) {
            const int32_t next = i + 1 == bytes.size() ? end : add();
            states[static_cast<size_t>(state)].edges.push_back({bytes[i].low, bytes[i].high, next});
            state = next;
          }
        });
        return end;
      }
      case Kind::repeat: {
        for (size_t i = 0; i < node.least; ++i) from = append(node.parts[0], from);
        if (!node.most) {
          const int32_t loop = add();
          join(from, loop);
          join(append(node.parts[0], loop), loop);
          return loop;
        }
        const int32_t end = add();
        for (size_t i = node.least; i < *node.most; ++i) {
          join(from, end);
          const int32_t begin = add();
          join(from, begin);
          from = append(node.parts[0], begin);
        }
        join(from, end);
        return end;
      }
      case Kind::start:
      case Kind::end: {
        const int32_t end = add();
        join(from, end, node.kind == Kind::start ? Step::at_start : Step::at_end);
        return end;
      }
    }
    return from;
  }

  using Set = std::vector<int32_t>;  // sorted
  Set closed(Set set, bool at_start, bool at_end) {
    std::vector<bool> in(states.size());
    budget.spend(1 + states.size() / 512);
    for (const int32_t s : set) in[static_cast<size_t>(s)] = true;
    for (size_t i = 0; i < set.size(); ++i) {
      budget.spend(1 + states[static_cast<size_t>(set[i])].also.size());
      for (const auto& [to, step] : states[static_cast<size_t>(set[i])].also) {
        const bool open =
            step == Step::always || (step == Step::at_start && at_start) || (step == Step::at_end && at_end);
        if (!open || in[static_cast<size_t>(to)]) continue;
        in[static_cast<size_t>(to)] = true;
        set.push_back(to);
      }
    }
    std::sort(set.begin(), set.end());
    return set;
  }

  // The subset construction. `final` accepts.
  Dfa deterministic(int32_t start, int32_t final) {
    Dfa dfa;
    std::map<Set, int32_t> known;
    std::vector<const Set*> open;
    size_t work = 0;  // sizes of all sets together
    const auto state_of = [&](Set set) {
      work += set.size();
      const auto [place, is_new] = known.try_emplace(std::move(set), static_cast<int32_t>(known.size()));
      if (is_new) open.push_back(&place->first);
      QKV_CHECK(known.size() <= kMostPatternStates && work <= kMostWork, at, ": the pattern needs more than ",
                kMostPatternStates, " states",
                Hint("simplify it: a counted repeat after .* is what usually needs so many"));
      return place->second;
    };
    state_of(closed({start}, true, false));
    for (size_t n = 0; n < open.size(); ++n) {
      const Set set = *open[n];
      const Set ending = closed(set, n == 0, true);
      Dfa::State state{.accepts = std::binary_search(ending.begin(), ending.end(), final)};
      std::array<bool, 257> cut{};  // bytes at which an edge begins or has ended
      size_t edges = 0;
      for (const int32_t s : set) {
        for (const ByteEdge& edge : states[static_cast<size_t>(s)].edges) cut[edge.low] = cut[edge.high + 1U] = true;
        edges += states[static_cast<size_t>(s)].edges.size();
      }
      for (size_t low = 0; low < 256;) {
        size_t high = low + 1;
        while (high < 256 && !cut[high]) ++high;
        Set next;
        budget.spend(1 + (set.size() + edges) / 4);
        for (const int32_t s : set) {
          for (const ByteEdge& edge : states[static_cast<size_t>(s)].edges) {
            if (edge.low <= low && low <= edge.high) next.push_back(edge.to);
          }
        }
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
        if (!next.empty()) {
          const int32_t to = state_of(closed(std::move(next), false, false));
          state.edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high - 1), to});
        }
        low = high;
      }
      dfa.states.push_back(std::move(state));
    }
    return trimmed(dfa, budget);
  }
};

}  // namespace

Dfa pattern_matches(std::string_view pattern, std::string_view at, Budget& budget) {
  const PatternNode tree = parse_pattern(pattern, at, budget);
  const PatternNode anything{.kind = PatternNode::Kind::repeat,
                             .parts = {{.kind = PatternNode::Kind::one_of, .set = CodeSet{}.complement()}}};
  Nfa nfa{.at = at, .budget = budget};
  const int32_t start = nfa.add();
  const int32_t found = nfa.append(tree, nfa.append(anything, start));
  const int32_t end = nfa.append(anything, found);
  return nfa.deterministic(start, end);
}

std::string_view format_pattern(std::string_view format) {
// clang-format off
#define QKV_LEAP "(?:0[48]|[2468][048]|[13579][26])"
#define QKV_YEAR "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define QKV_DATE "(?:" QKV_YEAR "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))" \
                 "|(?:(?:[1-9][0-9]|0[1-9])" QKV_LEAP "|00" QKV_LEAP "|" QKV_LEAP "00)-02-29)"
#define QKV_CLOCK "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
#define QKV_TIME QKV_CLOCK ":[0-5][0-9](?:\\.[0-9]{1,6})?(?:Z|[+-]" QKV_CLOCK ")"
#define QKV_BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
  // clang-format on
  using Format = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Format, 6> kPatterns{{
      {"date", "^" QKV_DATE "$"},
      {"time", "^" QKV_TIME "$"},
      {"date-time", "^" QKV_DATE "T" QKV_TIME "$"},
      {"uuid", "^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"},
      {"ipv4", "^(?:" QKV_BYTE "\\.){3}" QKV_BYTE "$"},
      {"email",
       "^[A-Za-z0-9_%+-]{1,32}(?:\\.[A-Za-z0-9_%+-]{1,32})?@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?\\.){1,3}["
       "A-Za-z]{2,16}$"},
  }};
#undef QKV_LEAP
#undef QKV_YEAR
#undef QKV_DATE
#undef QKV_CLOCK
#undef QKV_TIME
#undef QKV_BYTE
  for (const auto& [name, pattern] : kPatterns) {
    if (name == format) return pattern;
  }
  return {};
}

}  // namespace qkv::grammar
