#include "api/training/train_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/replace.h"
#include "train/checkpoint_files.h"
#include "train/prepare.h"
#include "train/prepared.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

double gibibytes(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 30);
}

}  // namespace

TrainRun::TrainRun(TrainRunOptions options, Comm& comm)
    : options_(std::move(options)),
      comm_(comm),
      kernels_(&kernels::table_for(options_.device, 0)),
      recipe_(open_run()),
      prepared_(fs::path(options_.out) / "prepared"),
      screen_(options_.screen != nullptr ? options_.screen : &nobody_) {
  try {
    set_up();
  } catch (...) {
    forget();
    throw;
  }
  if (options_.resume) go_on();
}

// A run that has not begun leaves nothing.
void TrainRun::forget() {
  if (run_ && !options_.resume) fs::remove_all(run_->path());
}

std::optional<StopReason> TrainRun::run() {
  if (run_) {
    reports_.emplace(*engine_, recipe_, *trainer_, *data_, prepared_ / "tokenizer");
    try {
      reports_->check(*model_);
      if (options_.screen != nullptr) {
        screen_->show_plan({*engine_, recipe_, *model_, *data_, trainer_->counters().step},
                           reports_->plan(*model_, memory_));
      }
    } catch (...) {
      forget();
      throw;
    }
  }
  if (options_.dry) {
    forget();
    return std::nullopt;
  }
  if (run_ && to_json(recipe_) != to_json(run_->recipe())) run_->set_recipe(recipe_);
  if (run_ && (recipe_.watch || WatchFolder::exists(run_->path()))) {
    watch_.emplace(run_->path(), *engine_, recipe_, *model_, *data_);
    watch_->on_snapshot = options_.observer.on_snapshot;
    watch_->begin(trainer_->counters());
  }
  TrainHooks hooks;
  hooks.stop = options_.stop;
  if (run_) {
    hooks.on_step = [&](const StepReport& report) { tell(report); };
    hooks.on_evaluation = [&](const EvalResult& result, bool best) { tell(result, best); };
  }
  hooks.on_save = [&](const TrainCounters& counters, bool best) { save(counters, best); };
  if (run_ && options_.resume) run_->remove_after(trainer_->counters().step);  // now it is certain that it goes on
  const StopReason end = trainer_->run(hooks, watch_ ? watch_->probe() : nullptr);
  if (run_) run_->wait();
  if (!run_) return end;
  screen_->show_end(end, trainer_->counters(), run_->path());
  if (watch_) screen_->show_watched(watch_->end(trainer_->counters()), run_->path());
  return end;
}

// The first rank opens the folder; the others hear what is to be done. What is wrong is said by the first alone: the
// others wait for it until it ends the job.
Recipe TrainRun::open_run() {
  std::string text;
  if (comm_.rank() == 0) {
    if (options_.resume) {
      run_.emplace(RunFolder::open(options_.out));
      text = to_json(resumed_recipe()).dump();
    } else {
      Recipe recipe = with_full_paths(read_recipe(options_.recipe(), options_.named, comm_.size()));
      DataParallel::check_ranks(comm_.size(), recipe.micro_batches);
      recipe.watch |= options_.watch;
      run_.emplace(RunFolder::create(options_.out, recipe));
      text = to_json(recipe).dump();
    }
  }
  const std::vector<std::byte> said = comm_.all_gather(std::as_bytes(std::span(text))).front();
  return read_recipe(
      parse_json(std::string_view(reinterpret_cast<const char*>(said.data()), said.size()), "recipe.json"),
      "recipe.json");
}

// The run's recipe with what is changed now; run() writes it once it is certain that the run goes on with it.
Recipe TrainRun::resumed_recipe() const {
  const std::string file = (fs::path(options_.out) / "recipe.json").string();
  Recipe recipe = run_->recipe();
  if (!options_.set.empty()) {
    recipe = with_full_paths(read_recipe(changed_recipe(to_json(recipe), {.set = options_.set}), file));
  }
  DataParallel::check_ranks(comm_.size(), recipe.micro_batches);
  recipe.watch |= options_.watch;
  return recipe;
}

