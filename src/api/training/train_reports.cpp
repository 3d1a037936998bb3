#include "api/training/train_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "eval/bleu.h"
#include "eval/chrf.h"
#include "infer/scheduler.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {
namespace {

// The best rate of one large product in the run's precision: what steps are measured against. Nobody waits long for it.
double measure_product(const Engine& engine, Precision precision) {
  constexpr int kMostRounds = 8;
  constexpr double kLongEnough = 0.5;                                     // seconds
  const int64_t size = engine.device().stream() == nullptr ? 768 : 4096;  // a launch takes as long as a small one
  Arena arena(engine.device());
  Context cx = engine.context(arena, precision);
  const auto filled = [&] {
    const Tensor t = cx.constant({size, size}, precision.compute);
    cx.kernels.fill(cx.exec, {.y = t, .value = 0.37});
    return t;
  };
  const Tensor x = filled(), w = filled(), y = filled();
  engine.device().finish();
  double best = 0, spent = 0;
  for (int i = 0; i < kMostRounds && spent < kLongEnough; ++i) {
    const auto start = std::chrono::steady_clock::now();
    cx.kernels.linear(cx.exec, {.y = y, .x = x, .w = w});
    engine.device().finish();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent += seconds;
    best = std::max(best, 2 * std::pow(static_cast<double>(size), 3) / seconds);
  }
  return best;
}

// What the model writes beside a training, which no plan counts. Where it does not fit there is none: an Error here would
// end the training before its checkpoint.
template <class Write>
auto written_beside(const char* what, const Write& write) -> decltype(write()) {
  try {
    return write();
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;
    log_line(Log::warn, fmt::format("no {} this time: {}", what, error.message()));
    return {};
  }
}

// "micro_batches=4 would need 1.20 GB", of what fits; else how little it can be.
std::string what_needs_less(const Trainer::Memory& memory, std::vector<Trainer::Alternative> all) {
  const auto by_total = [](const auto& a, const auto& b) { return a.total < b.total; };
  const auto fits = [&](const auto& one) { return one.total <= memory.free; };
  const std::string others = "fewer batch_tokens, a smaller model or frozen weights need less";
  if (all.empty()) return others;
  if (std::none_of(all.begin(), all.end(), fits)) {
    const Trainer::Alternative& least = *std::min_element(all.begin(), all.end(), by_total);
    return fmt::format("{} needs {}, which is too much as well; {}", least.change, megabytes(least.total), others);
  }
  std::string text;
  for (const Trainer::Alternative& one : all) {
    if (fits(one)) text += fmt::format("{}{} needs {}", text.empty() ? "" : ", ", one.change, megabytes(one.total));
  }
  return text;
}

}  // namespace

std::string megabytes(int64_t bytes) {
  return bytes >= 1'000'000'000 ? fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9)
                                : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

void check_memory(const Trainer::Memory& memory, const Device& device,
                  FunctionRef<std::vector<Trainer::Alternative>()> alternatives) {
  QKV_CHECK(memory.total() <= memory.free, "this run needs ", megabytes(memory.total()), " (weights ",
            megabytes(memory.weights), ", copies in bf16 ", megabytes(memory.copies), ", gradients ",
            megabytes(memory.gradients), ", optimiser ", megabytes(memory.states), ", activations ",
            megabytes(memory.activations), ") but ", megabytes(memory.free), " are free on ", device.name(),
            Hint(what_needs_less(memory, alternatives())));
  if (&device == &cpu_device()) return;
  const int64_t host = cpu_device().free_bytes();
  QKV_CHECK(memory.checkpoint() <= host,
            "a checkpoint of this run is copied to the host before it is written, which needs ",
            megabytes(memory.checkpoint()), ", but ", megabytes(host), " are free there",
            Hint("a smaller model, or a machine with more memory"));
}

void TrainReports::check(const Model& model) const {
  int64_t counted = 0;
  for (int64_t m = 0; m < recipe_.micro_batches; ++m) {
    const TrainBatch batch = data_.micro_batch(0, m);
    counted +=
        std::count_if(batch.targets.begin(), batch.targets.end(), [](int32_t t) { return t != TrainBatch::kIgnored; });
  }
  QKV_CHECK(counted > 0, "the first step has ", recipe_.batch_tokens, " tokens but nothing to predict",
            Hint("are there answers in the conversations, or whole texts in the data?"));
  if (recipe_.evaluate.samples == 0 || model.spec().kind != ModelSpec::Kind::decoder_only) return;
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_);
  for (const std::string& prompt : recipe_.evaluate.prompts) {
    const int64_t tokens = std::ssize(tokenizer.encode(prompt));
    QKV_CHECK(tokens < sample_length(), "evaluate.prompts: ", printable(prompt), " has ", tokens,
              " tokens but a sample has ", sample_length(), ", of which at least one is to be written",
              Hint("shorten it, or set a longer sequence"));
  }
}

TrainPlan TrainReports::plan(const Model& model, const Trainer::Memory& memory) {
  best_product_ = measure_product(engine_, recipe_.precision());
  TrainPlan plan{.memory = memory, .best_product = best_product_};
  for (const auto& [name, weight] : model.weights()) plan.parameters += weight.shape().count();
  const int64_t left = std::max<int64_t>(recipe_.steps - trainer_.counters().step, 0);
  plan.seconds = trainer_.operations_per_step() * static_cast<double>(left) / (0.4 * best_product_);
  plan.epochs = static_cast<double>(recipe_.steps) * static_cast<double>(recipe_.batch_tokens) /
                static_cast<double>(std::max<uint64_t>(data_.train_tokens, 1));
  return plan;
}

