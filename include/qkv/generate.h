// Writing text: how tokens are chosen, and what comes out.
#pragma once

#include <qkv/ended.h>
#include <qkv/error.h>
#include <qkv/text.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv::QKV_INLINE v1 {

// What is left open is as the model's generation_config.json says; without it the most likely token is taken. Any of
// temperature, top_k, top_p, min_p and typical_p turns on sampling.
struct GenerateOptions {
  std::optional<int64_t> max_new = {};  // most tokens to write; otherwise until the context is full
  std::optional<double> temperature = {}, top_p = {}, min_p = {}, typical_p = {};
  std::optional<int64_t> top_k = {}, no_repeat_ngram = {};
  std::optional<double> repetition_penalty = {}, presence_penalty = {}, frequency_penalty = {};
  std::map<int32_t, double> logit_bias = {};
  std::vector<std::string> stop = {};  // ends before any of these
  uint64_t seed = 0;
  int64_t logprobs = -1;         // n: log-probabilities of each token and of the n most likely ones; -1: none
  int64_t draft = 0;             // guess up to so many tokens ahead from the text itself: the same result, faster
  std::string json_schema = {};  // write JSON that satisfies this JSON Schema
};

struct Token {
  int32_t id = 0;
  double logprob = 0;                                        // 0 unless asked for
  std::vector<std::pair<int32_t, double>> most_likely = {};  // id and log-probability
};

struct Generated {
  std::string text;  // what follows the prompt
  std::vector<Token> tokens = {};
  Ended ended = Ended::not_yet;
  std::string stop = {};                         // the stop string that ended it, if one did
  std::string error = {}, hint = {};             // if it failed: what, and what to do
  int64_t prompt_tokens = 0, cached_tokens = 0;  // cached: of the prompt, known from an earlier text and not read again
  double read_seconds = 0, write_seconds = 0;    // of the prompt; from the first token to the last
};

// Pieces come as they are written: whole characters, never taken back. False ends the text.
using OnText = std::function<bool(std::string_view piece)>;

// What became known since the last time: tokens, and the text they show. Either may be empty, and both are while a long
// prompt is read.
struct Piece {
  std::string text;
  std::vector<Token> tokens = {};
};

// A text that is being written, made by Model::start. Texts of one model that are written at the same time share passes;
// their tokens do not depend on it. next(), wait() and result() are for one thread at a time (BusyError otherwise);
// cancel() is for any thread at any time. What is dropped before its end is cancelled.
class QKV_API Generation {
 public:
  std::optional<Piece> next();  // at most one pass; none: the text has ended
  Generated wait();             // to its end
  Generated result() const;     // so far
  bool ended() const;
  void cancel() const;

  struct QKV_HIDDEN Impl;
  explicit Generation(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Generation(Generation&&) noexcept = default;
  Generation& operator=(Generation&&) noexcept = default;
  ~Generation();

 private:
  Impl& impl() const;  // ClosedError if it was moved from
  std::shared_ptr<Impl> impl_;
};

// A beam search: the most likely whole texts instead of the most likely next tokens.
struct SearchOptions {
  int64_t beams = 4, n = 1;  // n: how many texts, best first
  std::optional<int64_t> max_new = {}, no_repeat_ngram = {};
  std::optional<double> length_penalty = {}, repetition_penalty = {};
  std::function<bool()> go_on = {};  // asked between passes; false ends it, with no texts
};

struct TranslateOptions {
  std::optional<int64_t> beams = {}, max_new = {};
  std::optional<double> length_penalty = {};
  int64_t n = 1;                                // translations of each text, best first
  std::string prefix = {};                      // put before every text, as T5 expects
  int64_t rows = 64;                            // most rows of a pass; a text has one per beam
  std::function<bool(size_t done)> go_on = {};  // told how many texts are done; false ends it, the rest stay empty
};

struct Translation {
  std::string text;
  double score = 0;               // with the length penalty
  std::vector<int32_t> ids = {};  // with the start and the end token
};

// log p of every token that the text itself determines, in nats.
struct Likelihood {
  std::vector<int32_t> ids;
  std::vector<double> log_p;  // of ids[first], ids[first + 1], ...
  int64_t first = 1;
  double total = 0;
  double perplexity = 0;  // exp of the mean
};

enum class Pooling : uint8_t { usual, mean, first, last };  // usual: mean of an encoder, last of a decoder

}  // namespace qkv::QKV_INLINEv1
