#include "train/checkpoint_files.h"

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/file_manifest.h"
#include "base/replace.h"
#include "io/floats.h"
#include "io/safetensors.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr const char *kStates = "train_state.safetensors", *kState = "train_state.json";
constexpr size_t kLargestJson = 16 << 20;

void write_text_file(const fs::path& path, std::string_view text) {
  write_file_atomic(path, std::as_bytes(std::span(text)));
}

// --- copies ----------------------------------------------------------------------------------------------------------

std::span<float> numbers_of(const Param& host) {
  return {host.master().as<float>(), static_cast<size_t>(host.shape().count())};
}

void check_finite(const std::string& name, std::span<const float> values) {
  bool bad = false;
  for (const float value : values) bad |= !std::isfinite(value);
  if (!bad) [[likely]]
    return;
  size_t at = 0;
  while (std::isfinite(values[at])) ++at;
  QKV_FAIL("'", name, "' has ", values[at], " at index ", at, ": no checkpoint is written",
           Hint("resume from an earlier checkpoint with a smaller learning rate"));
}

// The tensor's values in f32, on the host.
void add_copy(Weights& copies, const std::string& name, const Tensor& t) {
  const bool known = t.dtype() == DType::f32 || t.dtype() == DType::bf16 || t.dtype() == DType::f16;
  QKV_CHECK(t.format().plain() && known, "'", name, "' is ", t.format(), " but checkpoints hold f32",
            Hint("load the model for training: masters are f32"));
  const Param& made = copies.add(Param(name, cpu_device(), DType::f32, t.shape()));
  const std::span<float> values = numbers_of(made);
  if (t.dtype() == DType::f32) {
    t.device().download(values.data(), t.data(), static_cast<int64_t>(values.size_bytes()));
  } else {
    std::vector<std::byte> bytes(static_cast<size_t>(t.format().bytes_for(t.shape())));
    t.device().download(bytes.data(), t.data(), static_cast<int64_t>(bytes.size()));
    decode_floats(stored_name(t.dtype()), bytes, values);
  }
  check_finite(name, values);
}

// --- counters --------------------------------------------------------------------------------------------------------

Json state_json(const CheckpointCopy& copy) {
  const TrainCounters& c = copy.counters;
  return {{"step", c.step},
          {"tokens", c.tokens},
          {"seconds", c.seconds},
          {"best", std::isfinite(c.best) ? Json(c.best) : Json()},  // none yet
          {"best_step", c.best_step},
          {"without_better", c.evals_without_improvement},
          {"optimizer_steps", copy.optimizer_steps}};
}

struct StoredState {
  TrainCounters counters;
  int64_t optimizer_steps = 0;
};

StoredState read_state(const fs::path& file) {
  const Json json = parse_json(read_file(file, kLargestJson), file.string());
  const auto member = [&](const char* key, auto fits) -> const Json& {
    const auto at = json.find(key);
    QKV_CHECK(at != json.end() && fits(*at), file.string(), ": '", key, "' is ",
              at == json.end() ? "missing" : at->dump(), " but must be a number",
              Hint("another version of qkv may have written it"));
    return *at;
  };
  const auto whole = [&](const char* key) {
    return member(key, [](const Json& j) { return j.is_number_integer(); }).template get<int64_t>();
  };
  const auto number = [&](const char* key) {
    const Json& found = member(key, [](const Json& j) { return j.is_number() || j.is_null(); });
    return found.is_null() ? std::numeric_limits<double>::infinity() : found.get<double>();
  };
  return {.counters = {.step = whole("step"),
                       .tokens = whole("tokens"),
                       .seconds = number("seconds"),
                       .best = number("best"),
                       .best_step = whole("best_step"),
                       .evals_without_improvement = whole("without_better")},
          .optimizer_steps = whole("optimizer_steps")};
}

// --- the files -------------------------------------------------------------------------------------------------------

void write_files(const fs::path& folder, const CheckpointCopy& copy, const std::vector<fs::path>& tokenizer_files) {
  const TensorNames names = hugging_face_names(copy.spec);
  for (const NamedTensor& tensor : names.tensors()) {
    QKV_CHECK(tensor.shift == 0, "the config says that '", tensor.name, "' is ", tensor.shift,
              " off its weight, which rounds", Hint("take the key '", kNormOffsetKey, "' out of the model's config"));
  }
  const fs::path inner = folder / "model";
  write_hugging_face(inner, copy.config, copy.weights, names, {.dtype = "F32", .copied = tokenizer_files});
  for (const auto& entry : fs::directory_iterator(inner)) fs::rename(entry.path(), folder / entry.path().filename());
  fs::remove(inner);

  std::vector<OutgoingTensor> states;
  for (const auto& [name, state] : copy.states) {
    const std::span<const int64_t> dims = state.shape().dims();
    states.push_back(outgoing({.name = name,
                               .dtype = "F32",
                               .shape = {dims.begin(), dims.end()},
                               .bytes = std::as_bytes(numbers_of(state))}));
  }
  write_safetensors(folder / kStates, states, {});
  write_text_file(folder / kState, state_json(copy).dump(2) + "\n");
  write_manifest(folder);
}

}  // namespace

