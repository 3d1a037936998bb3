#include "server/answers/generation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "server/http/sse.h"

namespace qkv::server {
namespace {

// For the log.
std::string failure_of(const WrittenText& written) {
  return written.hint.empty() ? written.error : written.error + "; " + written.hint;
}

}  // namespace

Generation::Generation(GenerationRequest request, Parts parts)
    : request_(std::move(request)), parts_(std::move(parts)) {
  const size_t prompts = request_.prompts.size(), n = static_cast<size_t>(request_.n);
  if (request_.tools != ToolStyle::none) marks_ = tool_marks(request_.tools, parts_.model.model().tokenizer());
  for (size_t i = 0; i < prompts * n; ++i) {
    const GenerationPrompt& prompt = request_.prompts[i / n];
    Text text{.choice = {.index = i, .prompt_index = i / n, .prompt_tokens = std::ssize(prompt.ids)},
              .tools = ToolReader(request_.tools, request_.several_calls)};
    if (request_.echo) text.choice.text = prompt.text;
    if (!request_.forced.empty()) text.tools.feed(request_.forced);  // nothing of it is text
    texts_.push_back(std::move(text));
  }
  unfinished_ = texts_.size();
  if (!request_.look) return;
  look_.emplace(*request_.look, parts_.model, texts_.size());
  unfinished_ *= 1 + look_->beside();
}

TextRequest Generation::plain_request_of(size_t index, size_t prompt) const {
  TextRequest made = text_request(request_.choices, parts_.model.model().defaults());
  SessionOptions& options = made.options;
  options.prompt = request_.prompts[prompt].ids;
  options.context = parts_.model.context();
  options.owner = parts_.owner;
  options.sampling.seed += index % static_cast<size_t>(request_.n);
  options.sampling.alternatives = request_.logprobs;
  options.constraint = request_.constraint;
  made.own_text = request_.own_text;
  return made;
}

// The same text, written without some heads.
TextRequest Generation::cut_request_of(size_t index, size_t prompt) {
  TextRequest made = plain_request_of(index, prompt);
  look_->cut(made.options);
  made.on_end = [self = shared_from_this(), index](const WrittenText& written) {
    LookForm::CutText cut{.text = written.text, .finish_reason = WrittenChoice{.ended = written.ended}.finish_reason()};
    for (const Choice& choice : written.tokens) cut.ids.push_back(choice.id);
    cut.failed = written.ended == Ended::failed;
    if (cut.failed) log_line(Log::error, fmt::format("{}: cut: {}", self->parts_.exchange->id(), failure_of(written)));
    self->post({.index = index,
                .ended = true,
                .how = cut.failed ? Ended::stopped : written.ended,
                .look = std::make_shared<LookPart>(LookPart{.cut = std::move(cut)}),
                .beside = true});
  };
  return made;
}

// Of the engine's thread, once a text has ended.
void Generation::attribute(size_t index, const WrittenText& written) {
  AttributionQueue::Job job =
      look_->attribution_of(request_.prompts[index / static_cast<size_t>(request_.n)].ids, written.tokens);
  job.wanted = [exchange = parts_.exchange] { return !exchange->gone(); };
  job.on_end = [self = shared_from_this(), index](FoundAttribution found) {
    self->post({.index = index,
                .ended = true,
                .how = Ended::stopped,
                .look = std::make_shared<LookPart>(LookPart{.attribution = std::move(found)}),
                .beside = true});
  };
  parts_.model.attributions().submit(std::move(job));
}

TextRequest Generation::text_request_of(size_t index, size_t prompt) {
  TextRequest made = plain_request_of(index, prompt);
  const auto self = shared_from_this();
  const std::vector<int32_t> ends = end_tokens(made.options, parts_.model.model().spec());
  const std::shared_ptr<LookProbe> looks = look_ ? look_->watch(made.options) : nullptr;
  made.on_token = [self, index, ends, looks, last = std::optional<Clock::time_point>(),
                   position = std::ssize(made.options.prompt) - 1](const Choice& choice) mutable {
    const int64_t row = position++;
    const Clock::time_point now = Clock::now();
    Metrics& metrics = self->parts_.metrics;
    const std::string& name = self->parts_.model.name();
    if (last) {
      metrics.next_token(name, Seconds(now - *last).count());
    } else {
      metrics.first_token(name, Seconds(now - self->parts_.came).count());
    }
    last = now;
    if (std::find(ends.begin(), ends.end(), choice.id) != ends.end()) return;
    for (const auto& [id, mark] : self->marks_) {
      if (id == choice.id) self->post({.index = index, .text = mark});
    }
    if (self->request_.logprobs >= 0) self->post({.index = index, .tokens = {choice}});
    if (std::optional<TokenLook> seen = looks ? looks->take(row) : std::nullopt) {
      self->post({.index = index, .look = std::make_shared<LookPart>(LookPart{.token = std::move(seen)})});
    }
  };
  made.on_text = [self, index](std::string_view text) {
    self->post({.index = index, .text = std::string(text)});
    return true;
  };
  made.on_end = [self, index, looks](const WrittenText& written) {
    self->post({.index = index,
                .ended = true,
                .how = written.ended,
                .error = failure_of(written),
                .written = std::ssize(written.tokens),
                .cached = written.cached_tokens,
                .look = looks ? std::make_shared<LookPart>(LookPart{.text = looks->finish()}) : nullptr});
    if (self->look_ && self->look_->attribute()) self->attribute(index, written);
  };
  return made;
}

void Generation::submit(TextRequest request) {
  const Scheduler::Ticket ticket =
      submit_text(parts_.model.scheduler(), parts_.model.model().tokenizer(), std::move(request));
  const std::lock_guard lock(mutex_);
  tickets_.push_back(ticket);
}

// The mailbox stays closed until all are submitted and the answer has begun.
void Generation::start() {
  const int64_t room = parts_.model.room().slots + parts_.model.room().queue;
  const size_t all = texts_.size() * (look_ && look_->cuts() ? 2 : 1);
  if (static_cast<int64_t>(all) > room) {
    throw ApiError(
        400,
        fmt::format("{} prompts with n = {}{} are {} texts, but at most {} can wait together", request_.prompts.size(),
                    request_.n, look_ && look_->cuts() ? ", each also cut," : "", all, room),
        "n");
  }
  if (look_ && look_->attribute()) attributions_ = parts_.model.attributions().reserve(std::ssize(texts_));
  draining_ = true;
  try {
    for (const Text& text : texts_) {
      submit(text_request_of(text.choice.index, text.choice.prompt_index));
      if (look_ && look_->cuts()) submit(cut_request_of(text.choice.index, text.choice.prompt_index));
    }
  } catch (...) {
    cancel_texts();
    over_ = true;
    throw;
  }
  if (request_.stream) {
    std::vector<WrittenChoice> choices;
    for (const Text& text : texts_) choices.push_back(text.choice);
    parts_.exchange->begin({.type = "text/event-stream", .headers = {{"X-Accel-Buffering", "no"}}}, kSsePing);
    parts_.exchange->write(parts_.form->begin(choices));
    if (look_) parts_.exchange->write(look_->begin());
    for (const WrittenChoice& choice : choices) {
      if (!choice.text.empty()) parts_.exchange->write(parts_.form->add(choice, {.text = choice.text}));
    }
  }
  parts_.exchange->when_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->cancel();
  });
  parts_.wake();
  parts_.writer.add([self = shared_from_this()] { self->drain(); });
}

