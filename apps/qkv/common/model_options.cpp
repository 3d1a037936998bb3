#include "common/model_options.h"

#include "open/room.h"

namespace qkv::app {

void add_model_options(Command command, ModelOptions& options, ModelUse use) {
  command.add_model("MODEL", options.path, "A Hugging Face folder, a GGUF file, or a built-in model (qkv models)")
      .required();
  static_assert(kMaxExactWeights == 600'000'000, "the text below says so");
  command
      .add_option("--dtype", options.dtype,
                  use == ModelUse::looks
                      ? "What it computes in; auto: f32 up to 600 million weights or if all are f32, otherwise bf16"
                      : "What it computes in; auto: f32 if all weights are f32, otherwise bf16")
      .one_of({"auto", "f32", "bf16"})
      .show_default();
  add_compute_options(command, options.compute);
}

namespace {

api::OpenOptions library_options(const ModelOptions& options) {
  using enum kernels::DeviceChoice;
  const kernels::DeviceChoice device = options.compute.device();
  return {.device = device == cpu    ? api::Device::cpu
                    : device == cuda ? api::Device::cuda
                                     : api::Device::automatic,
          .precision = options.dtype == "f32"    ? api::Precision::f32
                       : options.dtype == "bf16" ? api::Precision::bf16
                                                 : api::Precision::automatic,
          .threads = options.compute.threads};
}

api::OpenOptions library_options(const ModelOptions& options, const CacheOptions& cache, int64_t texts) {
  api::OpenOptions open = library_options(options);
  open.context = cache.context;
  open.texts = texts;
  open.cache = cache.cache == "f32"    ? api::CacheType::f32
               : cache.cache == "bf16" ? api::CacheType::bf16
               : cache.cache == "i8"   ? api::CacheType::i8
                                       : api::CacheType::automatic;
  return open;
}

}  // namespace

api::Model open_library(const ModelOptions& options, bool decoded) {
  api::OpenOptions open = library_options(options);
  open.decoded = decoded;
  return api::Model(options.path, open);
}

api::Model open_library(const ModelOptions& options, const CacheOptions& cache, int64_t texts) {
  return api::Model(options.path, library_options(options, cache, texts));
}

OpenOptions open_options(const ModelOptions& options, const CacheOptions& cache, int64_t texts) {
  return api::inner_options(library_options(options, cache, texts));
}

void add_cache_options(Command command, CacheOptions& options) {
  command.add_option("--cache", options.cache, "What the cache of keys and values is stored in; auto: as --dtype")
      .one_of({"auto", "f32", "bf16", "i8"})
      .show_default();
  command
      .add_option(
          "--context", options.context,
          "Most tokens of a text, prompt included; otherwise the model's own, at most " + std::to_string(kUsualContext))
      .between(int64_t{1}, int64_t{1} << 30);
}

int64_t context_of(const OpenModel& model, const CacheOptions& options) {
  return usable_context(model, options.context);
}

std::optional<DType> chosen_cache_type(const CacheOptions& options) {
  if (options.cache == "auto") return {};
  return options.cache == "f32" ? DType::f32 : options.cache == "i8" ? DType::i8 : DType::bf16;
}

}  // namespace qkv::app
