// What each head does, measured over many texts: how much it looks at the token before, at an earlier copy, at what
// followed an earlier copy, at the first token, at punctuation; how widely, how far; what it writes. The shared
// document on metrics has the formulas. Nobody assigns roles to heads: they are found, with a score, its interval and
// the share of the head's attention the role explains; "none found" is a good answer.
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
  // Accumulated inside the fused kernel, for every row: nearly free.
  current,  // A_{i,i}
  previous,
  back2,
  back3,
  back4,
  next,        // A_{i,i+1}: heads that see what follows
  at_current,  // how often the strongest key is this one
  at_previous,
  at_back2,
  at_back3,
  at_back4,
  at_next,
  first,        // the first key
  sink,         // 1 - sum_j A_ij: what a learned sink takes
  entropy,      // of a row over ln(keys it may see)
  distance,     // i - j in tokens, the mean of a row
  punctuation,  // all marks together, less what looking everywhere alike would give
  period,       // each of them so
  comma,
  colon,     // and semicolon
  question,  // and exclamation mark
  newline,
  special,           // separators and ends; not the token a text begins with
  punctuation_mass,  // without the base rate: what it explains
  special_mass,
  from_punctuation,  // marks looking at marks, less the base rate
  rare,              // the strongest key is the rarest token of the text
  rare2,             // or one of the two rarest
  // From rows of the pattern, computed again from q, k and LSE: these cost.
  confidence,      // highest weight of a row, ends left out
  spread,          // deviation of the distance inside a row
  duplicate,       // rows with an earlier copy: mass on the copies
  duplicate_mass,  // the same over all rows: what it explains
  induction,       // rows with an earlier copy: mass on what followed the copies, each at least 0.01
  induction_mass,
  copying,  // logit of the token most looked at, less the mean logit, as this head alone raises it
  write,    // length of what it writes over the length of the stream
  resting,  // length of what the first key would bring over the mean of all keys
  // On random tokens that repeat.
  repeat_previous,
  repeat_duplicate,
  repeat_induction,
};
inline constexpr size_t kMeasures = static_cast<size_t>(Measure::repeat_induction) + 1;

const char* name_of(Measure measure);  // "at_previous"
bool from_kernel(Measure measure);     // nearly free

struct HeadScore {
  HeadId id;
  std::array<Estimate, kMeasures> values = {};  // n = 0: was not measured here
  std::array<Estimate, kMeasures> moved = {};   // the same with weights times the length of what each key brings
  std::array<double, kMeasures> chance = {};    // what a head that looks everywhere alike would score

  const Estimate& operator[](Measure m) const { return values[static_cast<size_t>(m)]; }
  Estimate& operator[](Measure m) { return values[static_cast<size_t>(m)]; }
};

struct RoleScores {
  std::vector<HeadScore> heads;      // in the order of all_heads()
  int64_t texts = 0, tokens = 0;     // read
  int64_t rows = 0;                  // of them looked at key by key
  double seconds = 0;                // the texts took to read; repeats and intervals come on top
  std::vector<std::string> missing;  // what was not measured, and why
};

struct RoleOptions {
  bool patterns = true;               // false: only what the kernel accumulates
  int64_t pattern_numbers = 1 << 22;  // most weights of one attention shown at once; longer texts show some rows only
  int64_t repeated_texts = 12;        // of random tokens; 0: none
  uint64_t seed = 0;                  // of their tokens, and of the intervals
  Reader::Finished finished = {};     // told how many texts are done; false ends it there
};

// One pass over the texts, in memory that does not grow with their length beyond the cache. Without a tokenizer there
// are no classes of tokens.
RoleScores head_roles(Reader& reader, const Tokenizer* tokenizer, std::span<const TokenText> texts,
                      const RoleOptions& options);

// Random tokens r1 .. rL said `repeats` times, and how each head looks at them: fast, needs neither texts nor a
// tokenizer, so that snapshots of a training can be judged by it.
struct RepeatOptions {
  int64_t length = 25, repeats = 2, texts = 12;
  uint64_t seed = 0;
  std::vector<int32_t> tokens = {};   // drawn from these; empty: all but the special ones the spec names
  std::optional<int32_t> begin = {};  // before them; if not said, the spec's
};
struct RepeatScore {
  HeadId id;
  Estimate previous;   // A_{i,i-1}
  Estimate duplicate;  // A_{i,i-L} in the repeats
  Estimate induction;  // A_{i,i-L+1} in the repeats
  double chance = 0;   // what looking everywhere alike would give the last two
};
inline constexpr int64_t kShortestRepeat = 3;
std::vector<RepeatScore> repeat_scores(Reader& reader, const RepeatOptions& options);  // in the order of all_heads()

// --- roles ---------------------------------------------------------------------------------------------------------

// A role is named where the whole interval lies above its threshold, never by the mean alone.
struct RoleRule {
  const char* name;
  Measure score, coverage;
  double threshold;
  const char* why;  // this threshold
};
std::span<const RoleRule> role_rules();

struct Role {
  const RoleRule* rule;
  Estimate score, coverage, moved;  // moved.n = 0: has no weighted form
  double chance = 0;
  bool copies = false;  // induction: it also raises the logit of what it looks at
};
// Of one head, strongest coverage first.
std::vector<Role> roles_of(const HeadScore& head);

// A head that does nothing: looks at the first key or everywhere, writes little, and is not missed.
struct Laziness {
  bool rests = false;                // first >= 0.9 or entropy >= 0.95
  bool writes_little = false;        // among the lowest tenth of the model's heads
  std::optional<bool> not_missed{};  // loss without it: the interval holds 0. Absent: nobody cut it
  bool lazy() const { return rests && writes_little && not_missed.value_or(false); }
  bool maybe() const { return rests && writes_little && !not_missed; }
};
// `cut`: change of the loss without each head, in the order of the heads; empty if not known.
std::vector<Laziness> laziness(const RoleScores& scores, std::span<const Estimate> cut = {});

}  // namespace qkv
