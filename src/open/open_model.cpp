#include "open/open_model.h"

#include <algorithm>
#include <filesystem>

#include "base/path.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

int64_t count_of(const Weights& weights) {
  int64_t count = 0;
  for (const auto& [name, weight] : weights) count += weight.shape().count();
  return count;
}

Precision precision_of(const Model& model, const OpenOptions& options) {
  if (options.precision) return *options.precision;
  if (options.looks && count_of(model.weights()) <= kMaxExactWeights) return Precision::f32();
  const bool f32 = std::all_of(model.weights().begin(), model.weights().end(),
                               [](const auto& named) { return named.second.format() == Format(DType::f32); });
  return f32 ? Precision::f32() : Precision::bf16();
}

// Bytes the weights, the caches and a pass take. Weights are read when they are used, so none are read here.
int64_t planned_bytes(const Checkpoint& checkpoint, const OpenOptions& options) {
  const std::unique_ptr<Model> model = checkpoint.model(cpu_device(), options.blocks);
  const Precision precision = precision_of(*model, options);
  const ModelSpec& spec = checkpoint.spec;
  if (spec.kind == ModelSpec::Kind::encoder_only) {
    int64_t bytes = 0;
    for (const auto& [name, weight] : model->weights()) bytes += bytes_in_pass(weight, precision.compute);
    return 2 * bytes;
  }
  const int64_t context = spec.context > 0 ? std::min(spec.context, options.context) : options.context;
  return Runner::need(*model, Engine(Kernels::none(), {.threads = 1}),
                      {.precision = precision,
                       .cache = precision.compute,
                       .positions = options.texts * KvCache::whole_pages(context)})
      .total();
}

const Kernels& kernels_for(const Checkpoint& checkpoint, const OpenOptions& options) {
  const bool asks = options.device == kernels::DeviceChoice::automatic && kernels::cuda::available();
  return kernels::table_for(options.device, asks ? planned_bytes(checkpoint, options) : 0);
}

// What `read` returns, or the Error it throws.
template <class Read>
auto value_or_error(const Read& read) -> std::variant<decltype(read()), Error> {
  try {
    return read();
  } catch (const Error& error) {
    return error;
  }
}

template <class T>
const T& value_of(const std::variant<T, Error>& read) {
  if (const Error* error = std::get_if<Error>(&read)) throw *error;
  return std::get<T>(read);
}

std::variant<Tokenizer, Error> read_tokenizer(const fs::path& path) {
  return value_or_error([&] {
    try {
      return Tokenizer::load(path).without_truncation();
    } catch (const Error& error) {
      throw Error(
          error.kind(), error.message(),
          error.hint() +
              "; token ids are taken instead of text (--ids of run, look, taps, patch, attribute, heads, cut and lens)",
          error.where());
    }
  });
}

std::optional<std::variant<Tokenizer, Error>> read_target_tokenizer(const fs::path& path) {
  const fs::path file = path / "target.spm";
  if (!is_there(file)) return std::nullopt;
  return read_tokenizer(file);
}

}  // namespace

OpenModel::OpenModel(std::string path, const OpenOptions& options)
    : path_(std::move(path)),
      options_(options),
      checkpoint_(Checkpoint::open(path_)),
      engine_(std::make_shared<const Engine>(kernels_for(checkpoint_, options),
                                             Engine::Options{.threads = options.threads})),
      model_(checkpoint_.model(engine_->device(), options.blocks)),
      precision_(precision_of(*model_, options)),
      tokenizer_(read_tokenizer(path_)),
      target_tokenizer_(read_target_tokenizer(path_)),
      defaults_(value_or_error([&] { return generation_defaults(path_, checkpoint_.config, spec().vocabulary); })) {
  freeze();
}

OpenModel::OpenModel(const OpenModel& of, Precision precision)
    : path_(of.path_),
      options_(of.options_),
      checkpoint_(of.checkpoint_),
      engine_(of.engine_),
      model_(checkpoint_.model(engine_->device(), options_.blocks)),
      precision_(precision),
      tokenizer_(of.tokenizer_),
      target_tokenizer_(of.target_tokenizer_),
      defaults_(of.defaults_) {
  options_.looks = true;
  freeze();
}

bool OpenModel::has_own_precision() const {
  OpenOptions usual = options_;
  usual.precision.reset();
  usual.looks = true;
  return options_.precision && precision_of(*model_, usual).compute != precision_.compute;
}

std::unique_ptr<OpenModel> OpenModel::looking() const {
  OpenOptions options = options_;
  options.looks = true;
  const Precision precision = precision_of(*model_, options);
  if (precision.compute == precision_.compute) return nullptr;
  return std::unique_ptr<OpenModel>(new OpenModel(*this, precision));
}

void OpenModel::freeze() {
  model_->origin = path_;
  // Gradients are taken with respect to activations, never to these weights.
  for (auto& [name, weight] : model_->weights()) weight.trainable = false;
}

const Tokenizer& OpenModel::tokenizer() const {
  return value_of(tokenizer_);
}

const Tokenizer& OpenModel::target_tokenizer() const {
  return target_tokenizer_ ? value_of(*target_tokenizer_) : tokenizer();
}

const GenerationDefaults& OpenModel::defaults() const {
  return value_of(defaults_);
}

std::vector<int32_t> OpenModel::target_start() const {
  const std::optional<int32_t> start = defaults().tokens.decoder_start;
  QKV_CHECK(start.has_value(), path_, " does not say which token a target starts with",
            Hint("config.json should have decoder_start_token_id"));
  return {*start};
}

TokenText OpenModel::encode(std::string_view text, std::string_view target) const {
  if (!target.empty() && spec().has_source()) return encode_pair(text, target);
  TokenText made{.ids = {}, .text = std::string(text)};
  (spec().has_source() ? made.source : made.ids) = tokenizer().encode(text);
  if (spec().has_source()) made.ids = target_start();
  return made;
}

TokenText OpenModel::encode_pair(std::string_view source, std::string_view target) const {
  TokenText made = encode(source);
  const std::vector<int32_t> more = target_tokenizer().encode(target);
  made.ids.insert(made.ids.end(), more.begin(), more.end());
  made.target_text = target;
  return made;
}

Runner OpenModel::runner(RunOptions options) const {
  options.precision = precision_;
  return Runner(*model_, *engine_, options);
}

}  // namespace qkv
