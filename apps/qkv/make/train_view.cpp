#include "make/train_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>

#include "base/error.h"
#include "base/printable.h"
#include "common/drawing.h"
#include "eval/bleu.h"
#include "eval/chrf.h"
#include "infer/scheduler.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::app {
namespace {

std::string megabytes(int64_t bytes) {
  return bytes >= 1'000'000'000 ? fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9)
                                : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(seconds);
  return s < 90     ? fmt::format("{:.0f} s", seconds)
         : s < 5400 ? fmt::format("{} min", (s + 30) / 60)
                    : fmt::format("{:.1f} h", seconds / 3600);
}

// A line of the plan; what does not fit goes on below it.
std::string labelled(const char* label, const std::string& text) {
  constexpr int kLeft = 12;
  std::string all;
  for (const std::string& line : wrap(text, std::max(terminal_columns() - kLeft, 20))) {
    all += fmt::format("  {:<{}}{}\n", all.empty() ? label : "", kLeft - 2, line);
  }
  return all;
}

// The best rate of one large product in the run's precision: what steps are measured against.
double measure_product(const Engine& engine, Precision precision) {
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
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    const auto start = std::chrono::steady_clock::now();
    cx.kernels.linear(cx.exec, {.y = y, .x = x, .w = w});
    engine.device().finish();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2 * std::pow(static_cast<double>(size), 3) / seconds);
  }
  return best;
}

}  // namespace

TrainView::TrainView(const Engine& engine, const Recipe& recipe, Trainer& trainer, const TrainData& data,
                     std::filesystem::path tokenizer, Show show)
    : engine_(engine), recipe_(recipe), trainer_(trainer), data_(data), tokenizer_(std::move(tokenizer)), show_(show) {
  if (show == Show::lines) progress_.emplace("training", recipe.steps);
}

void check_memory(const Trainer::Memory& memory, const Device& device) {
  QKV_CHECK(memory.total() <= memory.free, "this run needs ", megabytes(memory.total()), " (weights ",
            megabytes(memory.weights), ", copies in bf16 ", megabytes(memory.copies), ", gradients ",
            megabytes(memory.gradients), ", optimiser ", megabytes(memory.states), ", activations ",
            megabytes(memory.activations), ") but ", megabytes(memory.free), " are free on ", device.name(),
            Hint("more micro-batches, a shorter sequence, or recompute=true need less"));
  if (&device == &cpu_device()) return;
  const int64_t host = cpu_device().free_bytes();
  QKV_CHECK(memory.checkpoint() <= host,
            "a checkpoint of this run is copied to the host before it is written, which needs ",
            megabytes(memory.checkpoint()), ", but ", megabytes(host), " are free there",
            Hint("a smaller model, or a machine with more memory"));
}

