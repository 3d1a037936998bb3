// Prefill against decode: the same work per token, but prefill computes many tokens at once.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/host_values.h"
#include "infer/runner.h"
#include "labs/labs.h"
#include "labs/small_model.h"
#include "world/draw.h"

namespace qkv::labs {
namespace {

constexpr int64_t kSpeedVocabulary = 2048, kRounds = 5;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Speeds {
  double prefill = 0, decode = 0, decode_batched = 0;  // tokens per second
};

// Best of several rounds, so that other load on the machine matters least.
Speeds speeds(const LabContext& lab, const Model& model, std::span<const int32_t> prompt) {
  constexpr int64_t kBatch = 8;
  const int64_t answer = lab.sized(32);
  Runner runner(model, lab.engine, {.positions = 2 * kBatch * (std::ssize(prompt) + answer)});
  Speeds best;
  for (int64_t round = 0; round < kRounds; ++round) {
    lab.check("reading and writing");
    std::vector<Runner::Part> parts{{.sequence = runner.start(), .ids = prompt}};
    double start = seconds_now();
    runner.prefill(parts.front());
    best.prefill = std::max(best.prefill, static_cast<double>(prompt.size()) / (seconds_now() - start));
    parts.front().ids = prompt.first(1);  // which token does not matter for the time
    start = seconds_now();
    for (int64_t i = 0; i < answer; ++i) runner.pass(parts);
    best.decode = std::max(best.decode, static_cast<double>(answer) / (seconds_now() - start));

    for (int64_t i = 1; i < kBatch; ++i) {
      parts.push_back({.sequence = runner.fork(parts.front().sequence, runner.length(parts.front().sequence)),
                       .ids = prompt.first(1)});
    }
    start = seconds_now();
    for (int64_t i = 0; i < answer; ++i) runner.pass(parts);
    best.decode_batched = std::max(best.decode_batched, static_cast<double>(answer * kBatch) / (seconds_now() - start));
    for (const Runner::Part& part : parts) runner.end(part.sequence);
  }
  return best;
}

// Logits of one plain pass against those through the KV cache: in uneven pieces, then token by token.
int64_t different_rows(const LabContext& lab, const Model& model, std::span<const int32_t> ids, Precision precision) {
  Arena arena(lab.engine.device());
  Context cx = lab.engine.context(arena, precision);
  const Rows rows = Rows::batch(cx, 1, std::ssize(ids));
  const std::vector<float> plain = host_floats(model.logits(cx, {.ids = cx.upload(ids), .rows = &rows}));
  Runner runner(model, lab.engine, {.precision = precision, .cache = precision.compute, .positions = std::ssize(ids)});
  const Runner::Sequence sequence = runner.start();
  int64_t different = 0;
  size_t piece = 23;
  for (size_t first = 0; first < ids.size();) {
    const size_t count = std::min(piece, ids.size() - first);
    const Runner::Part part{
        .sequence = sequence, .ids = ids.subspan(first, count), .logits = static_cast<int64_t>(count)};
    const std::span<const float> cached = runner.pass({&part, 1});
    for (size_t r = 0; r < count; ++r) {
      const size_t bytes = kSpeedVocabulary * sizeof(float);
      different +=
          std::memcmp(&cached[r * kSpeedVocabulary], &plain[(first + r) * kSpeedVocabulary], bytes) == 0 ? 0 : 1;
    }
    first += count;
    if (first > ids.size() / 2) piece = 1;
  }
  return different;
}

SeedNumbers measure_reading_writing(const LabContext& lab, uint64_t seed) {
  const bool full = lab.size >= 1;
  const auto model = fresh_model(lab,
                                 config_of({.vocabulary = kSpeedVocabulary,
                                            .width = full ? 512 : 64,
                                            .layers = full ? 8 : 2,
                                            .heads = 8,
                                            .context = 1024}),
                                 seed);
  world::Draw draw(seed, 0, 7);
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < 256; ++i) prompt.push_back(static_cast<int32_t>(draw.below(kSpeedVocabulary)));

  const Speeds speed = speeds(lab, *model, prompt);
  SeedNumbers out;
  out.add_amount("tokens read a second", speed.prefill);
  out.add_amount("tokens written a second", speed.decode);
  out.add_amount("tokens written a second, 8 answers at once", speed.decode_batched);
  out.add_amount("reading over writing", speed.prefill / speed.decode);
  out.add_amount("8 answers at once over one", speed.decode_batched / speed.decode);
  const std::span<const int32_t> some = std::span(prompt).first(100);
  out.add_amount("rows compared", 2 * static_cast<double>(some.size()));
  out.add_amount("cached differs from uncached, f32",
                 static_cast<double>(different_rows(lab, *model, some, Precision::f32())));
  out.add_amount("cached differs from uncached, bf16",
                 static_cast<double>(different_rows(lab, *model, some, Precision::bf16())));
  return out;
}

}  // namespace

const Lab& reading_writing() {
  static const Lab lab{
      .name = "reading-writing",
      .claim =
          "Reading a prompt (prefill) is several times faster per token than writing an answer (decode), and writing\n"
          "with a KV cache gives exactly the logits of a full pass without one.",
      .claim_zh = "读提示比写回答每个词快好几倍；用缓存写出的结果与从头重算完全一致，逐比特相同。",
      .how =
          "Eight layers of width 512 with initial weights, in bf16: a prompt of 256 tokens is read, 32 tokens are\n"
          "written, then 8 answers in one batch; the best of 5 rounds each. Logits of 100 tokens through the cache, "
          "in\n"
          "pieces and one by one, are compared bit by bit with those of one plain pass.",
      .seeds = 3,
      .rules = {{"reading over writing", LabRule::Side::above, 2, "clearly more than noise"},
                {"cached differs from uncached, f32", LabRule::Side::below, 0.5, "no row may"},
                {"cached differs from uncached, bf16", LabRule::Side::below, 0.5, "no row may"}},
      .found =
          {.seen =
               {"Reading is {reading over writing} times as fast as writing, and what the cache computes is the same "
                "to the last bit.",
                "读的速度是写的 {reading over writing} 倍，用缓存算出来的结果一个比特都不差。"},
           .mixed = {"Reading is {reading over writing} times as fast as writing; with the cache {cached differs from "
                     "uncached, f32} rows differ in f32 and {cached differs from uncached, bf16} in bf16.",
                     "读是写的 {reading over writing} 倍快；用缓存时，f32 有 {cached differs from uncached, f32} "
                     "行不同，bf16 "
                     "有 {cached differs from uncached, bf16} 行不同。"},
           .not_seen =
               {"Reading was only {reading over writing} times as fast as writing, and the cache changed logits.",
                "读的速度只是写的 {reading over writing} 倍，而且缓存改变了结果。"}},
      .measure = measure_reading_writing};
  return lab;
}

}  // namespace qkv::labs
