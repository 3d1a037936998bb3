#include "infer/text_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "infer/stop_strings.h"
#include "text/tokenizer/stream_decoder.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// One text while it is generated.
class TextStream {
 public:
  TextStream(std::vector<int32_t> ends, TextRequest& request, std::optional<Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)),
        stops_(std::move(request.stop)),
        on_token_(std::move(request.on_token)),
        on_text_(std::move(request.on_text)),
        on_end_(std::move(request.on_end)),
        ends_(std::move(ends)) {
    if (!tokenizer_) return;
    decoder_.emplace(*tokenizer_, kShown);
    if (!request.own_text) start_after(request.options.prompt);
  }

  bool take(const Choice& choice) {
    now_ = Clock::now();
    if (written_.tokens.empty()) first_ = now_;
    written_.tokens.push_back(choice);
    if (on_token_) on_token_(choice);
    const bool ends = std::find(ends_.begin(), ends_.end(), choice.id) != ends_.end();
    return ends || !is_text(choice.id) || show(decoder_->add(choice.id));
  }

  void end(const Session& session) {
    if (decoder_ && !unwanted_ && written_.stop.empty()) {
      show(decoder_->flush());
      if (written_.stop.empty()) tell(stops_.finish());
    }
    written_.prompt_tokens = session.prompt_length();
    written_.cached_tokens = session.cached();
    written_.ended = unwanted_ ? Ended::cancelled : written_.stop.empty() ? session.ended() : Ended::stopped;
    written_.error = session.error();
    written_.hint = session.hint();
    const bool wrote = !written_.tokens.empty();
    written_.prefill_seconds = seconds((wrote ? first_ : Clock::now()) - start_);
    written_.decode_seconds = wrote ? seconds(now_ - first_) : 0;
    if (on_end_) on_end_(written_);
  }

 private:
  static constexpr DecodeOptions kShown{.skip_specials = true};

  // Vocabularies are often rounded up: some ids have no token.
  bool is_text(int32_t id) const { return tokenizer_ && tokenizer_->has(id); }

  // The decoder starts with the prompt, whose text is left out of the output.
  void start_after(const std::vector<int32_t>& prompt) {
    StreamDecoder whole(*tokenizer_, kShown);
    for (const int32_t id : prompt) {
      if (!is_text(id)) continue;
      whole.add(id);
      decoder_->add(id);
    }
    left_out_ = whole.flush().size();
  }

  bool show(std::string text) {
    const size_t out = std::min(left_out_, text.size());
    left_out_ -= out;
    text.erase(0, out);
    while (out > 0 && !text.empty() && is_utf8_continuation(text[0])) text.erase(0, 1);
    StopStrings::Fed fed = stops_.feed(text);
    if (fed.stopped) written_.stop = std::move(fed.which);
    return tell(fed.show) && !fed.stopped;
  }

  bool tell(const std::string& text) {
    if (text.empty()) return true;
    written_.text += text;
    unwanted_ = on_text_ && !on_text_(text);
    return !unwanted_;
  }

  std::optional<Tokenizer> tokenizer_;
  std::optional<StreamDecoder> decoder_;
  StopStrings stops_;
  std::function<void(const Choice&)> on_token_;
  std::function<bool(std::string_view)> on_text_;
  std::function<void(const WrittenText&)> on_end_;
  std::vector<int32_t> ends_;
  size_t left_out_ = 0;  // bytes of the prompt that the decoder still holds
  bool unwanted_ = false;
  WrittenText written_;
  Clock::time_point start_ = Clock::now(), first_ = start_, now_ = start_;
};

Scheduler::Ticket submit(Scheduler& scheduler, TextRequest request, std::optional<Tokenizer> tokenizer) {
  std::vector<int32_t> ends = end_tokens(request.options, scheduler.runner().model().spec());
  const auto stream = std::make_shared<TextStream>(std::move(ends), request, std::move(tokenizer));
  return scheduler.submit({.options = std::move(request.options),
                           .on_token = [stream](const Choice& choice) { return stream->take(choice); },
                           .on_end = [stream](const Session& session) { stream->end(session); }});
}

}  // namespace

Scheduler::Ticket submit_text(Scheduler& scheduler, const Tokenizer& tokenizer, TextRequest request) {
  return submit(scheduler, std::move(request), tokenizer);
}

Scheduler::Ticket submit_ids(Scheduler& scheduler, TextRequest request) {
  return submit(scheduler, std::move(request), std::nullopt);
}

std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, const ModelSpec& spec, std::string_view text) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  if (!ids.empty()) return ids;
  const std::optional<int32_t> bos = spec.tokens.bos ? spec.tokens.bos : tokenizer.named().bos;
  if (bos) ids.push_back(*bos);
  return ids;
}

}  // namespace qkv
