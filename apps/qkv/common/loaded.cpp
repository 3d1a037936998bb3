#include "common/loaded.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/tables.h"

namespace qkv::app {
namespace {

constexpr int64_t kUnknownContext = 2048;  // of models that name no limit

bool all_f32(const Model& model) {
  return std::all_of(model.weights().begin(), model.weights().end(),
                     [](const auto& named) { return named.second.format() == Format(DType::f32); });
}

DType cache_of(const LoadOptions& options, Precision precision) {
  if (options.cache == "auto") return precision.compute;
  return options.cache == "f32" ? DType::f32 : options.cache == "i8" ? DType::i8 : DType::bf16;
}

int64_t context_of(const LoadOptions& options, const ModelSpec& spec) {
  if (options.context == 0) return std::min(spec.context > 0 ? spec.context : kUnknownContext, options.kUsualContext);
  QKV_CHECK(spec.context == 0 || options.context <= spec.context, "--context is ", options.context, " but ",
            options.model, " was made for ", spec.context, " positions",
            Hint("use --context ", spec.context, " or less"));
  return options.context;
}

}  // namespace

Precision precision_of(const std::string& dtype, const Model& model) {
  const bool f32 = dtype == "f32" || (dtype == "auto" && all_f32(model));
  return f32 ? Precision::f32() : Precision::bf16();
}

void add_load_options(Command command, LoadOptions& options) {
  command.add_option("MODEL", options.model, "A Hugging Face folder or a GGUF file").required();
  command.add_option("--dtype", options.dtype, "What it computes in; auto: f32 if all weights are f32, otherwise bf16")
      .one_of({"auto", "f32", "bf16"})
      .show_default();
  command.add_option("--cache", options.cache, "What the cache of keys and values is stored in; auto: as --dtype")
      .one_of({"auto", "f32", "bf16", "i8"})
      .show_default();
  command
      .add_option("--context", options.context,
                  "Most tokens of a text, prompt included; otherwise the model's own, at most " +
                      std::to_string(LoadOptions::kUsualContext))
      .between(int64_t{1}, int64_t{1} << 30);
  command.add_threads(options.threads);
}

Loaded::Loaded(const LoadOptions& options, int64_t texts)
    : Loaded(options, [texts](const Loaded& loaded) {
        // Texts are kept in whole pages, and one that is shared may have to be copied.
        const int64_t page = KvCache::kPage, each = (loaded.context() + page - 1) / page * page;
        return RunOptions{.positions = texts * (each + (texts > 1 ? page : 0))};
      }) {}

Loaded::Loaded(const LoadOptions& options, const RoomFor& room)
    : path_(options.model),
      checkpoint_(Checkpoint::open(options.model)),
      engine_(kernels::best_table(), {.threads = options.threads}),
      model_(checkpoint_.model(engine_.device())),
      context_(context_of(options, checkpoint_.spec)) {
  RunOptions run = room(*this);
  run.precision = precision_of(options.dtype, *model_);
  run.cache = cache_of(options, run.precision);
  runner_ = std::make_unique<Runner>(*model_, engine_, run);
}

const Tokenizer& Loaded::tokenizer() {
  if (tokenizer_) return *tokenizer_;
  try {
    tokenizer_ = Tokenizer::load(path_).whole_texts();
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), error.hint() + "; qkv run --ids needs no tokenizer", error.where());
  }
  return *tokenizer_;
}

GenerationDefaults Loaded::defaults() const {
  return generation_defaults(path_, checkpoint_.config, spec().vocabulary);
}

}  // namespace qkv::app
