// Roles of heads, measured over many texts: attention mass on the previous token, on an earlier copy of the token, on
// what followed that copy, on the first token, on punctuation; entropy and distance; size of the output. A role is
// reported with its score, 95 % interval and coverage, the share of the head's attention it explains; a head may have
// none.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/heads/head_id.h"
#include "inspect/report/estimate.h"
#include "inspect/texts/reading.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

enum class Measure : uint8_t {
  // Accumulated inside the fused kernel for every row: nearly free.
  current,  // A_{i,i}
  previous,
  back2,
  back3,
  back4,
  next,        // A_{i,i+1}, bidirectional heads only
  at_current,  // how often this key has the largest weight
  at_previous,
  at_back2,
  at_back3,
  at_back4,
  at_next,
  first,        // the first key
  sink,         // 1 - sum_j A_ij: mass on a learned sink
  entropy,      // of a row, divided by ln(visible keys)
  distance,     // mean of i - j in tokens
  punctuation,  // mass on all punctuation, minus that of uniform attention
  period,       // and so on for each mark
  comma,
  colon,     // and semicolon
  question,  // and exclamation mark
  newline,
  special,           // separator and end tokens; not the first token of a text
  punctuation_mass,  // without subtracting the base rate: coverage
  special_mass,
  from_punctuation,  // from punctuation rows to punctuation, minus the base rate
  rare,              // how often the largest weight is on the rarest token of the text
  rare2,             // or one of the two rarest
  // From rows of the attention map, recomputed from q, k and LSE: more expensive.
  confidence,      // largest weight of a row, end tokens left out
  spread,          // standard deviation of the distance within a row
  duplicate,       // rows with an earlier copy: mass on the copies
  duplicate_mass,  // the same over all rows: coverage
  induction,       // rows with an earlier copy: mass on the tokens after the copies, each weight at least 0.01
  induction_mass,
  copying,  // the head's own contribution to the logit of its most attended token, minus the mean logit
  write,    // norm of its output over the norm of the residual stream
  resting,  // |v W_O| of the first key over the mean of all keys
  // On repeated random tokens.
  repeat_previous,
  repeat_duplicate,
  repeat_induction,
  repeat_duplicate_mass,  // the same over all rows of these texts: coverage
  repeat_induction_mass,
};
inline constexpr size_t kMeasures = static_cast<size_t>(Measure::repeat_induction_mass) + 1;

const char* name_of(Measure measure);  // "at_previous"
bool from_kernel(Measure measure);     // accumulated inside the kernel
Quantity quantity_of(Measure measure);

struct HeadScore {
  HeadId id;
  std::array<Estimate, kMeasures> values = {};          // n = 0: not measured
  std::array<Estimate, kMeasures> value_weighted = {};  // with weights A_ij |v_j W_O|, normalised
  std::array<double, kMeasures> chance = {};            // score of uniform attention

  const Estimate& operator[](Measure m) const { return values[static_cast<size_t>(m)]; }
  Estimate& operator[](Measure m) { return values[static_cast<size_t>(m)]; }
};

struct RoleScores {
  std::vector<HeadScore> heads;      // in the order of all_heads()
  int64_t texts = 0, tokens = 0;     // read
  int64_t rows = 0;                  // rows whose attention map was recomputed
  double seconds = 0;                // reading the texts; without repeated tokens and bootstrap
  std::vector<std::string> missing;  // what was not measured, and why
};

struct RoleOptions {
  bool patterns = true;               // false: only what the kernel accumulates
  int64_t pattern_numbers = 1 << 22;  // most map entries of one attention at a time; longer texts sample their rows
  int64_t repeated_texts = 100;       // of random tokens; 0: none
  uint64_t seed = 0;                  // for random tokens and the bootstrap
  Reader::Finished finished = {};     // told how many texts are done; return false to stop
};

// One pass over the texts; apart from the KV cache, memory does not grow with their length. Without a tokenizer
// punctuation is not measured.
RoleScores head_roles(Reader& reader, const Tokenizer* tokenizer, std::span<const TokenText> texts,
                      const RoleOptions& options);

// Attention on random tokens r1 .. rL repeated `repeats` times. Fast, and needs neither texts nor a tokenizer, so it
// works during training.
struct RepeatOptions {
  int64_t length = 25, repeats = 2, texts = 100;
  uint64_t seed = 0;
  std::vector<int32_t> tokens = {};   // drawn from these; empty: all but the special ones the spec names
  std::optional<int32_t> begin = {};  // first token; default: the spec's
};
struct RepeatScore {
  HeadId id;
  Estimate previous;                        // A_{i,i-1}
  Estimate duplicate;                       // A_{i,i-L} in the repeats
  Estimate induction;                       // A_{i,i-L+1} in the repeats
  Estimate duplicate_mass, induction_mass;  // the same over all rows
  double chance = 0;                        // of duplicate and induction under uniform attention
};
inline constexpr int64_t kShortestRepeat = 3;
std::vector<RepeatScore> repeat_scores(Reader& reader, const RepeatOptions& options);  // in the order of all_heads()

// --- roles -----------------------------------------------------------------------------------------------------------

// A head has a role if the whole interval of the score lies above the threshold, not the mean alone.
struct RoleRule {
  const char* name;
  Measure score, coverage;
  double threshold;
  const char* why;  // reason for the threshold
};
std::span<const RoleRule> role_rules();
// `chance`: the score of uniform attention; a role has twice that.
bool is_role(const Estimate& score, double threshold, double chance);

struct Role {
  const RoleRule* rule;
  Estimate score, coverage, value_weighted;  // value_weighted.n = 0: has none
  double chance = 0;
  bool copies = false;  // induction: the head also raises the logit of the token it attends to
};
// Roles of one head, largest coverage first.
std::vector<Role> roles_of(const HeadScore& head);

// A head that does nothing: attends to the first key or uniformly, writes little, and its ablation costs nothing.
struct LazyHead {
  bool rests = false;                // first >= 0.9 or entropy >= 0.95
  bool writes_little = false;        // in the lowest tenth of the model's heads
  std::optional<bool> not_missed{};  // the interval of the loss change contains 0; absent: not ablated
  bool lazy() const { return rests && writes_little && not_missed.value_or(false); }
  bool maybe() const { return rests && writes_little && !not_missed; }
};
// `cut`: change of the loss when each head is ablated, in the order of the heads; may be empty.
std::vector<LazyHead> lazy_heads(const RoleScores& scores, std::span<const Estimate> cut = {});

}  // namespace qkv
