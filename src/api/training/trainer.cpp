// qkv::Trainer: steps of one's own. The same steps as those of a recipe.
#include "train/trainer.h"

#include <qkv/train.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>

#include "api/inside.h"
#include "base/error.h"
#include "base/path.h"
#include "base/scratch_folder.h"
#include "core/host_values.h"
#include "model/checkpoint/convert.h"
#include "open/builtin_models.h"
#include "open/convert_tokenizer.h"
#include "train/checkpoint_files.h"
#include "train/step.h"

namespace qkv::v1 {
namespace fs = std::filesystem;

// Masters are f32: what is stored otherwise is converted into a folder that lives as long as this.
class MasterFolder {
 public:
  explicit MasterFolder(const std::string& path) : path_(path) {
    const Checkpoint found = Checkpoint::open(path);
    bool plain = is_folder(path);
    for (const StoredTensor& tensor : found.file->entries()) plain = plain && tensor.dtype == "F32";
    if (plain) return;
    made_.emplace("trainer", "set TMPDIR to a place with room for the weights in f32");
    path_ = made_->path() / "start";
    convert_model(path, path_, with_tokenizer({.to = ConvertOptions::To::hugging_face, .dtype = "F32"}));
  }

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  std::optional<ScratchFolder> made_;
};

namespace {

OptimizerSpec optimizer_of(const TrainerOptions& options) {
  OptimizerSpec spec{.beta1 = options.beta1,
                     .beta2 = options.beta2,
                     .eps = options.eps,
                     .momentum = options.momentum,
                     .decay = options.decay,
                     .clip = options.clip};
  using Kind = OptimizerSpec::Kind;
  for (const Kind kind : {Kind::adamw, Kind::muon, Kind::sgd}) {
    if (options.optimizer != qkv::name_of(kind)) continue;
    spec.kind = kind;
    validate(spec);
    return spec;
  }
  QKV_FAIL("there is no optimizer ", options.optimizer, Hint("adamw, muon or sgd"));
}

void append(std::vector<int32_t>& to, const std::vector<int32_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void check_ids(const char* what, size_t text, const std::vector<int32_t>& ids, int64_t vocabulary) {
  QKV_CHECK(!ids.empty(), what, " ", text, " of the batch has no tokens", Hint("leave it out"));
  for (const int32_t id : ids) {
    QKV_CHECK(id >= 0 && id < vocabulary, what, " ", text, " of the batch has the token ", id, " but the model knows ",
              vocabulary, Hint("ids are those of the model's tokenizer"));
  }
}

TrainBatch inner(const Batch& batch, const ModelSpec& spec) {
  const size_t texts = batch.texts.size();
  QKV_CHECK(texts > 0, "the batch has no texts", Hint("give some"));
  QKV_CHECK(batch.targets.empty() || batch.targets.size() == texts, "the batch has ", texts, " texts but targets of ",
            batch.targets.size(), Hint("give targets of all texts, or none"));
  QKV_CHECK(batch.sources.size() == (spec.has_source() ? texts : 0), "the batch has ", texts, " texts and ",
            batch.sources.size(), " sources, for a model that is ", qkv::name_of(spec.kind),
            Hint(spec.has_source() ? "give a source for each text" : "leave sources out"));
  QKV_CHECK(spec.kind != ModelSpec::Kind::encoder_only || !batch.targets.empty(),
            "an encoder is not asked for the next token, and the batch has no targets",
            Hint("give targets: the hidden token where one is hidden, Batch::kIgnored elsewhere"));
  TrainBatch made;
  for (size_t i = 0; i < texts; ++i) {
    const std::vector<int32_t>& ids = batch.texts[i];
    check_ids("text", i, ids, spec.vocabulary);
    QKV_CHECK(spec.context == 0 || std::ssize(ids) <= spec.context, "text ", i, " of the batch has ", ids.size(),
              " tokens but the model was made for ", spec.context, Hint("cut it"));
    append(made.ids, ids);
    made.lengths.push_back(static_cast<int32_t>(ids.size()));
    if (batch.targets.empty()) {
      made.targets.insert(made.targets.end(), ids.begin() + 1, ids.end());
      made.targets.push_back(TrainBatch::kIgnored);
    } else {
      const std::vector<int32_t>& targets = batch.targets[i];
      QKV_CHECK(targets.size() == ids.size(), "text ", i, " of the batch has ", ids.size(), " tokens but ",
                targets.size(), " targets", Hint("one for each token; Batch::kIgnored where none is asked for"));
      for (const int32_t id : targets) {
        QKV_CHECK(id == TrainBatch::kIgnored || (id >= 0 && id < spec.vocabulary), "text ", i,
                  " of the batch has the target ", id, " but the model knows ", spec.vocabulary,
                  Hint("ids are those of the model's tokenizer, Batch::kIgnored is ", TrainBatch::kIgnored));
      }
      append(made.targets, targets);
    }
    if (!spec.has_source()) continue;
    check_ids("source", i, batch.sources[i], spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary);
    append(made.source_ids, batch.sources[i]);
    made.source_lengths.push_back(static_cast<int32_t>(batch.sources[i].size()));
  }
  made.counted =
      std::count_if(made.targets.begin(), made.targets.end(), [](int32_t id) { return id != TrainBatch::kIgnored; });
  QKV_CHECK(made.counted > 0, "the batch has ", made.ids.size(), " tokens but nothing to predict",
            Hint("texts of two tokens or more, or targets that are not ignored"));
  return made;
}

int64_t bytes_of_training(const ModelSpec& spec) {
  int64_t bytes = 0;
  for (const WeightSpec& weight : weight_list(spec)) bytes += 4 * weight.shape.count() * size_of(DType::f32);
  return bytes;
}

}  // namespace

struct Trainer::Impl {
  Impl(const std::string& path, const TrainerOptions& chosen)
      : options(chosen),
        folder(path),
        start(Checkpoint::open(folder.path())),
        engine(kernels::table_for(inner_options({.device = chosen.device}).device, bytes_of_training(start.spec)),
               {.threads = chosen.threads}),
        model(start.model(engine.device(), BlockWeights::decoded)),
        optimizer((choose_trainable(*model, chosen.frozen), model->spec()), model->weights(), optimizer_of(chosen)),
        arena(engine.device()),
        gradients(engine.device()) {}

