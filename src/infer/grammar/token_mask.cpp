#include "infer/grammar/token_mask.h"

#include <algorithm>

namespace qkv::grammar {

size_t TokenMasks::OfState::bytes() const {
  return sizeof(OfState) + many.size() / 8 + (few.size() + leaves.size() + restarts.size()) * sizeof(int32_t);
}

TokenMasks::TokenMasks(GrammarPtr grammar, TokenTriePtr trie)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      parser_(*grammar_),
      kept_(static_cast<size_t>(grammar_->size())) {}

// on_node(node, ways after it) returns whether to go on below it; on_subtree(node): all below are allowed.
template <class OnNode, class OnSubtree>
size_t TokenMasks::walk(ParseStore& store, const Ways& ways, NodeRange range, OnNode on_node,
                        OnSubtree on_subtree) const {
  struct Level {
    Ways ways;
    ParseStore::Mark mark;
  };
  const std::vector<TokenTrie::Node>& nodes = trie_->nodes();
  const ParseStore::Mark before = store.mark();
  if (range.begin >= range.end) return 0;
  size_t steps = 0;
  const size_t top = nodes[static_cast<size_t>(range.begin)].depth;  // the depth of the uppermost nodes
  std::vector<Level> levels(1);
  levels[0].mark = before;
  for (int32_t n = range.begin; n < range.end && steps <= kMaxSteps;) {
    const TokenTrie::Node& node = nodes[static_cast<size_t>(n)];
    const size_t level = node.depth - top;
    const Ways& above = level == 0 ? ways : levels[level - 1].ways;
    if (node.plain) {
      const auto roomy = [&](const Frame& f) { return grammar_->state(f.state).room >= node.characters; };
      if (std::any_of(above.frames.begin(), above.frames.end(), roomy)) {
        on_subtree(n);
        n = node.end;
        continue;
      }
    }
    if (levels.size() <= level) levels.resize(level + 1);
    Level& here = levels[level];
    store.rewind(level == 0 ? before : levels[level - 1].mark);
    here.ways.clear();
    parser_.step(store, level == 0 ? std::span<const Frame>(ways.frames) : levels[level - 1].ways.frames, node.byte,
                 here.ways);
    here.mark = store.mark();
    steps += 1 + here.ways.steps;
    const bool below = on_node(n, here.ways) && !here.ways.frames.empty();
    n = below ? n + 1 : node.end;
  }
  store.rewind(before);
  return steps;
}

TokenMasks::OfStatePtr TokenMasks::computed(int32_t state) const {
  constexpr int32_t kFarFromTheLimit = -1'000'000;
  auto made = std::make_shared<OfState>();
  std::vector<int32_t> tokens;
  ParseStore store;
  Ways ways;
  ways.frames.push_back({.state = state, .up = kUnknownCaller, .memory = kUnknownMemory, .depth = kFarFromTheLimit});
  made->steps = walk(
      store, ways, all_nodes(),
      [&](int32_t n, const Ways& after) {
        if (after.needs_memory) {
          made->restarts.push_back(n);
          return false;
        }
        if (after.left) made->leaves.push_back(n);
        if (!after.frames.empty()) {
          const auto here = trie_->tokens_at(n);
          tokens.insert(tokens.end(), here.begin(), here.end());
        }
        return true;
      },
      [&](int32_t n) {
        const auto below = trie_->tokens_below(n);
        tokens.insert(tokens.end(), below.begin(), below.end());
      });
  if (tokens.size() * 64 > trie_->vocabulary()) {
    made->many = TokenSet(trie_->vocabulary());
    for (const int32_t id : tokens) made->many.add(id);
  } else {
    made->few = std::move(tokens);
  }
  return made;
}

TokenMasks::OfStatePtr TokenMasks::of_state(int32_t state) const {
  constexpr size_t kMostBytes = size_t{64} << 20;
  const auto s = static_cast<size_t>(state);
  {
    const std::lock_guard lock(mutex_);
    if (kept_[s]) return kept_[s];
  }
  OfStatePtr made = computed(state);
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ > kMostBytes) {
    std::fill(kept_.begin(), kept_.end(), nullptr);
    kept_bytes_ = 0;
  }
  kept_[s] = made;
  kept_bytes_ += made->bytes();
  return made;
}

size_t TokenMasks::add_between(ParseStore& store, const Ways& ways, NodeRange nodes, TokenSet& out) const {
  return walk(
      store, ways, nodes,
      [&](int32_t n, const Ways& after) {
        if (!after.dead()) {
          for (const int32_t id : trie_->tokens_at(n)) out.add(id);
        }
        return true;
      },
      [&](int32_t n) {
        for (const int32_t id : trie_->tokens_below(n)) out.add(id);
      });
}

size_t TokenMasks::add_from(ParseStore& store, const Ways& ways, int32_t node, TokenSet& out) const {
  if (ways.dead()) return 0;
  for (const int32_t id : trie_->tokens_at(node)) out.add(id);
  return add_between(store, ways, {node + 1, trie_->nodes()[static_cast<size_t>(node)].end}, out);
}

void TokenMasks::add_allowed(ParseStore& store, const Ways& ways, TokenSet& out) const {
  size_t steps = 0;
  for (const Frame& frame : ways.frames) {
    if (steps > kMaxSteps) return;
    // Near the limit of nesting the depth matters too.
    if (frame.depth + grammar_->largest_need() + trie_->most_opening() >= kMostNesting) {
      Ways one;
      one.frames.push_back(frame);
      steps += add_between(store, one, all_nodes(), out);
    } else {
      steps += add_allowed(store, frame, out);
    }
  }
}

size_t TokenMasks::add_allowed(ParseStore& store, const Frame& frame, TokenSet& out) const {
  const ParseStore::Mark before = store.mark();
  const OfStatePtr of = of_state(frame.state);
  size_t steps = 1 + of->steps;
  for (const int32_t id : of->few) out.add(id);
  if (of->many.size() > 0) out.add(of->many);
  Ways next, spare;
  const auto replay = [&](int32_t n) {
    if (steps > kMaxSteps) return;
    next.clear();
    next.frames.push_back(frame);
    for (const char c : trie_->path(n)) {
      std::swap(next, spare);
      next.clear();
      parser_.step(store, spare.frames, static_cast<uint8_t>(c), next);
      steps += 1 + next.steps;
    }
    steps += add_from(store, next, n, out);
    store.rewind(before);
  };
  std::for_each(of->restarts.begin(), of->restarts.end(), replay);
  // The caller of a key looks at its text, and so the text is needed; callers of others do the same behind all leaves.
  if (grammar_->rule(grammar_->state(frame.state).rule).kind == Rule::Kind::key) {
    std::for_each(of->leaves.begin(), of->leaves.end(), replay);
  } else if (!of->leaves.empty()) {
    next.clear();
    parser_.add_returned(store, frame, next);
    for (const int32_t n : of->leaves) {
      if (steps <= kMaxSteps) steps += add_from(store, next, n, out);
    }
  }
  store.rewind(before);
  return steps;
}

}  // namespace qkv::grammar
