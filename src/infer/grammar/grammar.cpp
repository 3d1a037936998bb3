#include "infer/grammar/grammar.h"

#include <algorithm>
#include <utility>

#include "infer/grammar/json_string.h"

namespace qkv::grammar {
namespace {

constexpr int32_t kEndless = 1 << 20;
constexpr int kMostRoom = 128;

}  // namespace

int32_t GrammarBuilder::add_rule(Rule::Kind kind) {
  const auto rule = static_cast<int32_t>(rules_.size());
  rules_.push_back({.kind = kind});
  const int32_t start = add_state(rule);
  rules_.back().start = start;
  return rule;
}

void GrammarBuilder::name_properties(int32_t rule, std::vector<std::string> names) {
  rules_[static_cast<size_t>(rule)].names = std::move(names);
}

int32_t GrammarBuilder::add_state(int32_t rule) {
  QKV_CHECK(states_.size() < kMostStates, "the schema needs more than ", kMostStates, " states",
            Hint("make it smaller: fewer properties, shorter enums, smaller counts"));
  constexpr size_t kStateSteps = 16;  // to allocate one
  budget_.spend(kStateSteps);
  states_.push_back({.rule = rule});
  return static_cast<int32_t>(states_.size()) - 1;
}

void GrammarBuilder::edge(int32_t from, char byte, int32_t to) {
  const auto b = static_cast<uint8_t>(byte);
  std::vector<ByteEdge>& edges = at(from).edges;
  QKV_ASSERT(edge_to(edges, b) < 0, "state ", from, " has two edges for byte ", int{b});
  edges.insert(std::find_if(edges.begin(), edges.end(), [&](const ByteEdge& e) { return e.low > b; }), {b, b, to});
}

int32_t GrammarBuilder::text(int32_t from, std::string_view bytes) {
  for (const char c : bytes) {
    const int32_t next = add_state(at(from).rule);
    edge(from, c, next);
    from = next;
  }
  return from;
}

void GrammarBuilder::fill(int32_t rule, const Dfa& dfa) {
  std::vector<int32_t> number;
  for (size_t s = 0; s < dfa.states.size(); ++s) number.push_back(s == 0 ? start_of(rule) : add_state(rule));
  for (size_t s = 0; s < dfa.states.size(); ++s) {
    GrammarState& state = at(number[s]);
    budget_.spend(dfa.states[s].edges.size());
    state.accepts = dfa.states[s].accepts;
    for (ByteEdge e : dfa.states[s].edges) {
      e.to = number[static_cast<size_t>(e.to)];
      state.edges.push_back(e);
    }
  }
}

// Shortest ways to the end, as levels of nesting: repeated until nothing changes, as values may contain themselves.
void GrammarBuilder::find_needs() {
  for (GrammarState& state : states_) state.need = state.accepts ? 0 : kEndless;
  const auto entered = [&](const RuleCall& c) {
    const Rule& rule = rules_[static_cast<size_t>(c.rule)];
    return at(rule.start).need + (rule.nests() ? 1 : 0);
  };
  for (bool changed = true; changed;) {
    changed = false;
    budget_.spend(states_.size());
    for (size_t s = states_.size(); s-- > 0;) {
      GrammarState& state = states_[s];
      int32_t need = state.need;
      for (const ByteEdge& e : state.edges) need = std::min(need, at(e.to).need);
      for (const int32_t to : state.also) need = std::min(need, at(to).need);
      for (const RuleCall& c : state.calls) need = std::min(need, std::max(entered(c), at(c.back).need));
      changed = changed || need != state.need;
      state.need = need;
    }
  }
}

void GrammarBuilder::remove_endless() {
  const auto endless = [&](int32_t state) { return at(state).need >= kEndless; };
  for (GrammarState& state : states_) {
    std::erase_if(state.edges, [&](const ByteEdge& e) { return endless(e.to); });
    std::erase_if(state.also, [&](int32_t to) { return endless(to); });
    std::erase_if(state.calls, [&](const RuleCall& c) { return endless(start_of(c.rule)) || endless(c.back); });
  }
}

// A rule that calls itself before its first byte would be called for ever.
void GrammarBuilder::check_left_recursion() {
  enum Mark : char { unseen, open, done };
  std::vector<Mark> marks(states_.size(), unseen);
  std::vector<std::pair<int32_t, size_t>> path;  // a state and its next move
  for (const Rule& rule : rules_) {
    if (marks[static_cast<size_t>(rule.start)] != unseen) continue;
    path.emplace_back(rule.start, 0);
    marks[static_cast<size_t>(rule.start)] = open;
    while (!path.empty()) {
      auto& [s, move] = path.back();
      const GrammarState& state = states_[static_cast<size_t>(s)];
      // Behind a call of a rule that accepts the empty text (white space) it goes on without a byte too.
      std::vector<int32_t> next = state.also;
      budget_.spend(1 + state.also.size() + state.calls.size());
      for (const RuleCall& c : state.calls) {
        next.push_back(start_of(c.rule));
        if (states_[static_cast<size_t>(start_of(c.rule))].accepts) next.push_back(c.back);
      }
      if (move == next.size()) {
        marks[static_cast<size_t>(s)] = done;
        path.pop_back();
        continue;
      }
      const int32_t to = next[move++];
      QKV_CHECK(marks[static_cast<size_t>(to)] != open, "the schema refers to itself with nothing in between",
                Hint("a $ref may lead back to its own schema only inside properties or items"));
      if (marks[static_cast<size_t>(to)] == done) continue;
      marks[static_cast<size_t>(to)] = open;
      path.emplace_back(to, 0);
    }
  }
}

// The states after one character of plain text, whichever it is; `inside` is how much of it is read. False if some
// character has no way.
bool GrammarBuilder::find_targets(int32_t state, int32_t inside, std::vector<int32_t>& targets) {
  for (const ByteEdge& want : plain_text().states[static_cast<size_t>(inside)].edges) {
    int covered = 0;
    budget_.spend(1 + states_[static_cast<size_t>(state)].edges.size() / 4);
    for (const ByteEdge& have : states_[static_cast<size_t>(state)].edges) {
      const int low = std::max(want.low, have.low), high = std::min(want.high, have.high);
      if (low > high) continue;
      covered += high - low + 1;
      if (want.to != 0) {
        if (!find_targets(have.to, want.to, targets)) return false;
      } else if (std::find(targets.begin(), targets.end(), have.to) == targets.end()) {
        targets.push_back(have.to);
      }
    }
    if (covered != want.high - want.low + 1) return false;
  }
  return true;
}

void GrammarBuilder::find_room() {
  std::vector<std::vector<int32_t>> targets(states_.size());
  for (size_t s = 0; s < states_.size(); ++s) {
    if (!find_targets(static_cast<int32_t>(s), 0, targets[s])) targets[s].clear();
    states_[s].room = targets[s].empty() ? 0 : kMostRoom;
  }
  for (bool changed = true; changed;) {
    changed = false;
    budget_.spend(states_.size() / 2);
    for (size_t s = states_.size(); s-- > 0;) {
      int room = states_[s].room;
      for (const int32_t to : targets[s]) room = std::min(room, 1 + at(to).room);
      changed = changed || room != states_[s].room;
      states_[s].room = static_cast<uint8_t>(room);
    }
  }
}

GrammarPtr GrammarBuilder::build() {
  find_needs();
  const int32_t root = start_of(0);
  QKV_CHECK(at(root).need < kEndless, "no value satisfies the schema",
            Hint("its keywords contradict one another, or it requires values inside values without end"));
  remove_endless();
  check_left_recursion();
  find_room();
  auto grammar = std::make_shared<Grammar>();
  for (const GrammarState& state : states_) {
    if (state.need < kEndless) grammar->largest_need_ = std::max(grammar->largest_need_, state.need);
  }
  const int32_t levels = at(root).need + (rules_[0].nests() ? 1 : 0);
  QKV_CHECK(levels <= kMostNesting, "the smallest value of the schema has ", levels, " levels of nesting but at most ",
            kMostNesting, " are written", Hint("make it flatter"));
  grammar->states_ = std::move(states_);
  grammar->rules_ = std::move(rules_);
  return grammar;
}

}  // namespace qkv::grammar
