#include "open/continuation.h"

#include <algorithm>

#include "infer/text_run.h"
#include "text/tokenizer/display_spans.h"

namespace qkv {
namespace {

constexpr size_t kStart = 12;  // tokens of a text that make a prompt

// Whether a token continues the character or the word of the one before it. Chinese words have no ends to look for.
bool inside_word(const DisplaySpans& spans, size_t token) {
  if (spans.continues(token)) return true;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::string &before = spans.spans[spans.span_of[token - 1]].text,
                    &text = spans.spans[spans.span_of[token]].text;
  return !before.empty() && !text.empty() && is_letter(before.back()) && is_letter(text.front());
}

std::string numbers(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

SessionOptions session_of(const OpenModel& model, const ContinuationOptions& asked) {
  SessionOptions session{.sampling = {.temperature = 0}, .max_new = asked.max_new};
  if (asked.ids) {
    const std::vector<int32_t>& start = model.spec().has_source() ? asked.start.source : asked.start.ids;
    const auto some =
        static_cast<std::ptrdiff_t>(model.spec().has_source() ? start.size() : std::min(start.size() / 2 + 1, kStart));
    std::vector<int32_t>& prompt = model.spec().has_source() ? session.source : session.prompt;
    prompt = asked.given.empty() ? std::vector<int32_t>(start.begin(), start.begin() + some) : asked.given;
  } else if (model.spec().has_source()) {
    session.source = asked.prompt.empty() ? asked.start.source : model.encode(asked.prompt).source;
  } else if (!asked.prompt.empty()) {
    session.prompt = prompt_ids(model.tokenizer(), model.spec(), asked.prompt);
  } else {
    const std::vector<int32_t>& ids = asked.start.ids;
    const DisplaySpans spans = display_spans(model.tokenizer(), ids);
    size_t count = std::min(ids.size() / 2 + 1, kStart);
    while (count < ids.size() && inside_word(spans, count)) ++count;
    session.prompt.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return session;
}

}  // namespace

std::string continuation_prompt(const OpenModel& model, const ContinuationOptions& asked) {
  const SessionOptions session = session_of(model, asked);
  if (asked.ids) return numbers(session.source.empty() ? session.prompt : session.source);
  return model.tokenizer().decode(session.source.empty() ? session.prompt : session.source, {.skip_specials = true});
}

std::string greedy_continuation(const OpenModel& model, const ContinuationOptions& asked, Probe* probe) {
  // Whole pages, and one more: a shared page is copied before it is written.
  const auto room = [](int64_t tokens) { return KvCache::whole_pages(tokens) + KvCache::kPage; };
  const SessionOptions session = session_of(model, asked);
  Runner runner = model.runner({.cache = model.precision().compute,
                                .positions = room(std::ssize(session.prompt) + asked.max_new),
                                .sources = room(std::ssize(session.source)),
                                .probe = probe});
  Scheduler scheduler(runner);
  std::string text, error;
  TextRequest request{.options = session, .own_text = !session.source.empty(), .on_end = [&](const WrittenText& w) {
                        std::vector<int32_t> ids;
                        for (const Choice& choice : w.tokens) ids.push_back(choice.id);
                        text = asked.ids ? numbers(ids) : w.text;
                        error = w.error;
                      }};
  if (asked.ids) {
    submit_ids(scheduler, std::move(request));
  } else {
    submit_text(scheduler, model.tokenizer(), std::move(request));
  }
  scheduler.run();
  QKV_CHECK(error.empty(), error, Hint("the model cannot continue this text"));
  return text;
}

}  // namespace qkv
