// Which tokens may come next: the grammar walked along the trie of the vocabulary.
//
// Most of the answer depends on the state on top alone, and is kept for each state: the tokens that stay within its
// rule, and the places of the trie at which the rule is left. Only behind those the callers matter, so they are walked
// each time.
//
// The work for one token is limited, so that a grammar with many ways to read a text delays no other text for long: ways
// beyond the limit are left out. It counts what is kept as if it were computed anew, so masks never depend on what was
// asked before.
#pragma once

#include <memory>
#include <mutex>

#include "infer/grammar/parse_state.h"
#include "infer/grammar/token_set.h"
#include "infer/grammar/token_trie.h"

namespace qkv::grammar {

// Shared by all texts with the same grammar and vocabulary; thread-safe.
class TokenMasks {
 public:
  TokenMasks(GrammarPtr grammar, TokenTriePtr trie);

  static constexpr size_t kMaxSteps = 5'000'000;  // moves of the parser for one token: about a tenth of a second

  // The tokens after which the text can still be completed. Leaves the store as it was.
  void add_allowed(ParseStore& store, const Ways& ways, TokenSet& out) const;

  const Grammar& grammar() const { return *grammar_; }
  const TokenTrie& trie() const { return *trie_; }
  const Parser& parser() const { return parser_; }

 private:
  struct OfState {
    std::vector<int32_t> few;  // tokens that stay within the rule; if they are many, as a set
    TokenSet many;
    std::vector<int32_t> leaves;    // nodes at which the rule returns
    std::vector<int32_t> restarts;  // nodes behind which the frame's memory matters
    size_t steps = 0;               // that it took
    size_t bytes() const;
  };
  using OfStatePtr = std::shared_ptr<const OfState>;

  OfStatePtr of_state(int32_t state) const;
  OfStatePtr computed(int32_t state) const;
  struct NodeRange {
    int32_t begin, end;
  };
  NodeRange all_nodes() const { return {0, static_cast<int32_t>(trie_->nodes().size()) - 1}; }
  // Walks these nodes; the bytes above them have led to `ways`. Returns the steps it took.
  template <class OnNode, class OnSubtree>
  size_t walk(ParseStore& store, const Ways& ways, NodeRange range, OnNode on_node, OnSubtree on_subtree) const;
  // Each returns its steps.
  size_t add_between(ParseStore& store, const Ways& ways, NodeRange nodes, TokenSet& out) const;
  size_t add_from(ParseStore& store, const Ways& ways, int32_t node, TokenSet& out) const;  // its byte led to `ways`
  size_t add_allowed(ParseStore& store, const Frame& frame, TokenSet& out) const;

  GrammarPtr grammar_;
  TokenTriePtr trie_;
  Parser parser_;
  mutable std::mutex mutex_;
  mutable std::vector<OfStatePtr> kept_;  // by state
  mutable size_t kept_bytes_ = 0;
};

}  // namespace qkv::grammar