void TrainView::check(const Model& model) const {
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

void TrainView::show_plan(const Model& model, const Trainer::Memory& memory) {
  best_product_ = measure_product(engine_, recipe_.precision());
  int64_t parameters = 0;
  for (const auto& [name, weight] : model.weights()) parameters += weight.shape().count();
  const double seconds = trainer_.operations_per_step() * static_cast<double>(recipe_.steps) / (0.4 * best_product_);
  const double epochs = static_cast<double>(recipe_.steps) * static_cast<double>(recipe_.batch_tokens) /
                        static_cast<double>(std::max<uint64_t>(data_.train_tokens, 1));
  if (show_ == Show::nothing) return;
  if (show_ == Show::json) {
    std::cout << Json{{"parameters", parameters},
                      {"tokens_per_step", recipe_.batch_tokens},
                      {"train_tokens", data_.train_tokens},
                      {"validation_tokens", data_.validation_tokens},
                      {"memory",
                       {{"weights", memory.weights},
                        {"copies", memory.copies},
                        {"gradients", memory.gradients},
                        {"optimizer", memory.states},
                        {"activations", memory.activations}}},
                      {"device", engine_.device().name()},
                      {"memory_free", memory.free},
                      {"expected_seconds", seconds}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << fmt::format("{}: a {} of {:.2f} M parameters, {} in {}\n", recipe_.name, model.spec().family,
                           static_cast<double>(parameters) / 1e6, name_of(recipe_.objective),
                           recipe_.bf16 ? "bf16 with f32 masters" : "f32")
            << labelled("data", fmt::format("{} tokens to train on, {} to check with; {:.2f} epochs",
                                            data_.train_tokens, data_.validation_tokens, epochs))
            << labelled("steps",
                        fmt::format("{} of {} tokens in {} micro-batch{}; warm-up {}, decay {}", recipe_.steps,
                                    recipe_.batch_tokens, recipe_.micro_batches, recipe_.micro_batches == 1 ? "" : "es",
                                    recipe_.schedule.warmup, recipe_.schedule.decay))
            << labelled(
                   "memory",
                   fmt::format(
                       "{} of {} free on {}: weights {}, bf16 copies {}, gradients {}, optimiser {}, activations {}",
                       megabytes(memory.total()), megabytes(memory.free), engine_.device().name(),
                       megabytes(memory.weights), megabytes(memory.copies), megabytes(memory.gradients),
                       megabytes(memory.states), megabytes(memory.activations)))
            << labelled("time", fmt::format("about {} if steps reach 40 % of a large matmul's {:.2f} TFLOP/s",
                                            duration(seconds), best_product_ / 1e12));
  std::cout.flush();
}

void TrainView::show_step(const StepReport& report) {
  if (!progress_) return;
  progress_->update(report.step + 1,
                    fmt::format("loss {:.3f}  {:.1f} k tokens/s  {:.2f} TFLOP/s ({:.0f} % of matmul peak)",
                                report.result.loss, static_cast<double>(report.result.tokens) / report.seconds / 1e3,
                                rate(report) / 1e12, 100 * rate(report) / best_product_));
}

void TrainView::show_evaluation(const EvalResult& result, bool best) {
  if (result.counted == 0) return;  // nothing is held out
  if (show_ == Show::nothing) return;
  if (show_ == Show::json) {
    std::cout << log_line(result).dump() << '\n';
    std::cout.flush();
    return;
  }
  std::cout << fmt::format("step {:>6}  held-out loss {:.4f}  perplexity {:.2f}  {:.3f} bits per byte{}\n", result.step,
                           result.loss, result.perplexity, result.bits_per_byte, best ? "  (best so far)" : "");
  std::cout.flush();
}

void TrainView::show_end(StopReason end, const std::filesystem::path& run) {
  if (progress_) progress_->finish();
  const TrainCounters& counters = trainer_.counters();
  const char* why = end == StopReason::finished  ? "done"
                    : end == StopReason::stopped ? "stopped as asked, and saved"
                                                 : "no better for a while";
  if (show_ == Show::nothing) return;
  if (show_ == Show::json) {
    std::cout
        << Json{{"ended", why}, {"step", counters.step}, {"best", counters.best}, {"seconds", counters.seconds}}.dump()
        << '\n';
    return;
  }
  std::cout << fmt::format("{} after {} steps, {} tokens, {} of training", why, counters.step, counters.tokens,
                           duration(counters.seconds));
  if (counters.best_step >= 0)
    std::cout << fmt::format("; best held-out loss {:.4f} at step {}", counters.best, counters.best_step);
  std::cout << fmt::format("\n  the model: {}\n", (run / (counters.best_step >= 0 ? "best" : "last")).string());
  if (end == StopReason::stopped)
    std::cout << fmt::format("  continue with  qkv train --resume --out {}\n", run.string());
}

Json TrainView::log_line(const StepReport& report) const {
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

Json TrainView::log_line(const EvalResult& result) const {
  return {{"step", result.step},
          {"val_loss", result.loss},
          {"val_perplexity", result.perplexity},
          {"bits_per_byte", result.bits_per_byte},
          {"val_tokens", result.counted}};
}

std::vector<std::string> TrainView::samples(const Model& model) {
  std::vector<std::string> texts;
  if (recipe_.evaluate.samples == 0 || model.spec().kind != ModelSpec::Kind::decoder_only) return texts;
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_);
  const int64_t length = sample_length();
  Runner runner(model, engine_,
                {.precision = recipe_.precision(), .cache = recipe_.precision().compute, .positions = length});
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
    if (show_ == Show::lines) std::cout << "    | " << texts.back() << '\n';
  }
  return texts;
}

std::optional<TranslationScore> TrainView::translations(const Model& model) {
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
  Runner runner(model, engine_,
                {.precision = recipe_.precision(),
                 .cache = recipe_.precision().compute,
                 .positions = kAtOnce * (KvCache::whole_pages(longest) + KvCache::kPage)});
  Scheduler scheduler(runner, {.most_active = kAtOnce, .most_waiting = static_cast<int64_t>(kLines)});
  std::vector<std::string> written(sources.size());
  for (size_t n = 0; n < sources.size(); ++n) {
    SessionOptions options{.source = sources[n], .max_new = longest - 1};
    options.sampling.temperature = 0;
    scheduler.submit({.options = std::move(options), .on_end = [&, n](const Session& s) {
                        written[n] = text_of(std::span(s.ids()).subspan(static_cast<size_t>(s.prompt_length())));
                      }});
  }
  scheduler.run();
  BleuCounts words;
  ChrfCounts characters;
  for (size_t n = 0; n < written.size(); ++n) {
    const std::string_view reference = references[n];
    words += bleu_counts(written[n], {&reference, 1}, BleuTokenizer::chinese);  // the same as 13a without Chinese
    characters += chrf_counts(written[n], {&reference, 1}, ChrfWords::none);
  }
  const TranslationScore score{bleu(words).score, chrf(characters, ChrfWords::none),
                               static_cast<int64_t>(written.size())};
  if (show_ == Show::lines) {
    std::cout << fmt::format("             BLEU {:.1f}  chrF {:.1f} on {} held-out lines, greedy\n", score.bleu,
                             score.chrf, score.lines);
    for (size_t n = 0; n < std::min<size_t>(2, written.size()); ++n) {
      std::cout << "    | " << text_of(sources[n]) << "\n    > " << written[n] << '\n';
    }
    std::cout.flush();
  }
  return score;
}

}  // namespace qkv::app