CheckpointCopy::CheckpointCopy(const Model& model, Json config_, const Optimizer& optimizer,
                               const TrainCounters& counters_)
    : spec(model.spec()), config(std::move(config_)), optimizer_steps(optimizer.steps()), counters(counters_) {
  for (const auto& [name, weight] : model.weights()) add_copy(weights, name, weight.master());
  for (const Optimizer::State& state : optimizer.states()) add_copy(states, state.name, state.tensor);
}

void write_checkpoint(const fs::path& folder, const CheckpointCopy& copy,
                      const std::vector<fs::path>& tokenizer_files) {
  const bool again = fs::exists(fs::symlink_status(folder));
  const fs::path name = again ? folder.parent_path() / (kTemporaryPrefix + folder.filename().string()) : folder;
  AtomicFolder made(name);
  write_files(made.path(), copy, tokenizer_files);
  made.commit();
  if (again) replace_folder(name, folder);
}

void check_checkpoint(const fs::path& folder) {
  const Hint damaged("it was changed after it was written, or the disk is failing");
  const Json manifest = read_manifest(folder, damaged);
  check_files(folder, manifest, damaged);
  for (const char* needed : {"config.json", kStates, kState}) {
    QKV_CHECK(manifest.contains(needed), (folder / kManifest).string(), ": does not name ", needed, damaged);
  }
}

void read_checkpoint(const fs::path& folder, Model& model, Optimizer& optimizer, TrainCounters& counters) {
  const Hint other("the run's recipe was changed, or the checkpoint is another run's");
  const StoredState state = read_state(folder / kState);
  const Weights stored = Checkpoint::open(folder).weights(cpu_device());
  for (const auto& [name, weight] : model.weights()) {
    const Param* found = stored.find(name);
    QKV_CHECK(found != nullptr && found->shape() == weight.shape(), folder.string(), ": '", name, "' is ",
              found == nullptr ? "missing" : "of another shape", " but the model's is ", weight.shape(), other);
  }
  const Safetensors file = Safetensors::open(folder / kStates);
  const std::vector<Optimizer::State> states = optimizer.states();
  // With ZeRO, a rank reads only the optimiser tensors it owns.
  QKV_CHECK(file.entries().size() == states.size() ||
                (!optimizer.data_parallel().alone() && optimizer.data_parallel().zero() > 0),
            file.name(), ": holds ", file.entries().size(), " tensors but the optimiser has ", states.size(), other);
  for (const auto& [name, tensor] : states) {
    const StoredTensor* found = file.find(name);
    const auto bytes = static_cast<size_t>(tensor.format().bytes_for(tensor.shape()));
    QKV_CHECK(found != nullptr && found->dtype == "F32" && found->bytes.size() == bytes, file.name(), ": '", name,
              "' is ", found == nullptr ? "missing" : "of another size", " but the optimiser's is ", tensor.shape(),
              other);
  }

  for (auto& [name, weight] : model.weights()) {
    const std::span<const float> values = numbers_of(stored.at(name));
    // Fresh memory in the same Param: drops the initial values and every copy cached from them.
    Param fresh(name, weight.device(), weight.format(), weight.shape());
    fresh.trainable = weight.trainable;
    std::vector<std::byte> bytes(static_cast<size_t>(weight.format().bytes_for(weight.shape())));
    encode_floats(stored_name(weight.format().dtype), values, bytes);
    weight.device().upload(fresh.master().data(), bytes.data(), static_cast<int64_t>(bytes.size()));
    weight = std::move(fresh);
  }
  for (const auto& [name, tensor] : states) {
    const StoredTensor& found = file.at(name);
    tensor.device().upload(tensor.data(), found.bytes.data(), static_cast<int64_t>(found.bytes.size()));
    file.release(found);
  }
  optimizer.set_steps(state.optimizer_steps);
  counters = state.counters;
}

}  // namespace qkv
