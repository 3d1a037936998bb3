// A grammar over bytes: rules that call one another, each an automaton. Recursive values make it a pushdown automaton.
//
// A state steps over bytes by its edges. Without a byte it moves to another state of its rule (`also`), calls a rule and
// goes on behind it, or, if it accepts, returns to its caller. Made by a GrammarBuilder, which removes whatever cannot
// end: from every state a text can be completed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "infer/grammar/budget.h"
#include "infer/grammar/dfa.h"

namespace qkv::grammar {

constexpr int32_t kMostNesting = 64;  // objects and arrays inside one another, in a text

struct Rule {
  enum class Kind : uint8_t {
    plain,
    object,
    array,
    key,  // the name of a property the schema does not name: what follows its first quote
  };
  int32_t start = 0;
  Kind kind = Kind::plain;
  std::vector<std::string> names = {};  // of an object: those it names, as they are written, with their last quote

  bool nests() const { return kind == Kind::object || kind == Kind::array; }
};

struct RuleCall {
  int32_t rule = 0, back = 0;  // the state to go on in
  int32_t item = -1;           // of an array without duplicates: which value; it is used once
};

struct GrammarState {
  std::vector<ByteEdge> edges = {};
  std::vector<RuleCall> calls = {};
  std::vector<int32_t> also = {};
  int32_t rule = 0;
  int32_t need = 0;  // levels of nesting below its own that the shortest way to the end needs
  uint8_t room = 0;  // so many characters of plain_text() may follow, whichever they are
  bool accepts = false;

  bool only_returns() const { return accepts && edges.empty() && calls.empty() && also.empty(); }
  bool moves() const { return accepts || !calls.empty() || !also.empty(); }  // without a byte
};

class Grammar {
 public:
  const GrammarState& state(int32_t s) const { return states_[static_cast<size_t>(s)]; }
  const Rule& rule(int32_t r) const { return rules_[static_cast<size_t>(r)]; }
  int32_t size() const { return static_cast<int32_t>(states_.size()); }
  int32_t root() const { return 0; }                      // a rule
  int32_t largest_need() const { return largest_need_; }  // of a state

 private:
  friend class GrammarBuilder;
  std::vector<GrammarState> states_;
  std::vector<Rule> rules_;
  int32_t largest_need_ = 0;
};

using GrammarPtr = std::shared_ptr<const Grammar>;

class GrammarBuilder {
 public:
  static constexpr size_t kMostStates = 300'000;

  explicit GrammarBuilder(Budget& budget) : budget_(budget) {}

  int32_t add_rule(Rule::Kind kind = Rule::Kind::plain);  // with its start; rule 0 is the root
  int32_t start_of(int32_t rule) const { return rules_[static_cast<size_t>(rule)].start; }
  void name_properties(int32_t rule, std::vector<std::string> names);

  int32_t add_state(int32_t rule);
  void accept(int32_t state) { at(state).accepts = true; }
  void edge(int32_t from, char byte, int32_t to);
  int32_t text(int32_t from, std::string_view bytes);  // returns the state behind
  void also(int32_t from, int32_t to) { at(from).also.push_back(to); }
  void call(int32_t from, RuleCall call) { at(from).calls.push_back(call); }
  void fill(int32_t rule, const Dfa& dfa);  // the rule is this language

  // An Error if there is no text at all, or a rule calls itself before its first byte.
  GrammarPtr build();

 private:
  GrammarState& at(int32_t state) { return states_[static_cast<size_t>(state)]; }
  void check_left_recursion();
  void find_needs();
  void remove_endless();
  void find_room();
  bool find_targets(int32_t state, int32_t inside, std::vector<int32_t>& targets);

  Budget& budget_;
  std::vector<GrammarState> states_;
  std::vector<Rule> rules_;
};

}  // namespace qkv::grammar
