#include "infer/session.h"

#include <algorithm>

#include "base/error.h"

namespace qkv {

const char* v1::name_of(Ended ended) {
  switch (ended) {
    case Ended::not_yet:
      return "not yet";
    case Ended::stopped:
      return "stop";
    case Ended::length:
      return "length";
    case Ended::context:
      return "context";
    case Ended::cancelled:
      return "cancelled";
    case Ended::failed:
      return "failed";
  }
  return "?";
}

const std::vector<int32_t>& end_tokens(const SessionOptions& options, const ModelSpec& spec) {
  return options.eos ? *options.eos : spec.tokens.eos;
}

Session::Session(Runner& runner, SessionOptions options, int32_t request)
    : runner_(&runner), options_(std::move(options)), request_(request) {
  const ModelSpec& spec = runner.model().spec();
  const bool translates = spec.has_source();
  options_.prompt = decoder_prompt(std::move(options_.prompt), spec);
  validate(options_.sampling, spec.vocabulary);
  QKV_CHECK(!options_.prompt.empty(), "the prompt has no tokens", Hint("a text begins with at least one"));
  QKV_CHECK(translates == !options_.source.empty(), "a ", spec.family,
            translates ? " translates, but the source has no tokens" : " has no encoder, but there is a source of ",
            translates ? std::string() : std::to_string(options_.source.size()) + " tokens",
            Hint(translates ? "give the text to translate" : "give the text as its prompt"));
  const auto in_range = [](int64_t vocabulary, const std::vector<int32_t>& ids, const char* what) {
    const auto bad = std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= vocabulary; });
    QKV_CHECK(bad == ids.end(), "the ", what, " has token ", *bad, " at place ", bad - ids.begin(),
              " but the model's vocabulary has ", vocabulary, Hint("the tokenizer belongs to another model"));
  };
  in_range(spec.vocabulary, options_.prompt, "prompt");
  if (options_.forced_bos) in_range(spec.vocabulary, {*options_.forced_bos}, "start of the text");
  in_range(spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary, options_.source, "source");
  QKV_CHECK(options_.max_new >= 0, "max_new is ", options_.max_new,
            " but must be 0 (until the context is full) or more", Hint("it counts the tokens to write"));
  QKV_CHECK(options_.draft >= 0 && options_.draft <= 64, "draft is ", options_.draft, " but must be 0 to 64",
            Hint("0 guesses nothing ahead"));
  int64_t room = std::min(runner.context(), runner.positions());
  const char* whose = runner.context() <= runner.positions() ? "this model's context" : "the cache";
  if (options_.context > 0 && options_.context < room) {
    room = options_.context;
    whose = "the context of this run";
  }
  const int64_t length = prompt_length();
  QKV_CHECK(length < room, "a prompt of ", length, " tokens is too long: ", whose, " has room for ", room,
            " and at least one is to be written", Hint("shorten it, or use a longer context"));
  limit_ = options_.max_new > 0 && options_.max_new < room - length ? length + options_.max_new : room;
  ids_ = options_.prompt;
  if (options_.draft > 0) draft_.emplace(DraftOptions{.most = options_.draft}).add(ids_);
  if (options_.constraint) constraint_.emplace(options_.constraint, end_tokens(options_, spec));
}

Session::Session(Session&& other) noexcept
    : runner_(other.runner_),
      options_(std::move(other.options_)),
      request_(other.request_),
      ids_(std::move(other.ids_)),
      limit_(other.limit_),
      sequence_(std::exchange(other.sequence_, {})),
      done_(other.done_),
      cached_(other.cached_),
      rows_(std::move(other.rows_)),
      guessed_(other.guessed_),
      draft_(std::move(other.draft_)),
      constraint_(std::move(other.constraint_)),
      waiting_(std::move(other.waiting_)),
      ended_(other.ended_),
      error_(std::move(other.error_)),
      hint_(std::move(other.hint_)) {}

Session::~Session() {
  if (is_open()) runner_->end(sequence_);
}

void Session::open() {
  open(options_.source.empty() ? runner_->start() : runner_->start(options_.source));
}

void Session::open(Runner::Sequence sequence) {
  sequence_ = sequence;
  done_ = cached_ = runner_->length(sequence);
}

Runner::Sequence Session::release() {
  return std::exchange(sequence_, {});
}

Runner::Part Session::next_part(int64_t most_rows) {
  if (runner_->length(sequence_) > done_) runner_->truncate(sequence_, done_);  // wrong guesses
  const auto known = static_cast<int64_t>(ids_.size()) - done_;
  const int64_t count = prefilling() ? std::min(known, most_rows) : known;
  rows_.assign(ids_.begin() + done_, ids_.begin() + done_ + count);
  const bool last = count == known;
  guessed_ = 0;
  if (last && draft_) {
    const int64_t room = std::min(options_.draft, limit_ - 1 - static_cast<int64_t>(ids_.size()));
    std::vector<int32_t> guess = draft_->propose();
    if (static_cast<int64_t>(guess.size()) > room) guess.resize(static_cast<size_t>(std::max<int64_t>(room, 0)));
    guessed_ = static_cast<int64_t>(guess.size());
    rows_.insert(rows_.end(), guess.begin(), guess.end());
  }
  return {.sequence = sequence_, .ids = rows_, .logits = last ? 1 + guessed_ : 0, .request = request_, .reach = limit_};
}

