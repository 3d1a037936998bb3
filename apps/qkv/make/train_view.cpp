#include "make/train_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "common/drawing.h"

namespace qkv::app {
namespace {

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

// Text that a model wrote or read, with a mark before each of its lines.
std::string marked(const char* mark, std::string_view text) {
  std::string all;
  while (true) {
    const size_t end = std::min(text.find_first_of("\n\r\v\f"), text.size());
    all += fmt::format("    {} {}\n", mark, text.substr(0, end));
    if (end == text.size()) return all;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void TrainView::show_plan(const Start& start, const TrainPlan& plan) {
  best_product_ = plan.best_product;
  const Recipe& recipe = start.recipe;
  const Trainer::Memory& memory = plan.memory;
  if (show_ == Show::json) {
    std::cout << Json{{"parameters", plan.parameters},
                      {"tokens_per_step", recipe.batch_tokens},
                      {"train_tokens", start.data.train_tokens},
                      {"validation_tokens", start.data.validation_tokens},
                      {"memory",
                       {{"weights", memory.weights},
                        {"copies", memory.copies},
                        {"gradients", memory.gradients},
                        {"optimizer", memory.states},
                        {"activations", memory.activations}}},
                      {"memory_of_a_checkpoint", memory.checkpoint()},
                      {"device", start.engine.device().name()},
                      {"memory_free", memory.free},
                      {"expected_seconds", plan.seconds}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << fmt::format("{}: a {} of {:.2f} M parameters, {} in {}\n", recipe.name, start.model.spec().family,
                           static_cast<double>(plan.parameters) / 1e6, name_of(recipe.objective),
                           recipe.bf16 ? "bf16 with f32 masters" : "f32")
            << labelled("data", fmt::format("{} tokens to train on, {} to check with; {:.2f} epochs",
                                            start.data.train_tokens, start.data.validation_tokens, plan.epochs))
            << labelled("steps",
                        fmt::format("{}{} of {} tokens in {} micro-batch{}; warm-up {}, decay {}",
                                    start.done == 0 ? "" : fmt::format("{} done, of ", start.done), recipe.steps,
                                    recipe.batch_tokens, recipe.micro_batches, recipe.micro_batches == 1 ? "" : "es",
                                    recipe.schedule.warmup, recipe.schedule.decay))
            << labelled(
                   "memory",
                   fmt::format(
                       "{} of {} free on {}: weights {}, bf16 copies {}, gradients {}, optimiser {}, activations {}; "
                       "of the host {} more while a checkpoint is written",
                       megabytes(memory.total()), megabytes(memory.free), start.engine.device().name(),
                       megabytes(memory.weights), megabytes(memory.copies), megabytes(memory.gradients),
                       megabytes(memory.states), megabytes(memory.activations), megabytes(memory.checkpoint())))
            << labelled("time", fmt::format("about {} if steps reach 40 % of a large matmul's {:.2f} TFLOP/s",
                                            duration(plan.seconds), best_product_ / 1e12));
  std::cout.flush();
  progress_.emplace("training", recipe.steps, stderr, ProgressOptions{.first = start.done});
}

void TrainView::show_step(const StepReport& report, double rate) {
  if (!progress_) return;
  progress_->update(report.step + 1,
                    fmt::format("loss {:.3f}  {:.1f} k tokens/s  {:.2f} TFLOP/s ({:.0f} % of matmul peak)",
                                report.result.loss, static_cast<double>(report.result.tokens) / report.seconds / 1e3,
                                rate / 1e12, 100 * rate / best_product_));
}

void TrainView::show_evaluation(const EvalResult& result, bool best) {
  if (result.counted == 0) return;  // nothing is held out
  if (show_ == Show::json) {
    std::cout << log_line(result).dump() << '\n';
    std::cout.flush();
    return;
  }
  std::cout << fmt::format("step {:>6}  held-out loss {:.4f}  perplexity {:.2f}  {:.3f} bits per byte{}\n", result.step,
                           result.loss, result.perplexity, result.bits_per_byte, best ? "  (best so far)" : "");
  std::cout.flush();
}

void TrainView::show_samples(int64_t step, const std::vector<std::string>& texts) {
  if (show_ == Show::json) return;
  for (size_t n = 0; n < texts.size(); ++n) {
    const std::string number = texts.size() == 1 ? "" : fmt::format(", {} of {}", n + 1, texts.size());
    std::cout << fmt::format("step {:>6}  a sample{}:\n", step, number) << marked("|", texts[n]);
  }
  std::cout.flush();
}

void TrainView::show_translations(const TranslationScore& score) {
  if (show_ == Show::json) return;
  std::cout << fmt::format("             BLEU {:.1f}  chrF {:.1f} on {} held-out lines, greedy\n", score.bleu,
                           score.chrf, score.lines);
  for (const auto& [source, translation] : score.examples) {
    std::cout << marked("|", source) << marked(">", translation);
  }
  std::cout.flush();
}

void TrainView::show_end(StopReason end, const TrainCounters& counters, const std::filesystem::path& run) {
  if (progress_) progress_->finish();
  const char* why = end == StopReason::finished  ? "done"
                    : end == StopReason::stopped ? "stopped as asked, and saved"
                                                 : "no better for a while";
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

void TrainView::show_watched(const WatchEnd& watched, const std::filesystem::path& run) {
  if (show_ == Show::json) {
    std::cout << Json{{"snapshots", watched.snapshots},
                      {"watch_seconds", watched.seconds},
                      {"watch_share", watched.share}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << fmt::format("  watching cost {:.1f} % ({:.2f} s for {} snapshots and the importance of heads)\n",
                           100 * watched.share, watched.seconds, watched.snapshots)
            << fmt::format("  see it learn:  qkv movie {}\n", run.string());
}

}  // namespace qkv::app