// The engine drops them before its next pass.
void Generation::cancel_texts() {
  const std::lock_guard lock(mutex_);
  for (const Scheduler::Ticket ticket : tickets_) parts_.model.scheduler().cancel(ticket);
  tickets_.clear();
  parts_.wake();
}

void Generation::cancel() {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return;
    cancelled_ = true;
  }
  parts_.metrics.cancelled();
  cancel_texts();
}

void Generation::abort(const ApiError& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_) aborted_ = error;
  }
  cancel_texts();
}

// Texts and tokens that nobody took yet are joined, so a slow writer costs no more memory than the text itself.
void Generation::post(Mail mail) {
  bool schedule = false;
  {
    const std::lock_guard lock(mutex_);
    const bool plain = !mail.text.empty() && mail.tokens.empty() && !mail.ended;
    if (plain && !mailbox_.empty() && mailbox_.back().index == mail.index && !mailbox_.back().ended) {
      mailbox_.back().text += mail.text;
    } else if (!mail.tokens.empty() && !mailbox_.empty() && mailbox_.back().index == mail.index &&
               mailbox_.back().text.empty() && !mailbox_.back().ended) {
      mailbox_.back().tokens.push_back(std::move(mail.tokens.front()));
    } else {
      mailbox_.push_back(std::move(mail));
    }
    const bool wanted = request_.stream || mailbox_.back().ended;
    schedule = wanted && !draining_;
    draining_ = draining_ || schedule;
  }
  if (schedule) parts_.writer.add([self = shared_from_this()] { self->drain(); });
}

