#include "infer/grammar/parse_state.h"

#include <algorithm>

namespace qkv::grammar {

// Equal ones come shortly after one another: both ways of a choice have the same caller.
int32_t ParseStore::caller(const Frame& frame) {
  constexpr size_t kRecent = 32;
  for (size_t i = callers_.size(), end = i > kRecent ? i - kRecent : 0; i-- > end;) {
    if (callers_[i] == frame) return static_cast<int32_t>(i);
  }
  callers_.push_back(frame);
  return static_cast<int32_t>(callers_.size()) - 1;
}

int32_t ParseStore::longer(int32_t text, uint8_t byte) {
  if (text == kUnknownMemory) return kUnknownMemory;
  if (texts_.size() > 1 && texts_.back().before == text && texts_.back().byte == byte) {
    return static_cast<int32_t>(texts_.size()) - 1;
  }
  texts_.push_back({text, texts_[static_cast<size_t>(text)].length + 1, byte});
  return static_cast<int32_t>(texts_.size()) - 1;
}

bool ParseStore::same_text(int32_t a, int32_t b) const {
  while (a != b) {
    const Text &x = texts_[static_cast<size_t>(a)], &y = texts_[static_cast<size_t>(b)];
    if (x.length != y.length || x.byte != y.byte) return false;
    a = x.before;
    b = y.before;
  }
  return true;
}

bool ParseStore::spells(int32_t text, std::string_view name) const {
  if (texts_[static_cast<size_t>(text)].length != static_cast<int32_t>(name.size())) return false;
  for (size_t i = name.size(); i-- > 0; text = texts_[static_cast<size_t>(text)].before) {
    if (texts_[static_cast<size_t>(text)].byte != static_cast<uint8_t>(name[i])) return false;
  }
  return true;
}

bool ParseStore::has_name(int32_t names, int32_t text) const {
  for (; names != 0; names = names_[static_cast<size_t>(names)].before) {
    if (same_text(names_[static_cast<size_t>(names)].text, text)) return true;
  }
  return false;
}

int32_t ParseStore::with_name(int32_t names, int32_t text) {
  names_.push_back({names, text});
  return static_cast<int32_t>(names_.size()) - 1;
}

void ParseStore::rewind(const Mark& mark) {
  callers_.resize(mark.callers);
  texts_.resize(mark.texts);
  names_.resize(mark.names);
}

// Entries refer to earlier ones: marked from the back, copied from the front.
void ParseStore::shrink(const Grammar& grammar, std::span<Frame> frames) {
  std::vector<int32_t> caller(callers_.size()), text(texts_.size()), name(names_.size());  // 1: kept; then its number
  const auto memory_of = [&](const Frame& frame) -> std::vector<int32_t>* {
    const Rule::Kind kind = grammar.rule(grammar.state(frame.state).rule).kind;
    return kind == Rule::Kind::object ? &name : kind == Rule::Kind::key ? &text : nullptr;
  };
  const auto keep = [&](const Frame& frame) {
    if (frame.up >= 0) caller[static_cast<size_t>(frame.up)] = 1;
    if (std::vector<int32_t>* memory = memory_of(frame)) (*memory)[static_cast<size_t>(frame.memory)] = 1;
  };
  for (const Frame& frame : frames) keep(frame);
  for (size_t i = callers_.size(); i-- > 0;) {
    if (caller[i] != 0) keep(callers_[i]);
  }
  text[0] = name[0] = 1;
  for (size_t i = names_.size(); i-- > 1;) {
    if (name[i] != 0) name[static_cast<size_t>(names_[i].before)] = text[static_cast<size_t>(names_[i].text)] = 1;
  }
  for (size_t i = texts_.size(); i-- > 1;) {
    if (text[i] != 0) text[static_cast<size_t>(texts_[i].before)] = 1;
  }
  const auto pack = [](auto& list, std::vector<int32_t>& number, auto renumber) {
    size_t count = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      if (number[i] == 0) continue;
      auto entry = list[i];
      renumber(entry);
      number[i] = static_cast<int32_t>(count);
      list[count++] = entry;
    }
    list.resize(count);
  };
  const auto renumbered = [&](Frame& frame) {
    if (frame.up >= 0) frame.up = caller[static_cast<size_t>(frame.up)];
    if (const std::vector<int32_t>* memory = memory_of(frame)) {
      frame.memory = (*memory)[static_cast<size_t>(frame.memory)];
    }
  };
  pack(texts_, text, [&](Text& t) { t.before = text[static_cast<size_t>(t.before)]; });
  pack(names_, name, [&](Names& n) { n = {name[static_cast<size_t>(n.before)], text[static_cast<size_t>(n.text)]}; });
  pack(callers_, caller, renumbered);
  for (Frame& frame : frames) renumbered(frame);
}