Json TrainReports::log_line(const StepReport& report) const {
  Json line{{"step", report.step + 1},
            {"loss", report.result.loss},
            {"lr", report.lr},
            {"grad_norm", report.result.grad_norm},
            {"tokens", report.result.tokens},
            {"tokens_per_s", static_cast<double>(report.result.tokens) / report.seconds},
            {"tflops", rate(report) / 1e12}};
  if (report.result.balance > 0) line["balance"] = report.result.balance;
  return line;
}

Json log_line(const EvalResult& result) {
  return {{"step", result.step},
          {"val_loss", result.loss},
          {"val_perplexity", result.perplexity},
          {"bits_per_byte", result.bits_per_byte},
          {"val_tokens", result.counted}};
}

std::vector<std::string> TrainReports::samples(const Model& model) const {
  if (recipe_.evaluate.samples == 0 || model.spec().kind != ModelSpec::Kind::decoder_only) return {};
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_);
  return written_beside("samples", [&] {
    std::vector<std::string> texts;
    Runner runner(
        model, engine_,
        {.precision = recipe_.precision(), .cache = recipe_.precision().compute, .positions = sample_length()});
    for (int64_t n = 0; n < recipe_.evaluate.samples; ++n) {
      SessionOptions options;
      if (!recipe_.evaluate.prompts.empty()) {
        options.prompt =
            tokenizer.encode(recipe_.evaluate.prompts[static_cast<size_t>(n) % recipe_.evaluate.prompts.size()]);
      }
      if (options.prompt.empty()) options.prompt = {tokenizer.named().eos.value_or(0)};
      options.sampling = {.temperature = 0.8, .top_k = 40, .seed = static_cast<uint64_t>(n)};
      Session session(runner, std::move(options));
      while (session.next()) {
      }
      texts.push_back(tokenizer.decode(session.ids(), {.skip_specials = true}));
    }
    return texts;
  });
}

std::optional<TranslationScore> TrainReports::translations(const Model& model) const {
  constexpr size_t kLines = 200;
  if (recipe_.objective != Recipe::Objective::translate || data_.validation_batches() == 0) return std::nullopt;
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_);
  const auto text_of = [&](std::span<const int32_t> ids) { return tokenizer.decode(ids, {.skip_specials = true}); };
  std::vector<std::vector<int32_t>> sources;
  std::vector<std::string> references;
  for (int64_t b = 0; b < data_.validation_batches() && sources.size() < kLines; ++b) {
    const TrainBatch batch = data_.validation_batch(b);
    size_t source = 0, target = 0;
    for (size_t n = 0; n < batch.lengths.size() && sources.size() < kLines; ++n) {
      const auto words = static_cast<size_t>(batch.source_lengths[n]), length = static_cast<size_t>(batch.lengths[n]);
      sources.emplace_back(batch.source_ids.begin() + static_cast<int64_t>(source),
                           batch.source_ids.begin() + static_cast<int64_t>(source + words));
      references.push_back(text_of(std::span(batch.targets).subspan(target, length)));
      source += words;
      target += length;
    }
  }
  constexpr int64_t kAtOnce = 32;
  const int64_t longest = recipe_.sequence;
  const std::vector<std::string> written = written_beside("translations", [&] {
    Runner runner(model, engine_,
                  {.precision = recipe_.precision(),
                   .cache = recipe_.precision().compute,
                   .positions = kAtOnce * (KvCache::whole_pages(longest) + KvCache::kPage)});
    Scheduler scheduler(runner, {.most_active = kAtOnce, .most_waiting = static_cast<int64_t>(kLines)});
    std::vector<std::string> texts(sources.size());
    std::string failure, hint;
    for (size_t n = 0; n < sources.size(); ++n) {
      SessionOptions options{.source = sources[n], .max_new = longest - 1};
      options.sampling.temperature = 0;
      scheduler.submit({.options = std::move(options), .on_end = [&, n](const Session& s) {
                          if (s.ended() == Ended::failed) {
                            failure = s.error();
                            hint = s.hint();
                          }
                          texts[n] = text_of(std::span(s.ids()).subspan(static_cast<size_t>(s.prompt_length())));
                        }});
    }
    scheduler.run();
    QKV_CHECK(failure.empty(), "a translation failed: ", failure, Hint(hint));
    return texts;
  });
  if (written.empty()) return std::nullopt;
  BleuCounts words;
  ChrfCounts characters;
  for (size_t n = 0; n < written.size(); ++n) {
    const std::string_view reference = references[n];
    words += bleu_counts(written[n], {&reference, 1}, BleuTokenizer::chinese);  // the same as 13a without Chinese
    characters += chrf_counts(written[n], {&reference, 1}, ChrfWords::none);
  }
  TranslationScore score{bleu(words).score, chrf(characters, ChrfWords::none), std::ssize(written), {}};
  for (size_t n = 0; n < std::min<size_t>(2, written.size()); ++n) {
    score.examples.emplace_back(text_of(sources[n]), written[n]);
  }
  return score;
}

}  // namespace qkv