// An Error of several ranks is thrown by the first of them; the others wait for it to end the job.
void TrainRun::set_up() {
  if (run_) prepare();
  comm_.barrier();
  std::exception_ptr failure;
  try {
    open_prepared();
  } catch (...) {
    failure = std::current_exception();
  }
  const bool failed = failure != nullptr;
  const auto all = comm_.all_gather(std::as_bytes(std::span(&failed, 1)));
  const auto first = std::find_if(all.begin(), all.end(), [](const auto& each) { return each[0] != std::byte{0}; });
  if (first != all.end()) {
    if (first - all.begin() == comm_.rank()) std::rethrow_exception(failure);
    comm_.barrier();
  }
  choose_device();
  connect_gpus();
  trainer_.emplace(*engine_, recipe_, *model_, *data_, nccl_ ? *nccl_ : comm_);
}

// Preparing writes all or nothing. What is not there although it was is made again only while nothing was trained on it.
void TrainRun::prepare() {
  const fs::path missing = missing_of_prepared(prepared_);
  if (missing.empty()) {
    for (const std::string& change : check_prepared(prepared_, recipe_)) {
      log_line(Log::warn, fmt::format("{}/recipe.json was changed: {}", options_.out, change));
    }
    return;
  }
  QKV_CHECK(options_.from_scratch || !run_->has_checkpoints(), missing.string(), " is missing but ", options_.out,
            " has been trained on it", Hint("put it back, or resume with --from-scratch to begin again at step 0"));
  ThreadPool pool(options_.threads);
  // Weights and optimiser have to fit somewhere; what else a run needs is known once it is prepared.
  int64_t memory = cpu_device().free_bytes();
  const int64_t of_device = kernels_->device().free_bytes();
  memory = options_.device == kernels::DeviceChoice::automatic ? std::max(memory, of_device) : of_device;
  if (!is_there(prepared_)) return prepare_run(recipe_, prepared_, pool, memory);
  log_line(Log::warn, fmt::format("{} is missing: the run is prepared again", missing.string()));
  const fs::path fresh = fs::path(options_.out) / (std::string(kTemporaryPrefix) + "prepared");
  prepare_run(recipe_, fresh, pool, memory);
  replace_folder(fresh, prepared_);
}

// The weights are read when the first pass asks for them, so a plan takes none of the device's memory.
void TrainRun::open_model() {
  model_.reset();
  engine_.emplace(*kernels_, Engine::Options{.threads = options_.threads});
  model_ = start_.model(engine_->device());
  choose_trainable(*model_, recipe_.frozen);
}

// A GPU that was not asked for is used only if the run fits into it, on every rank: they compute the same bits.
void TrainRun::choose_device() {
  memory_ = Trainer::plan(*engine_, recipe_, *model_, *data_, comm_);
  const bool on_gpu = &engine_->device() != &cpu_device(), fits = on_gpu && memory_.total() <= memory_.free;
  const auto all = comm_.all_gather(std::as_bytes(std::span(&fits, 1)));
  const bool all_fit = std::all_of(all.begin(), all.end(), [](const auto& each) { return each[0] != std::byte{0}; });
  if (on_gpu && !all_fit && options_.device == kernels::DeviceChoice::automatic) {
    log_line(Log::info, fits ? std::string("device cpu: not every rank of this run can use a GPU")
                             : fmt::format("device cpu: the run needs {:.1f} GiB but {:.1f} are free on the GPU",
                                           gibibytes(memory_.total()), gibibytes(memory_.free)));
    kernels_ = &kernels::best_table();
    open_model();
    memory_ = Trainer::plan(*engine_, recipe_, *model_, *data_, comm_);
  }
  check_memory(memory_, engine_->device(),
               [&] { return Trainer::alternatives(*engine_, recipe_, *model_, *data_, comm_); });
}