  qkv::Precision precision() const {
    return options.precision == Precision::bf16 ? qkv::Precision::bf16() : qkv::Precision::f32();
  }

  const TrainerOptions options;
  const MasterFolder folder;
  const Checkpoint start;
  Engine engine;
  std::unique_ptr<qkv::Model> model;
  Optimizer optimizer;
  Arena arena, gradients;
  TrainCounters counters;
  std::atomic<bool> in_use = false;
};

namespace {

class TrainerInUse {
 public:
  explicit TrainerInUse(std::atomic<bool>& flag) : flag_(flag) {
    if (flag_.exchange(true)) {
      throw BusyError(Error::Kind::input, "another thread is using this Trainer", "one thread at a time trains it",
                      QKV_HERE);
    }
  }
  TrainerInUse(const TrainerInUse&) = delete;
  TrainerInUse& operator=(const TrainerInUse&) = delete;
  ~TrainerInUse() { flag_ = false; }

 private:
  std::atomic<bool>& flag_;
};

}  // namespace

Trainer::Trainer(const std::string& path_or_name, const TrainerOptions& options)
    : impl_(std::make_shared<Impl>(find_model(path_or_name), options)) {}

Trainer::Impl& Trainer::impl() const {
  if (!impl_) {
    throw ClosedError(Error::Kind::input, "this Trainer was moved to another variable", "use that one", QKV_HERE);
  }
  return *impl_;
}

StepReport Trainer::step(const Batch& batch, double lr) {
  Impl& i = impl();
  const TrainerInUse use(i.in_use);
  QKV_CHECK(lr >= 0 && std::isfinite(lr), "the learning rate is ", lr, Hint("a number like 1e-3"));
  const TrainBatch made = inner(batch, i.model->spec());
  const auto begin = std::chrono::steady_clock::now();
  const StepResult result = train_step(i.engine, i.arena, i.gradients, *i.model, i.optimizer, {&made, 1},
                                       {.precision = i.precision(),
                                        .loss = {.smoothing = i.options.smoothing},
                                        .lr = lr,
                                        .clip = i.options.clip,
                                        .seed = i.options.seed,
                                        .step = static_cast<uint64_t>(i.counters.step)});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ++i.counters.step;
  i.counters.tokens += result.tokens;
  i.counters.seconds += seconds;
  return {.step = i.counters.step,
          .loss = result.loss,
          .lr = lr,
          .grad_norm = result.grad_norm,
          .tokens = result.tokens,
          .seconds = seconds};
}

double Trainer::loss(const Batch& batch) {
  Impl& i = impl();
  const TrainerInUse use(i.in_use);
  const TrainBatch made = inner(batch, i.model->spec());
  i.arena.rewind({});
  Context cx = i.engine.context(i.arena, i.precision());
  const BatchLoss loss = loss_of(cx, *i.model, made, {}, {});
  double nats = 0;
  for (const float one : host_floats(loss.losses)) nats += static_cast<double>(one);
  return nats / static_cast<double>(made.counted);
}

int64_t Trainer::steps() const {
  return impl().counters.step;
}

std::vector<Trainer::Weight> Trainer::weights() const {
  std::vector<Weight> all;
  for (const auto& [name, weight] : impl().model->weights()) {
    const std::span<const int64_t> dims = weight.shape().dims();
    all.push_back({.name = name, .shape = {dims.begin(), dims.end()}, .trained = weight.trainable});
  }
  return all;
}

Array Trainer::weight(std::string_view name) const {
  const TrainerInUse use(impl().in_use);
  const Param* weight = impl().model->weights().find(name);
  QKV_CHECK(weight != nullptr, "the model has no weight ", name, Hint("weights() lists them"));
  const std::span<const int64_t> dims = weight->shape().dims();
  return {.name = std::string(name), .shape = {dims.begin(), dims.end()}, .values = host_floats(weight->master())};
}

void Trainer::save(const std::string& folder) const {
  const Impl& i = impl();
  const TrainerInUse use(impl().in_use);
  const CheckpointCopy copy(*i.model, i.start.config, i.optimizer, i.counters);
  write_hugging_face(folder, copy.config, copy.weights, hugging_face_names(copy.spec),
                     {.dtype = "F32", .copied = companion_files(i.folder.path())});
}

}  // namespace qkv::v1