void Session::add_probe(std::vector<PassProbe::Part>& to, int64_t first_row) const {
  if (!options_.probe || !options_.probe->begin(done_, std::ssize(rows_))) return;
  to.push_back({.probe = options_.probe.get(), .first_row = first_row, .rows = std::ssize(rows_)});
}

// The next id, where logits do not matter.
std::optional<int32_t> Session::forced_next() const {
  const ModelSpec& spec = runner_->model().spec();
  if (options_.forced_bos && ids_.size() == 1) return options_.forced_bos;
  const bool last = static_cast<int64_t>(ids_.size()) + 1 == limit_;
  if (last && !end_tokens(options_, spec).empty()) return spec.tokens.forced_eos;
  return std::nullopt;
}

Choice Session::choose_next(std::span<const float> logits) {
  if (const std::optional<int32_t> forced = forced_next()) return {.id = *forced};
  Choice choice = choose(options_.sampling, {.logits = logits,
                                             .history = ids_,
                                             .prompt = static_cast<size_t>(prompt_length()),
                                             .allowed = constraint_ ? &constraint_->allowed() : nullptr});
  if (constraint_) constraint_->accept(choice.id);
  return choice;
}

void Session::add(const Choice& choice) {
  ids_.push_back(choice.id);
  if (draft_) draft_->add({&choice.id, 1});
  const std::vector<int32_t>& eos = end_tokens(options_, runner_->model().spec());
  if (std::find(eos.begin(), eos.end(), choice.id) != eos.end()) {
    ended_ = Ended::stopped;
  } else if (constraint_ && eos.empty() && constraint_->finished()) {
    ended_ = Ended::stopped;  // no token says so
  } else if (static_cast<int64_t>(ids_.size()) == limit_) {
    ended_ = limit_ == prompt_length() + options_.max_new ? Ended::length : Ended::context;
  }
}

std::vector<Choice> Session::take(std::span<const float> logits) {
  const auto vocabulary = static_cast<size_t>(runner_->vocabulary());
  return take_rows(!logits.empty(), [&](int64_t row) {
    return choose_next(logits.subspan(static_cast<size_t>(row) * vocabulary, vocabulary));
  });
}

std::vector<Choice> Session::take_highest(std::span<const int32_t> ids) {
  return take_rows(!ids.empty(),
                   [&](int64_t row) { return Choice{.id = forced_next().value_or(ids[static_cast<size_t>(row)])}; });
}

// `any`: whether there are rows to choose from.
std::vector<Choice> Session::take_rows(bool any, FunctionRef<Choice(int64_t row)> choose) {
  const int64_t known = static_cast<int64_t>(rows_.size()) - guessed_;
  if (!any) {  // still prefilling
    done_ += known;
    return {};
  }
  std::vector<Choice> chosen;
  int64_t right = 0;  // guesses that were right: their rows are kept
  while (true) {
    const Choice& choice = chosen.emplace_back(choose(right));
    add(choice);
    const bool guessed_right =
        right < guessed_ && rows_[static_cast<size_t>(known + right)] == choice.id && ended_ == Ended::not_yet;
    if (!guessed_right) break;
    ++right;
  }
  done_ += known + right;
  return chosen;
}

void Session::end(Ended why) {
  if (ended_ == Ended::not_yet) ended_ = why;
}

void Session::fail(const Error& why) {
  ended_ = Ended::failed;
  error_ = why.message();
  hint_ = why.hint().empty() ? "qkv verify and qkv info may say more" : why.hint();
}

std::optional<Choice> Session::next() {
  if (!is_open()) open();
  while (waiting_.empty()) {
    if (ended_ != Ended::not_yet) return std::nullopt;
    const Runner::Part part = next_part(runner_->options().chunk);
    std::vector<PassProbe::Part> watched;
    add_probe(watched, 0);
    const bool is_watched = !watched.empty();
    PassProbe probe(std::move(watched));
    const Runner::Result result = runner_->pass(
        {&part, 1}, takes_highest() ? Runner::Wanted::highest : Runner::Wanted::logits, is_watched ? &probe : nullptr);
    waiting_ = result.highest.empty() ? take(result.logits) : take_highest(result.highest);
    std::reverse(waiting_.begin(), waiting_.end());
  }
  Choice choice = std::move(waiting_.back());
  waiting_.pop_back();
  return choice;
}

Session Session::fork(Sampling sampling) const {
  SessionOptions options = options_;
  options.sampling = std::move(sampling);
  Session made(*runner_, std::move(options), request_);
  made.ids_ = ids_;
  made.constraint_ = constraint_;
  if (made.draft_) made.draft_->add(std::span(ids_).subspan(made.options_.prompt.size()));
  if (is_open()) made.open(runner_->fork(sequence_, done_));
  return made;
}

}  // namespace qkv
