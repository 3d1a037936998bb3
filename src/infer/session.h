// One generation: a prompt, its place in the caches, how the next token is chosen, and when it ends.
//
// A session says which rows the next pass should have for it and takes the logits; who runs the pass, and what else is
// in it, makes no difference to its tokens.
#pragma once

#include <optional>
#include <string>

#include "infer/ngram_draft.h"
#include "infer/runner.h"
#include "infer/sampling.h"

namespace qkv {

enum class Ended : uint8_t {
  not_yet,
  stopped,    // the model ended its text, or a stop was seen
  length,     // as many tokens as asked for
  context,    // the model's context, or the cache, is full
  cancelled,  // nobody wants it any more
  failed,     // see error()
};
const char* name_of(Ended ended);

struct SessionOptions {
  std::vector<int32_t> prompt;  // an encoder-decoder's target may begin with one; its start token if it has none
  std::vector<int32_t> source;  // what an encoder reads
  Sampling sampling;
  int64_t max_new = 0;        // 0: until the context is full
  int64_t context = 0;        // most ids, prompt included; 0: as many as the model was made for and the cache holds
  std::vector<int32_t> stop;  // ids that end it, beside the model's own
  bool ignore_eos = false;    // the model's own ids do not end it: for measuring
  int64_t draft = 0;          // most tokens guessed ahead; the output is the same, it may come faster
};

class Session {
 public:
  // Everything is checked here: an Error says what does not fit.
  Session(Runner& runner, SessionOptions options, int32_t request = 0);
  Session(Session&& other) noexcept;
  Session& operator=(Session&&) = delete;
  ~Session();

  const std::vector<int32_t>& ids() const { return ids_; }  // prompt and what was written
  int64_t prompt_length() const { return static_cast<int64_t>(options_.prompt.size()); }
  int64_t written() const { return static_cast<int64_t>(ids_.size()) - prompt_length(); }
  int64_t most_ids() const { return limit_; }  // no more ids than this, ever
  const SessionOptions& options() const { return options_; }
  int32_t request() const { return request_; }
  Ended ended() const { return ended_; }
  const std::string& error() const { return error_; }

  // --- step by step ---

  // Begins in the caches: from nothing, with a source already read, or where another session's tokens are the same.
  void open();
  void open(Runner::Sequence sequence);
  bool is_open() const { return sequence_.own >= 0; }
  const Runner::Sequence& sequence() const { return sequence_; }
  int64_t done() const { return done_; }  // positions the cache holds
  bool reading() const { return done_ + 1 < static_cast<int64_t>(ids_.size()); }

  // Its rows in the next pass, at most so many while it reads its prompt. Valid until the session changes.
  Runner::Part next_part(int64_t most_rows);
  // What that pass said: [rows of logits, V]. Returns the tokens it chose. Touches nothing but the session.
  std::vector<Choice> take(std::span<const float> logits);
  void end(Ended why, std::string error = "");
  // Gives up its place without losing it: who calls this ends the sequence.
  Runner::Sequence leave();

  // --- alone ---

  // The next token; nothing once it has ended. Runs as many passes as it takes.
  std::optional<Choice> next();
  // Another session that goes on from here on its own.
  Session fork(Sampling sampling) const;

 private:
  Choice choose_next(std::span<const float> logits) const;
  void add(const Choice& choice);

  Runner* runner_;
  SessionOptions options_;
  int32_t request_;
  std::vector<int32_t> ids_;
  int64_t limit_ = 0;
  Runner::Sequence sequence_;
  int64_t done_ = 0;
  std::vector<int32_t> rows_;  // ids of the pass under way: what is known, then what is guessed
  int64_t guessed_ = 0;        // how many of them
  std::optional<NgramDraft> draft_;
  std::vector<Choice> waiting_;  // chosen at once, handed out one by one
  Ended ended_ = Ended::not_yet;
  std::string error_;
};

}  // namespace qkv