void Parser::start(ParseStore& store, Ways& ways) const {
  const Rule& root = grammar_.rule(grammar_.root());
  add(store, {.state = root.start, .up = kNoCaller, .memory = 0, .depth = root.nests() ? 1 : 0}, ways);
}

void Parser::step(ParseStore& store, std::span<const Frame> from, uint8_t byte, Ways& out) const {
  for (const Frame& frame : from) {
    const GrammarState& state = grammar_.state(frame.state);
    const int32_t to = edge_to(state.edges, byte);
    if (to < 0) continue;
    Frame next = frame;
    next.state = to;
    if (grammar_.rule(state.rule).kind == Rule::Kind::key) next.memory = store.longer(frame.memory, byte);
    add(store, next, out);
  }
}

void Parser::add(ParseStore& store, const Frame& frame, Ways& out) const {
  const GrammarState& state = grammar_.state(frame.state);
  if (frame.depth + state.need > kMostNesting || ++out.steps > kMaxSteps) return;
  if (!state.edges.empty() && out.frames.size() < kMostWays &&
      std::find(out.frames.begin(), out.frames.end(), frame) == out.frames.end()) {
    out.frames.push_back(frame);
  }
  if (!state.moves()) return;
  for (const int32_t to : state.also) {
    Frame next = frame;
    next.state = to;
    add(store, next, out);
  }
  for (const RuleCall& call : state.calls) add_call(store, frame, call, out);
  if (state.accepts) add_returned(store, frame, out);
}

void Parser::add_call(ParseStore& store, const Frame& frame, const RuleCall& call, Ways& out) const {
  const GrammarState& back = grammar_.state(call.back);
  if (frame.depth + back.need > kMostNesting) return;
  Frame caller = frame;
  caller.state = call.back;
  if (call.item >= 0) {
    if (frame.memory == kUnknownMemory) {
      out.needs_memory = true;
      return;
    }
    const int32_t bit = int32_t{1} << call.item;
    if ((frame.memory & bit) != 0) return;
    caller.memory |= bit;
  }
  const Rule& rule = grammar_.rule(call.rule);
  Frame inside{.state = rule.start, .up = frame.up, .memory = 0, .depth = frame.depth + (rule.nests() ? 1 : 0)};
  if (inside.depth + grammar_.state(inside.state).need > kMostNesting) return;
  if (!back.only_returns()) inside.up = store.caller(caller);
  add(store, inside, out);
}

void Parser::add_returned(ParseStore& store, const Frame& frame, Ways& out) const {
  if (frame.up == kNoCaller) {
    out.complete = true;
  } else if (frame.up == kUnknownCaller) {
    out.left = true;
  } else {
    Frame caller = store.caller(frame.up);
    if (grammar_.rule(grammar_.state(frame.state).rule).kind == Rule::Kind::key) {
      if (caller.memory == kUnknownMemory) {
        out.needs_memory = true;
        return;
      }
      const std::vector<std::string>& names = grammar_.rule(grammar_.state(caller.state).rule).names;
      const auto spelled = [&](const std::string& name) { return store.spells(frame.memory, name); };
      if (std::any_of(names.begin(), names.end(), spelled) || store.has_name(caller.memory, frame.memory)) return;
      caller.memory = store.with_name(caller.memory, frame.memory);
    }
    add(store, caller, out);
  }
}

}  // namespace qkv::grammar
