// Where a text stands in a grammar: all ways to read it at once.
//
// Each way is a frame, the state on top, with the callers to return to below it. Frames of callers and the names of an
// object's properties are kept in lists that only grow; what several ways share is there once.
#pragma once

#include <span>

#include "infer/grammar/grammar.h"

namespace qkv::grammar {

struct Frame {
  int32_t state = 0;
  int32_t up = -1;     // the caller in ParseStore, or one of the two below
  int32_t memory = 0;  // an object: its property names so far; a key: its text so far; an array without duplicates: the
                       // values used, as bits
  int32_t depth = 0;   // levels of nesting
  bool operator==(const Frame&) const = default;
};
constexpr int32_t kNoCaller = -1;       // the text is complete behind it
constexpr int32_t kUnknownCaller = -2;  // see TokenMasks
constexpr int32_t kUnknownMemory = -1;

// What frames refer to.
class ParseStore {
 public:
  int32_t caller(const Frame& frame);
  const Frame& caller(int32_t up) const { return callers_[static_cast<size_t>(up)]; }
  int32_t longer(int32_t text, uint8_t byte);
  bool has_name(int32_t names, int32_t text) const;
  bool spells(int32_t text, std::string_view name) const;
  int32_t with_name(int32_t names, int32_t text);

  struct Mark {
    size_t callers, texts, names;
  };
  Mark mark() const { return {callers_.size(), texts_.size(), names_.size()}; }
  void rewind(const Mark& mark);
  size_t size() const { return callers_.size() + texts_.size() + names_.size(); }
  // Forgets what these frames do not refer to; the frames are renumbered.
  void shrink(const Grammar& grammar, std::span<Frame> frames);

 private:
  struct Text {
    int32_t before = 0, length = 0;
    uint8_t byte = 0;
  };
  struct Names {
    int32_t before = 0, text = 0;
  };
  bool same_text(int32_t a, int32_t b) const;

  std::vector<Frame> callers_;
  std::vector<Text> texts_{{}};   // 0: the empty one
  std::vector<Names> names_{{}};  // 0: none
};

// All ways, each at a state with bytes to come.
struct Ways {
  std::vector<Frame> frames;
  bool complete = false;      // the text may end here
  bool left = false;          // a frame returned to kUnknownCaller
  bool needs_memory = false;  // what follows depends on kUnknownMemory
  size_t steps = 0;           // moves that were followed to find them
  void clear() { frames.clear(), complete = left = needs_memory = false, steps = 0; }
  bool dead() const { return frames.empty() && !complete; }
};

class Parser {
 public:
  // Later ways are dropped, and so is what takes more moves to find: the others are right without them.
  static constexpr size_t kMostWays = 1024, kMaxSteps = 20'000;

  explicit Parser(const Grammar& grammar) : grammar_(grammar) {}

  void start(ParseStore& store, Ways& ways) const;
  // The frames after one more byte, added to `out`.
  void step(ParseStore& store, std::span<const Frame> from, uint8_t byte, Ways& out) const;
  // Adds what the caller of a frame does after it returned.
  void add_returned(ParseStore& store, const Frame& frame, Ways& out) const;

 private:
  void add(ParseStore& store, const Frame& frame, Ways& out) const;
  void add_call(ParseStore& store, const Frame& frame, const RuleCall& call, Ways& out) const;

  const Grammar& grammar_;
};

}  // namespace qkv::grammar
