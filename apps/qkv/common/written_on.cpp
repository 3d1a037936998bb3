#include "common/written_on.h"

#include <algorithm>

#include "infer/text_run.h"
#include "text/tokenizer/display_spans.h"

namespace qkv::app {
namespace {

constexpr size_t kStart = 12;  // tokens of a text that make a prompt

SessionOptions session_of(Inspected& inspected, const WrittenOn& asked) {
  SessionOptions session{.sampling = {.temperature = 0}, .max_new = asked.max_new};
  if (inspected.spec().has_source()) {
    session.source = asked.prompt.empty() ? asked.otherwise.source : inspected.read(asked.prompt).source;
  } else if (!asked.prompt.empty()) {
    session.prompt = prompt_ids(inspected.tokenizer(), inspected.spec(), asked.prompt);
  } else {
    const std::vector<int32_t>& ids = asked.otherwise.ids;
    const DisplaySpans spans = display_spans(inspected.tokenizer(), ids);
    size_t count = std::min(ids.size() / 2 + 1, kStart);
    while (count < ids.size() && spans.continues(count)) ++count;
    session.prompt.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return session;
}

}  // namespace

std::string prompt_of(Inspected& inspected, const WrittenOn& asked) {
  const SessionOptions session = session_of(inspected, asked);
  return inspected.tokenizer().decode(session.source.empty() ? session.prompt : session.source,
                                      {.skip_specials = true});
}

std::string written_on(Inspected& inspected, const WrittenOn& asked, Probe* probe) {
  constexpr int64_t kPageMore = 2 * KvCache::kPage;  // whole pages, and one that may be copied
  const SessionOptions session = session_of(inspected, asked);
  Runner runner(inspected.model(), inspected.engine(),
                {.precision = inspected.precision(),
                 .cache = inspected.precision().compute,
                 .positions = std::ssize(session.prompt) + asked.max_new + kPageMore,
                 .sources = std::ssize(session.source) + kPageMore,
                 .probe = probe});
  Scheduler scheduler(runner);
  std::string text;
  submit_text(scheduler, inspected.tokenizer(),
              {.options = session, .own_text = !session.source.empty(), .on_end = [&](const WrittenText& w) {
                 text = w.ended == Ended::failed ? w.error : w.text;
               }});
  scheduler.run();
  return text;
}

}  // namespace qkv::app
