// Beam search for one sentence: a state machine over logits, equal to the one of Hugging Face's generate.
//
// At each step every way to go on is scored by the sum of its log-probabilities. Of the best 2 x beams (more if there
// are several ends) those that end are hypotheses, if they are among the best `beams`; the best that do not end live
// on. A hypothesis is judged by sum / length^length_penalty, its length counted without the prompt, and the best
// `beams` are kept. The search ends when these are `beams` and none of the living can overtake the worst, by `early`:
//   yes    they cannot: the search ends as soon as there are enough
//   no     they are judged as if they ended now
//   never  they are judged by the length that flatters them most, if length_penalty > 0: exact, and slow
// or when the living are as long as they may become; they are hypotheses then.
//
// Penalties act on the log-probabilities, which are not made to sum to one again, nor are they by bans; a forced token
// costs nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace qkv {

struct BeamOptions {
  enum class Early : uint8_t { no, yes, never };

  int64_t beams = 4, n_best = 1;
  double length_penalty = 1;
  Early early = Early::no;
  int64_t max_length = 0;  // in tokens, with the prompt
  std::vector<int32_t> eos = {};
  std::optional<int32_t> forced_eos = {};  // the last token of what becomes as long as it may
  std::optional<int32_t> forced_bos = {};  // the token after a prompt of one: the language of the target, say
  std::vector<int32_t> banned = {};        // never written
  int64_t no_repeat_ngram = 0;             // 0: n-grams may repeat
  double repetition_penalty = 1;
};

class BeamSearch {
 public:
  // The prompt of the side that writes: {decoder_start} for a translation. An Error if an option is out of its range.
  BeamSearch(BeamOptions options, std::vector<int32_t> prompt);

  struct Live {
    std::vector<int32_t> ids;
    double score = 0;  // sum of log-probabilities
  };
  // Those that wait for logits, best first: one at the start, then `beams`, or all ways there are if fewer.
  std::span<const Live> live() const { return live_; }

  struct Step {
    int32_t parent = 0;  // which of the beams before it continues
  };
  // Takes the logits after each living beam, [live, V]; returns where the new ones come from, so that caches can be
  // forked.
  std::vector<Step> advance(std::span<const float> logits);

  bool done() const { return live_.empty(); }

  struct Hypothesis {
    std::vector<int32_t> ids;  // with prompt and end
    double score = 0;          // with the length penalty
  };
  std::vector<Hypothesis> best() const;  // n_best of them, best first; fewer only if there are no others

 private:
  struct Continuation {
    int32_t parent = 0, id = 0;
    double score = 0;
  };
  std::vector<Continuation> continuations(std::span<const float> logits, size_t vocabulary) const;
  std::optional<int32_t> forced_token() const;
  bool ends(const Continuation& c) const;
  double judged(double score, int64_t length) const;
  bool can_improve() const;

  BeamOptions options_;
  int64_t prompt_ = 0, length_ = 0;  // of the prompt, of what lives
  std::vector<Live> live_;
  std::vector<Hypothesis> finished_;  // best first
};

}  // namespace qkv