void Generation::drain() {
  while (true) {
    std::vector<Mail> mails;
    {
      const std::lock_guard lock(mutex_);
      mails.swap(mailbox_);
      if (mails.empty()) {
        draining_ = false;
        return;
      }
    }
    for (Mail& mail : mails) {
      if (over_) continue;
      try {
        take(mail);
      } catch (...) {
        const ApiError error = server_fault_of(std::current_exception());
        abort(error);
        finish();
      }
    }
  }
}

void Generation::take(Mail& mail) {
  Text& text = texts_[mail.index];
  WrittenChoice& choice = text.choice;
  if (mail.look) {
    if (request_.stream) {
      parts_.exchange->write(look_->event(mail.index, *mail.look));
    } else {
      look_->add(mail.index, *mail.look);
    }
    if (mail.beside) return end_text(mail);
  }
  AnswerPiece piece{.tokens = std::move(mail.tokens)};
  const auto read = [&](ToolReader::Read more) {
    piece.text += more.text;
    piece.calls.insert(piece.calls.end(), more.calls.begin(), more.calls.end());
  };
  if (!mail.text.empty()) read(text.tools.feed(mail.text));
  if (mail.ended) read(text.tools.finish());
  choice.text += piece.text;
  choice.calls.insert(choice.calls.end(), piece.calls.begin(), piece.calls.end());
  choice.tokens.insert(choice.tokens.end(), piece.tokens.begin(), piece.tokens.end());
  const bool has_piece = !piece.text.empty() || !piece.calls.empty() || !piece.tokens.empty();
  if (request_.stream && has_piece) parts_.exchange->write(parts_.form->add(choice, piece));
  if (!mail.ended) return;
  choice.ended = mail.how;
  choice.error = mail.error;
  choice.written = mail.written;
  choice.cached = mail.cached;
  if (request_.stream && mail.how != Ended::cancelled && mail.how != Ended::failed) {
    parts_.exchange->write(parts_.form->end(choice));
  }
  end_text(mail);
}

void Generation::end_text(const Mail& mail) {
  if (mail.how == Ended::failed) {
    log_line(Log::error, fmt::format("{}: {}", parts_.exchange->id(), mail.error));
    abort(ApiError(500, "the model failed to write this text; the server's log says more"));
    return finish();
  }
  if (--unfinished_ == 0) finish();
}

void Generation::finish() {
  over_ = true;
  std::optional<ApiError> aborted;
  {
    const std::lock_guard lock(mutex_);
    aborted = aborted_;
  }
  std::vector<WrittenChoice> choices;
  for (Text& text : texts_) choices.push_back(std::move(text.choice));
  const Usage usage = usage_of(choices);
  parts_.metrics.tokens(parts_.model.name(), usage.prompt, usage.written);
  parts_.exchange->note(fmt::format("model={} prompt={} written={} texts={} ended={}", parts_.model.name(),
                                    usage.prompt, usage.written, choices.size(),
                                    aborted ? "error" : name_of(choices.front().ended)));
  if (!request_.stream) {
    if (aborted) return parts_.exchange->respond(aborted->response());
    OrderedJson whole = parts_.form->whole(choices);
    if (look_) whole["look"] = std::move(*look_).whole();
    parts_.exchange->respond(json_response(whole));
    return;
  }
  parts_.exchange->write(aborted ? parts_.form->fail(*aborted) : parts_.form->close(choices));
  parts_.exchange->end();
}

}  // namespace qkv::server
