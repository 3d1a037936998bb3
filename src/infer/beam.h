// Beam search for one text: a state machine over logits that gives the same results as Hugging Face's generate.
//
// Each step scores every continuation of every beam by its sum of log-probabilities and takes the best 2 x beams (more
// if there are several end tokens). Those among the first `beams` that end become hypotheses; the best that do not end
// are the next beams. A hypothesis has the score sum / length^length_penalty, length without the prompt; the best
// `beams` hypotheses are kept. The search ends when beams have max_length tokens (they become hypotheses), or when
// there are `beams` hypotheses and no beam can become better than the worst of them. What a beam can reach, by `early`:
//   yes    nothing: the search ends as soon as there are enough hypotheses
//   no     the score it would have if it ended now
//   never  its score at max_length if length_penalty > 0, an upper bound: exact and slow
//
// Penalties and bans change log-probabilities without normalising them again. A forced token has log-probability 0.
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
  std::optional<int32_t> forced_eos = {};  // the last token of a text of max_length
  std::optional<int32_t> forced_bos = {};  // the second token, such as the target language
  std::vector<int32_t> banned = {};        // never generated
  int64_t no_repeat_ngram = 0;             // 0: n-grams may repeat
  double repetition_penalty = 1;
};

class BeamSearch {
 public:
  // The decoder's prompt: {decoder_start} for a translation. An Error if an option is out of its range.
  BeamSearch(BeamOptions options, std::vector<int32_t> prompt);

  struct Live {
    std::vector<int32_t> ids;
    double score = 0;  // sum of log-probabilities
  };
  // The beams, best first: one at the start, then `beams`, or fewer if there are not so many continuations.
  std::span<const Live> live() const { return live_; }

  struct Step {
    int32_t parent = 0;  // index of the beam it continues
  };
  // Takes the logits of each beam, [live, V]. Returns the parents of the new beams, so that caches can be forked.
  std::vector<Step> advance(std::span<const float> logits);

  bool done() const { return live_.empty(); }

  struct Hypothesis {
    std::vector<int32_t> ids;  // with prompt and end token
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
  int64_t prompt_ = 0, length_ = 0;  // tokens of the prompt, of every beam
  std::vector<Live> live_;
  std::vector<Hypothesis> finished_;  // best first
};

}  // namespace qkv
