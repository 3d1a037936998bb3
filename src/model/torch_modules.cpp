#include "model/torch_modules.h"

#include "base/printable.h"
#include "io/safetensors_folder.h"
#include "io/stored_type.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {
namespace {

using File = TensorFileOf<SafetensorsFolder>;

// A matrix of the file; torch's Linear keeps [out, in].
const StoredTensor& matrix(const File& file, std::string_view name) {
  const StoredTensor* tensor = file.find(name);
  QKV_CHECK(tensor != nullptr, file.name(), ": has no tensor ", printable(name),
            Hint("this is not the state dict of the module, or its names start with a prefix"));
  QKV_CHECK(tensor->shape.size() == 2 && tensor->shape[1] > 0, file.name(), ": tensor ", printable(name), " is ",
            shape_text(tensor->shape), " but must be a matrix", Hint("this is not the state dict of the module"));
  return *tensor;
}

int64_t layers_under(const File& file, const std::string& prefix) {
  int64_t count = 0;
  while (file.find(prefix + std::to_string(count) + ".linear1.weight") != nullptr) ++count;
  return count;
}

Weights weights_in(const std::shared_ptr<const File>& file, const ModelSpec& spec,
                   std::shared_ptr<const TensorNames> names, const TorchOptions& options) {
  check_tensors(*file, *names, Extras::allowed);
  const Checkpoint checkpoint{.spec = spec, .file = file, .names = std::move(names)};
  return checkpoint.weights(options.device != nullptr ? *options.device : cpu_device());
}

}  // namespace

TorchTransformer::TorchTransformer(ModelSpec spec, Weights weights)
    : spec_(std::move(spec)),
      weights_(std::move(weights)),
      ropes_(std::make_unique<Ropes>()),
      encoder_(spec_, Stack::encoder, weights_, *ropes_),
      decoder_(spec_, Stack::decoder, weights_, *ropes_) {}

TorchTransformer TorchTransformer::load(const std::filesystem::path& path, const TorchOptions& options) {
  const auto file = std::make_shared<const File>(SafetensorsFolder::open(path));
  const StoredTensor& inner = matrix(*file, "encoder.layers.0.linear1.weight");  // [F, C]
  const bool final_norm = file->find("encoder.norm.weight") != nullptr;
  const Json config{{"model_type", "transformer"},
                    {"vocab_size", 0},
                    {"d_model", inner.shape[1]},
                    {"intermediate_size", inner.shape[0]},
                    {"num_attention_heads", options.heads},
                    {"encoder_layers", layers_under(*file, "encoder.layers.")},
                    {"decoder_layers", layers_under(*file, "decoder.layers.")},
                    {"norm_first", options.norm_first},
                    {"final_norm", final_norm}};
  ModelSpec spec = read_spec(Config(config, file->name()));
  const auto names = std::make_shared<const TensorNames>(hugging_face_names(spec));
  Weights weights = weights_in(file, spec, names, options);
  return {std::move(spec), std::move(weights)};
}

Tensor TorchTransformer::forward(Context& cx, const Side& source, const Side& target) const {
  const Tensor read = as_operand(cx, encoder_.forward_vectors(cx, source.vectors, {.rows = source.rows}));
  const Memory memory{.states = read, .rows = Rows::cross(cx, target.rows, source.rows)};
  return decoder_.forward_vectors(cx, target.vectors, {.rows = target.rows, .memory = &memory});
}

TorchAttention::TorchAttention(const AttentionSpec& spec, Weights weights)
    : weights_(std::move(weights)),
      ropes_(std::make_unique<Ropes>()),
      attention_(spec, {Stack::encoder, 0}, weights_, {"layers.0.attn", ""}, *ropes_) {}

TorchAttention TorchAttention::load(const std::filesystem::path& path, const TorchOptions& options) {
  const auto file = std::make_shared<const File>(SafetensorsFolder::open(path));
  const std::string& prefix = options.prefix;
  const bool fused = file->find(prefix + "in_proj_weight") != nullptr;
  const std::string ending = file->find(prefix + "W_query.weight") != nullptr ? ".weight" : "";
  const StoredTensor& first = matrix(*file, prefix + (fused ? "in_proj_weight" : "W_query" + ending));

  AttentionSpec a{.heads = options.heads, .kv_heads = options.heads, .causal = options.causal};
  const int64_t width = first.shape[1], outputs = fused ? first.shape[0] / 3 : first.shape[0];
  a.width = a.value_width = outputs / std::max<int64_t>(options.heads, 1);
  QKV_CHECK(options.heads > 0 && outputs % options.heads == 0, file->name(), ": ", outputs,
            " columns do not divide into ", options.heads, " heads",
            Hint("give the number of heads the module was made with"));
  a.q_bias = a.k_bias = a.v_bias = file->find(prefix + (fused ? "in_proj_bias" : "W_query.bias")) != nullptr;
  a.out_bias = file->find(prefix + "out_proj.bias") != nullptr;

  // A model of one layer with only its attention.
  ModelSpec spec{.kind = ModelSpec::Kind::encoder_only, .family = "transformer", .width = width};
  spec.encoder = {.layers = {{.attention = a, .feed = {.width = 1}}}, .final_norm = false};
  const auto names = std::make_shared<TensorNames>(spec);
  if (fused) {
    torch_attention_names(*names, prefix, "layers.0.attn.");
  } else {
    for (const auto& [theirs, ours] : {std::pair{"W_query", "q"}, std::pair{"W_key", "k"}, std::pair{"W_value", "v"}}) {
      names->tensor(prefix + theirs + ending, std::string("layers.0.attn.") + ours);
      names->tensor(prefix + theirs + ".bias", std::string("layers.0.attn.") + ours + ".bias");
    }
    names->linear(prefix + "out_proj", "layers.0.attn.o");
  }
  return {a, weights_in(file, spec, names, options)};
}

}  // namespace qkv
