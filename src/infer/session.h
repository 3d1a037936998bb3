// One generation: a prompt, its sequence in the caches, how the next token is chosen, and when it ends.
//
// A session names its rows of the next pass and takes their logits. Its tokens do not depend on what else is in the
// pass.
#pragma once

#include <qkv/ended.h>

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/function_ref.h"
#include "infer/grammar/constraint.h"
#include "infer/ngram_draft.h"
#include "infer/runner.h"
#include "infer/sampling.h"
#include "infer/session_probe.h"

namespace qkv {

using v1::Ended;
using v1::name_of;

struct SessionOptions {
  std::vector<int32_t> prompt;  // of an encoder-decoder: how the target begins; if empty, with its start token
  std::vector<int32_t> source;  // what an encoder reads
  Sampling sampling;
  int64_t max_new = 0;  // 0: until the context is full
  int64_t context = 0;  // most ids, prompt included; 0: as many as the model was made for and the cache holds
  std::optional<std::vector<int32_t>> eos = {};  // ids that end it; none: those of the model. Empty: no id ends it
  std::optional<int32_t> forced_bos = {};        // the second id of the text, such as the target language
  int64_t draft = 0;                             // most tokens guessed ahead; the output is the same
  std::shared_ptr<const grammar::TokenMasks> constraint = {};  // only texts of this grammar are written
  int32_t owner = 0;                         // prefixes in the cache are shared only between texts of one owner
  bool shares_prefixes = true;               // false: computes its whole prompt, and nothing of it is kept
  std::shared_ptr<SessionProbe> probe = {};  // of its rows; one that edits needs shares_prefixes = false
};

// The ids that end a text. `options.eos` usually comes from GenerationDefaults, where generation_config.json goes
// before config.json, as in transformers.
const std::vector<int32_t>& end_tokens(const SessionOptions& options, const ModelSpec& spec);

class Session {
 public:
  // Checks all options: an Error says what does not fit.
  Session(Runner& runner, SessionOptions options, int32_t request = 0);
  Session(Session&& other) noexcept;
  Session& operator=(Session&&) = delete;
  ~Session();

  const std::vector<int32_t>& ids() const { return ids_; }  // prompt and generated tokens
  int64_t prompt_length() const { return static_cast<int64_t>(options_.prompt.size()); }
  int64_t written() const { return static_cast<int64_t>(ids_.size()) - prompt_length(); }
  int64_t most_ids() const { return limit_; }  // prompt included
  const SessionOptions& options() const { return options_; }
  int32_t request() const { return request_; }
  Ended ended() const { return ended_; }
  const std::string& error() const { return error_; }  // if it failed: what, and what to do
  const std::string& hint() const { return hint_; }

  // --- step by step ---

  // Starts a sequence in the caches, or takes one: with its source prefilled, or forked from a session with the same
  // tokens.
  void open();
  void open(Runner::Sequence sequence);
  bool is_open() const { return sequence_.own >= 0; }
  const Runner::Sequence& sequence() const { return sequence_; }
  int64_t done() const { return done_; }      // positions the cache holds
  int64_t cached() const { return cached_; }  // positions it held when the session was opened
  bool prefilling() const { return done_ + 1 < static_cast<int64_t>(ids_.size()); }

  // Its rows in the next pass, at most so many while it prefills its prompt. Valid until the session changes.
  Runner::Part next_part(int64_t most_rows);
  // Its probe in that pass, for a PassProbe; begins it. Nothing is added if it has none that looks.
  void add_probe(std::vector<PassProbe::Part>& to, int64_t first_row) const;
  // The logits of that pass, [rows of logits, V]. Returns the tokens it chose. Changes nothing but the session.
  std::vector<Choice> take(std::span<const float> logits);
  // The same of the first highest logit of each row, where that is all it looks at.
  bool takes_highest() const { return !constraint_ && qkv::takes_highest(options_.sampling); }
  std::vector<Choice> take_highest(std::span<const int32_t> ids);
  void end(Ended why);
  void fail(const Error& why);
  // Hands its sequence over; the caller has to end it.
  Runner::Sequence release();

  // --- alone ---

  // The next token; nothing once it has ended. Runs as many passes as it takes.
  std::optional<Choice> next();
  // A second session that continues from here independently.
  Session fork(Sampling sampling) const;

 private:
  std::optional<int32_t> forced_next() const;
  Choice choose_next(std::span<const float> logits);
  std::vector<Choice> take_rows(bool any, FunctionRef<Choice(int64_t row)> choose);
  void add(const Choice& choice);

  Runner* runner_;
  SessionOptions options_;
  int32_t request_;
  std::vector<int32_t> ids_;
  int64_t limit_ = 0;
  Runner::Sequence sequence_;
  int64_t done_ = 0, cached_ = 0;
  std::vector<int32_t> rows_;  // ids of the current pass: known ones, then guesses
  int64_t guessed_ = 0;        // how many of them
  std::optional<NgramDraft> draft_;
  std::optional<Constraint> constraint_;
  std::vector<Choice> waiting_;  // chosen in one pass, returned one by one by next()
  Ended ended_ = Ended::not_yet;
  std::string error_, hint_;
};

}  // namespace qkv
