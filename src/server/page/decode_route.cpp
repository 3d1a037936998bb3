// /page/decode: a text read at once, then written token by token, with what each pass really took; with the cache of
// keys and values, or without it, when every token costs a pass over the whole text.
#include <algorithm>
#include <chrono>

#include "infer/runner.h"
#include "infer/session.h"
#include "inspect/report/look_report.h"
#include "inspect/report/numbers.h"
#include "model/kv_layouts.h"
#include "server/page/page_routes.h"

namespace qkv::server {
namespace {

constexpr int64_t kMostSteps = 128;
constexpr int kRepeats = 3;
constexpr double kShortPass = 0.1;    // seconds
constexpr double kLongestDecode = 8;  // seconds; it ends there and says so

struct DecodeStep {
  int64_t rows = 0, length = 0;  // of the pass; positions the cache holds after it
  double seconds = 0;
  int64_t cache_bytes = 0;  // after it
  int32_t token = 0;        // what it chose
};

class Decoder {
 public:
  Decoder(const PageText& asked, Runner& runner, bool cached) : asked_(asked), runner_(runner), cached_(cached) {
    layouts_ = kv_layouts(asked.model.spec());
  }

  // One pass over what is new, or over everything where nothing is kept. A short pass is made again, and the fastest
  // counts: on a busy machine a single one says little.
  DecodeStep step(std::span<const int32_t> ids) {
    DecodeStep best = once(ids);
    for (int again = 1; again < kRepeats && best.seconds < kShortPass; ++again) {
      if (cached_) runner_.truncate(sequence_, best.length - best.rows);
      const DecodeStep next = once(ids);
      best.seconds = std::min(best.seconds, next.seconds);
    }
    return best;
  }
  void end() {
    if (sequence_.own >= 0) runner_.end(sequence_);
    sequence_ = {};
  }

 private:
  DecodeStep once(std::span<const int32_t> ids) {
    const auto start = std::chrono::steady_clock::now();
    if (!cached_) end();
    if (sequence_.own < 0) sequence_ = asked_.text.source.empty() ? runner_.start() : runner_.start(asked_.text.source);
    const int64_t before = runner_.length(sequence_);
    const std::span<const float> logits =
        runner_.prefill({.sequence = sequence_, .ids = ids.subspan(static_cast<size_t>(before))});
    DecodeStep made{.rows = std::ssize(ids) - before, .length = std::ssize(ids)};
    made.token = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (cached_) made.cache_bytes = bytes_of(made.length);
    return made;
  }
  // Of positions, not of whole pages.
  int64_t bytes_of(int64_t positions) const {
    const int64_t pages = KvCache::bytes_for(layouts_, runner_.options().cache, positions);
    return pages * positions / KvCache::whole_pages(positions);
  }

  const PageText& asked_;
  Runner& runner_;
  bool cached_;
  std::vector<KvLayout> layouts_;
  Runner::Sequence sequence_;
};

Json decode_json(PageModel& model, const DecodeStep& step) {
  const ShownToken shown = shown_ids(&model.opened().target_tokenizer(), std::span(&step.token, 1)).front();
  return {{"rows", step.rows},
          {"length", step.length},
          {"ms", brief(1e3 * step.seconds)},
          {"cache_bytes", step.cache_bytes},
          {"id", step.token},
          {"text", shown.text}};
}

}  // namespace

HttpResponse page_decode(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  PageModel& model = asked.model;
  if (model.spec().kind == ModelSpec::Kind::encoder_only) fields.fail("model", "is an encoder: it writes no text");
  const int64_t steps = fields.whole("steps", {1, kMostSteps}).value_or(24);
  const bool cached = fields.flag("cache").value_or(true);
  const std::unique_ptr<CutProbe> probe = model.probe_of(asked.cut);
  const auto room = [](int64_t tokens) { return KvCache::whole_pages(tokens) + KvCache::kPage; };
  std::vector<int32_t> ids = decoder_prompt(asked.text.ids, model.spec());
  const int64_t prompt = std::ssize(ids);
  Runner runner = model.opened().runner({.cache = model.precision().compute,
                                         .positions = room(prompt + steps),
                                         .sources = room(std::ssize(asked.text.source)),
                                         .probe = probe.get()});
  const std::vector<int32_t> ends = end_tokens({}, model.spec());
  Decoder warm(asked, runner, false);  // touches the weights and the pages, so that the first pass is as fast as others
  warm.step(ids);
  warm.end();

  Decoder decoder(asked, runner, cached);
  Json list = Json::array();
  const char* finish = "length";
  double seconds = 0;
  for (int64_t i = 0; i <= steps; ++i) {
    const DecodeStep step = decoder.step(ids);
    list.push_back(decode_json(model, step));
    seconds += step.seconds;
    const bool over = std::find(ends.begin(), ends.end(), step.token) != ends.end();
    if (over || std::ssize(ids) >= runner.context() || seconds > kLongestDecode) {
      finish = over ? "end" : seconds > kLongestDecode ? "time" : "context";
      break;
    }
    if (i < steps) ids.push_back(step.token);
  }
  decoder.end();
  const MemoryNeed need = Runner::need(model.model(), model.engine(), runner.options());
  Json answer{{"cache", cached},
              {"prompt", prompt},
              {"steps", std::move(list)},
              {"ids", ids},
              {"finish", finish},
              {"weight_bytes", need.weights},
              {"dtype", name_of(runner.options().cache)},
              {"threads", model.engine().threads()}};
  answer["tokens"] = tokens_json(shown_ids(&model.opened().target_tokenizer(), ids));
  return report_response(answer);
}

}  // namespace qkv::server