void TrainRun::connect_gpus() {
  const std::string mine = &engine_->device() == &cpu_device() ? "" : kernels::cuda::gpu_id();
  auto all = comm_.all_gather(std::as_bytes(std::span(mine)));
  std::sort(all.begin(), all.end());
  const bool apart = std::adjacent_find(all.begin(), all.end()) == all.end();  // equal too where there are none
  if (comm_.size() == 1 || !apart) return;
  std::string why;
  nccl_ = nccl_comm(comm_, engine_->device(), why);
  if (!nccl_) log_line(Log::info, fmt::format("gradients go through the host: {}", why));
}

void TrainRun::open_prepared() {
  start_ = Checkpoint::open(prepared_ / "start");
  open_model();
  const TokenIds& tokens = model_->spec().tokens;
  const std::optional<int32_t> mask = Tokenizer::load(prepared_ / "tokenizer").named().mask;
  data_ = TrainData::open(
      recipe_, prepared_,
      {.start = tokens.decoder_start.value_or(0), .mask = mask.value_or(-1), .vocabulary = model_->spec().vocabulary},
      model_->spec().context);
}

void TrainRun::go_on() {
  bool found = false;
  if (run_ && options_.from_scratch && !options_.dry) {
    log_line(Log::info, fmt::format("beginning at step 0; what was there is in {}", run_->set_aside().string()));
  } else if (run_ && !options_.from_scratch) {
    found = run_->load_newest(*model_, trainer_->optimizer(), trainer_->counters());
    const int64_t done = trainer_->counters().step;
    QKV_CHECK(done <= recipe_.steps, options_.out, " has done ", done, " steps but its recipe has ", recipe_.steps,
              Hint("give it more: --set steps=", done + 100, ", or begin again with --from-scratch"));
  }
  found = comm_.all_gather(std::as_bytes(std::span(&found, 1))).front().front() != std::byte{0};
  if (found && !run_) {
    read_checkpoint(fs::path(options_.out) / "last", *model_, trainer_->optimizer(), trainer_->counters());
  }
}

void TrainRun::tell(const StepReport& report) {
  screen_->show_step(report, reports_->rate(report));
  run_->log(reports_->log_line(report));
  run_->scalars(report.step + 1,
                {{"loss", report.result.loss}, {"lr", report.lr}, {"grad_norm", report.result.grad_norm}});
  const TrainCounters& counters = trainer_->counters();
  if (options_.observer.on_step) options_.observer.on_step(report, counters);
  if (watch_ && watch_->after_step(report, counters)) run_->log(watch_->log_line(counters));
}

void TrainRun::tell(const EvalResult& result, bool best) {
  if (result.counted > 0) {  // something is held out
    screen_->show_evaluation(result, best);
    run_->log(log_line(result));
    run_->scalars(result.step, {{"val_loss", result.loss}, {"bits_per_byte", result.bits_per_byte}});
    if (options_.observer.on_evaluation) options_.observer.on_evaluation(result, best);
  }
  const std::vector<std::string> samples = reports_->samples(*model_);
  screen_->show_samples(result.step, samples);
  for (const std::string& sample : samples) run_->text_sample(result.step, sample);
  if (options_.observer.on_samples && !samples.empty()) options_.observer.on_samples(samples);
  if (const std::optional<TranslationScore> score = reports_->translations(*model_)) {
    screen_->show_translations(*score);
    run_->log({{"step", result.step}, {"bleu", score->bleu}, {"chrf", score->chrf}, {"translated", score->lines}});
    run_->scalars(result.step, {{"bleu", score->bleu}, {"chrf", score->chrf}});
  }
}

void TrainRun::save(const TrainCounters& counters, bool best) {
  trainer_->optimizer().gather_states();
  if (run_) {
    if (watch_) watch_->wait();  // a checkpoint never outlives the snapshots before it
    run_->save(*model_, start_.config, trainer_->optimizer(), counters, best);
    run_->keep_last(recipe_.checkpoint.keep);
  }
  trainer_->optimizer().drop_gathered();
}

}  // namespace qkv
