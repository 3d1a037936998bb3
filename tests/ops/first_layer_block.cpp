#include "first_layer_block.h"

#include <cmath>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace qkv::test {
namespace {

const Json* found(const Json& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (config.contains(key) && !config.at(key).is_null()) return &config.at(key);
  }
  return nullptr;
}
double number(const Json& config, std::initializer_list<const char*> keys, double otherwise) {
  const Json* value = found(config, keys);
  return value != nullptr ? value->get<double>() : otherwise;
}
int64_t whole(const Json& config, std::initializer_list<const char*> keys, int64_t otherwise) {
  const Json* value = found(config, keys);
  return value != nullptr ? value->get<int64_t>() : otherwise;
}

bool slides(const Json& config, int64_t layer) {
  return !config.contains("layer_types") ||
         config.at("layer_types").at(static_cast<size_t>(layer)) == "sliding_attention";
}

Json rope_of(const Json& config, int64_t layer) {
  const Json& rope = config.at("rope_parameters");
  return rope.contains("rope_theta") ? rope : rope.at(config.at("layer_types").at(static_cast<size_t>(layer)));
}

ops::RopeScaling scaling_of(const Json& rope) {
  using Kind = ops::RopeScaling::Kind;
  static const std::map<std::string, Kind> kKinds{{"default", Kind::plain},
                                                  {"linear", Kind::linear},
                                                  {"llama3", Kind::llama3},
                                                  {"yarn", Kind::yarn},
                                                  {"longrope", Kind::longrope}};
  return {.kind = kKinds.at(rope.at("rope_type")),
          .factor = number(rope, {"factor"}, 1),
          .original_context = number(rope, {"original_max_position_embeddings"}, 0),
          .low_freq = number(rope, {"low_freq_factor"}, 1),
          .high_freq = number(rope, {"high_freq_factor"}, 4),
          .beta_fast = number(rope, {"beta_fast"}, 32),
          .beta_slow = number(rope, {"beta_slow"}, 1),
          .mscale = number(rope, {"mscale"}, 0),
          .mscale_all_dim = number(rope, {"mscale_all_dim"}, 0),
          .truncate = rope.value("truncate", true),
          .attention_factor = number(rope, {"attention_factor"}, 0),
          .short_factors = rope.value("short_factor", std::vector<double>{}),
          .long_factors = rope.value("long_factor", std::vector<double>{})};
}

Activation activation_of(const Json& config) {
  static const std::map<std::string, Activation> kNames{{"silu", ops::act::silu},
                                                        {"relu", ops::act::relu},
                                                        {"gelu", ops::act::gelu_erf},
                                                        {"gelu_new", ops::act::gelu_tanh},
                                                        {"gelu_pytorch_tanh", ops::act::gelu_tanh}};
  return kNames.at(*found(config, {"hidden_activation", "hidden_act", "activation_function", "dense_act_fn"}));
}

// The weights of all experts as one [E, ...].
Golden stacked(const GoldenFile& weights, int64_t experts, const std::string& before, const std::string& after) {
  Golden all;
  for (int64_t e = 0; e < experts; ++e) {
    const Golden& one = weights.at(before + std::to_string(e) + after);
    all.values.insert(all.values.end(), one.values.begin(), one.values.end());
    all.shape = {experts, one.shape[0], one.shape[1]};
  }
  return all;
}

// Every other row of [E, R, ...], from `first` on.
Golden every_other(const Golden& g, int64_t first) {
  const int64_t rows = g.shape[0] * g.shape[1], width = g.shape.count() / rows;
  Golden out{g.shape.with(1, g.shape[1] / 2), g.dtype, {}};
  for (int64_t r = first; r < rows; r += 2) {
    const auto at = g.values.begin() + r * width;
    out.values.insert(out.values.end(), at, at + width);
  }
  return out;
}

Json json_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return parse_json(std::string(std::istreambuf_iterator<char>(file), {}), path.string());
}

}  // namespace

class LayerPass : public WeightedPass {
 public:
  LayerPass(const GoldenFile& weights, const GoldenFile& io, const Json& config, Family family, int64_t layer,
            const Kernels& kernels)
      : WeightedPass(weights, {.kernels = &kernels}), f_(std::move(family)), io_(io), config_(config), layer_(layer) {}

  std::vector<Compared> run();

  Heads separate(const Tensor& h);
  Heads fused(const Tensor& h);
  Heads fused_per_head(const Tensor& h);
  Heads latent(const Tensor& h);
  Tensor plain(const Tensor& h);
  Tensor gated(const Tensor& h);
  Tensor fused_gated(const Tensor& h);
  Tensor experts(const Tensor& h);
  Tensor interleaved_experts(const Tensor& h);
  Tensor experts_beside_a_shared_one(const Tensor& h);

 private:
  std::string name(const std::string& inner) const { return f_.layers + std::to_string(layer_) + f_.inside + inner; }
  std::string recorded(const std::string& what) const { return what + "." + std::to_string(layer_); }
  Tensor project(const Tensor& x, const std::string& inner) {
    if (!f_.conv1d) return linear(x, name(inner));
    return linear(x, weight(inner, transpose(weights().at(name(inner) + ".weight"))), &weight(name(inner) + ".bias"));
  }
  Tensor norm(const std::string& inner, const Tensor& x) { return inner.empty() ? x : whole_norm(name(inner), x); }
  Tensor whole_norm(const std::string& name, const Tensor& x);
  Tensor residual(const std::string& norm_after, const Tensor& x, const Tensor& branch) {
    const Tensor sum = ops::add(cx, x, branch);
    return f_.norms == Family::Norms::after ? norm(norm_after, sum) : sum;
  }
  Tensor before(const std::string& inner, const Tensor& x) {
    return f_.norms == Family::Norms::after ? x : norm(inner, x);
  }

  Tensor rotated(const Tensor& x, int64_t first = 0);
  Tensor attend(const Heads& heads, const Rows& rows, const ops::AttentionOptions& options, const std::string& what);
  Tensor self_attention(const Tensor& h);
  Tensor cross_attention(const Tensor& h);
  Tensor routed(const Tensor& h, const Tensor& logits, const Param* correction);
  void check(const std::string& what, const Tensor& got) {
    if (io_.has(what)) compared_.push_back({what, distance(to_host(got), io_.at(what))});
  }
  std::vector<int32_t> source_lengths(const Golden& hidden) const;

  Family f_;
  const GoldenFile& io_;
  const Json& config_;
  int64_t layer_;
  Rows rows_;
  std::vector<Compared> compared_;
};

// --- families --------------------------------------------------------------------------------------------------------

Family Family::of(const Json& config, const std::string& stack, int64_t layer) {
  const std::string type = config.at("model_type");
  Family f{.project = &LayerPass::separate, .feed = &LayerPass::gated};
  f.heads = whole(config, {"num_attention_heads", "n_head", "num_heads", "encoder_attention_heads"}, 0);
  f.kv_heads = whole(config, {"num_key_value_heads"}, f.heads);
  f.width = whole(config, {"head_dim", "d_kv"},
                  whole(config, {"hidden_size", "n_embd", "d_model"}, 0) / std::max<int64_t>(f.heads, 1));
  f.eps = number(config, {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon"}, 1e-5);
  f.act = activation_of(config);
  f.attention.softcap = number(config, {"attn_logit_softcapping"}, 0);
  if (slides(config, layer)) f.attention.window = whole(config, {"sliding_window"}, 0);
  if (const Json* scalar = found(config, {"query_pre_attn_scalar"})) {
    f.attention.scale = 1 / std::sqrt(scalar->get<double>());
  }
  f.experts = whole(config, {"num_local_experts", "n_routed_experts"}, 0);
  f.route = {.top_k = whole(config, {"num_experts_per_tok"}, 1),
             .renormalise = config.value("norm_topk_prob", true),
             .scaling = number(config, {"routed_scaling_factor"}, 1),
             .groups = whole(config, {"n_group"}, 1),
             .top_groups = whole(config, {"topk_group"}, 1)};

  if (type == "gemma2" || type == "gemma3_text") {
    f.offset = 1;
    f.norm2 = "pre_feedforward_layernorm";
    f.attention_norm = "post_attention_layernorm";
    f.feed_norm = "post_feedforward_layernorm";
  } else if (type == "olmo2") {
    f.norm1 = f.norm2 = "";
    f.attention_norm = "post_attention_layernorm";
    f.feed_norm = "post_feedforward_layernorm";
  } else if (type == "phi3") {
    f.project = &LayerPass::fused;
    f.q = "self_attn.qkv_proj";
    f.feed = &LayerPass::fused_gated;
  } else if (type == "mixtral") {
    f.feed = &LayerPass::experts;
    f.mlp = "block_sparse_moe.";
    f.gate = "w1", f.up = "w3", f.down = "w2";
  } else if (type == "qwen3_moe") {
    f.feed = &LayerPass::experts;
  } else if (type == "gpt_oss") {
    f.feed = &LayerPass::interleaved_experts;
  } else if (type == "deepseek_v3") {
    f.project = &LayerPass::latent;
    if (layer >= whole(config, {"first_k_dense_replace"}, 0)) f.feed = &LayerPass::experts_beside_a_shared_one;
    f.route.sigmoid = true;
    const Json rope = rope_of(config, layer);
    const double all_dim = number(rope, {"mscale_all_dim"}, 0), factor = number(rope, {"factor"}, 1);
    const double mscale = all_dim > 0 && factor > 1 ? 0.1 * all_dim * std::log(factor) + 1 : 1;
    f.attention.scale = mscale * mscale / std::sqrt(number(config, {"qk_head_dim"}, 0));
  } else if (type == "gpt2") {
    f.layers = "transformer.h.";
    f.norm1 = "ln_1", f.norm2 = "ln_2", f.final_norm = "transformer.ln_f";
    f.conv1d = true;
    f.project = &LayerPass::fused;
    f.q = "attn.c_attn", f.out = "attn.c_proj";
    f.feed = &LayerPass::plain;
    f.up = "c_fc", f.down = "c_proj";
  } else if (type == "gpt_neox") {
    f.layers = "gpt_neox.layers.";
    f.final_norm = "gpt_neox.final_layer_norm";
    f.norms = config.at("use_parallel_residual").get<bool>() ? Norms::parallel : Norms::before;
    f.project = &LayerPass::fused_per_head;
    f.q = "attention.query_key_value", f.out = "attention.dense";
    f.feed = &LayerPass::plain;
    f.up = "dense_h_to_4h", f.down = "dense_4h_to_h";
  } else if (type == "bert") {
    f.layers = "bert.encoder.layer.";
    f.norms = Norms::after;
    f.norm1 = "attention.output.LayerNorm", f.norm2 = "output.LayerNorm", f.final_norm = "";
    f.q = "attention.self.query", f.k = "attention.self.key", f.v = "attention.self.value";
    f.out = "attention.output.dense";
    f.feed = &LayerPass::plain;
    f.mlp = "", f.up = "intermediate.dense", f.down = "output.dense";
    f.causal = false;
  } else if (type == "bart" || type == "marian") {
    f.io = stack + "_";
    f.layers = "model." + stack + ".layers.";
    f.norms = Norms::after;
    f.norm1 = "self_attn_layer_norm", f.norm2 = "final_layer_norm", f.final_norm = "";
    f.out = "self_attn.out_proj";
    f.feed = &LayerPass::plain;
    f.mlp = "", f.up = "fc1", f.down = "fc2";
    f.causal = stack == "decoder";
    if (f.causal) f.cross = "encoder_attn.", f.cross_norm = "encoder_attn_layer_norm";
  } else if (type == "t5") {
    f.io = stack + "_";
    f.layers = stack + ".block.", f.inside = ".layer.";
    f.norm1 = "0.layer_norm", f.final_norm = stack + ".final_layer_norm";
    f.q = "0.SelfAttention.q", f.k = "0.SelfAttention.k", f.v = "0.SelfAttention.v", f.out = "0.SelfAttention.o";
    f.causal = stack == "decoder";
    if (f.causal) f.cross = "1.EncDecAttention.", f.cross_norm = "1.layer_norm";
    f.norm2 = f.causal ? "2.layer_norm" : "1.layer_norm";
    f.mlp = f.causal ? "2.DenseReluDense." : "1.DenseReluDense.";
    const bool gated = config.at("is_gated_act").get<bool>();
    f.feed = gated ? &LayerPass::gated : &LayerPass::plain;
    f.gate = "wi_0", f.up = gated ? "wi_1" : "wi", f.down = "wo";
    f.attention.scale = 1;
  }
  f.attention.causal = f.causal;
  return f;
}

// --- norms and attention ---------------------------------------------------------------------------------------------

Tensor LayerPass::whole_norm(const std::string& name, const Tensor& x) {
  const Param &w = weight(name + ".weight"), *b = weight_or_none(name + ".bias");
  return b != nullptr ? ops::layer_norm(cx, x, {.weight = &w, .bias = b, .eps = f_.eps})
                      : ops::rms_norm(cx, x, {.weight = &w, .eps = f_.eps, .offset = f_.offset});
}

// All columns of a head from `first` on, or the part of them the config names.
Tensor LayerPass::rotated(const Tensor& x, int64_t first) {
  if (!config_.contains("rope_parameters")) return x;
  const Json rope = rope_of(config_, layer_);
  const double part = number(rope, {"partial_rotary_factor"}, 1);
  const auto width = static_cast<int64_t>(static_cast<double>(x.cols() - first) * part);
  const int64_t length = rows_.longest_keys;
  const ops::RopeTable table = ops::rope_table(rope.at("rope_theta"), width, length, scaling_of(rope));
  return ops::rotary(cx, x, rows_.positions,
                     {.cos = cx.upload(table.cos, {length, table.pairs}),
                      .sin = cx.upload(table.sin, {length, table.pairs}),
                      .first = first,
                      .interleaved = config_.value("rope_interleave", false)});
}

Heads LayerPass::separate(const Tensor& h) {
  // A norm as wide as a head holds for each of them; a wider one for all heads joined.
  const auto one = [&](const std::string& inner, const std::string& norm_name, int64_t heads) {
    Tensor x = project(h, inner);
    const bool normed = weights().has(name(norm_name) + ".weight");
    const bool per_head = normed && weights().at(name(norm_name) + ".weight").shape.count() == f_.width;
    if (normed && !per_head) x = norm(norm_name, x);
    x = ops::split_heads(x, heads);
    return normed && per_head ? norm(norm_name, x) : x;
  };
  return {rotated(one(f_.q, "self_attn.q_norm", f_.heads)), rotated(one(f_.k, "self_attn.k_norm", f_.kv_heads)),
          one(f_.v, "", f_.kv_heads)};
}

Heads LayerPass::fused(const Tensor& h) {  // [all of q | all of k | all of v]
  const Tensor qkv = project(h, f_.q);
  const int64_t q = f_.heads * f_.width, kv = f_.kv_heads * f_.width;
  return {rotated(ops::split_heads(qkv.slice(1, 0, q), f_.heads)),
          rotated(ops::split_heads(qkv.slice(1, q, kv), f_.kv_heads)),
          ops::split_heads(qkv.slice(1, q + kv, kv), f_.kv_heads)};
}

Heads LayerPass::fused_per_head(const Tensor& h) {  // q, k and v of head 0, then of head 1, ...
  const Tensor qkv = ops::split_heads(project(h, f_.q), f_.heads);
  return {rotated(qkv.slice(2, 0, f_.width)), rotated(qkv.slice(2, f_.width, f_.width)),
          qkv.slice(2, 2 * f_.width, f_.width)};
}

Heads LayerPass::latent(const Tensor& h) {
  const int64_t rank = config_.at("kv_lora_rank"), turned = config_.at("qk_rope_head_dim");
  const int64_t still = config_.at("qk_nope_head_dim"), value = config_.at("v_head_dim");
  const Tensor q =
      config_.at("q_lora_rank").is_null()
          ? project(h, f_.q)
          : project(norm("self_attn.q_a_layernorm", project(h, "self_attn.q_a_proj")), "self_attn.q_b_proj");
  const Tensor latent = project(h, "self_attn.kv_a_proj_with_mqa");
  const Tensor kv = ops::split_heads(
      project(norm("self_attn.kv_a_layernorm", latent.slice(1, 0, rank)), "self_attn.kv_b_proj"), f_.heads);
  const Tensor shared_key = rotated(ops::split_heads(latent.slice(1, rank, turned), 1));
  return {rotated(ops::split_heads(q, f_.heads), still), ops::concat(cx, kv.slice(2, 0, still), shared_key),
          kv.slice(2, still, value)};
}

Tensor LayerPass::attend(const Heads& heads, const Rows& rows, const ops::AttentionOptions& options,
                         const std::string& what) {
  const auto attended = ops::attention(cx, heads.q, heads.k, heads.v, rows, options);
  const Tensor pattern = ops::attention_pattern(cx, heads.q, heads.k, attended.lse, rows, options);
  const auto batch = static_cast<int64_t>(rows.list.size());
  check(recorded(what), pattern.view({batch, rows.rows / batch, f_.heads, rows.longest_keys}).transposed(1, 2));
  return ops::merge_heads(attended.z);
}

Tensor LayerPass::self_attention(const Tensor& h) {
  ops::AttentionOptions options = f_.attention;
  options.sinks = weight_or_none(name("self_attn.sinks"));
  // T5: the first layer's biases serve all.
  const std::string bias = f_.layers + "0" + f_.inside + "0.SelfAttention.relative_attention_bias.weight";
  if (weights().has(bias)) {
    options.bias = &weight(bias, transpose(weights().at(bias)));  // [buckets, H] -> [H, buckets]
    options.buckets = cx.upload(ops::relative_buckets(config_.at("relative_attention_num_buckets"),
                                                      config_.at("relative_attention_max_distance"), !f_.causal));
  }
  return project(attend((this->*f_.project)(h), rows_, options, f_.io + "attentions"), f_.out);
}

std::vector<int32_t> LayerPass::source_lengths(const Golden& hidden) const {
  std::vector<int32_t> lengths;
  for (int64_t b = 0; b < hidden.shape[0]; ++b) {
    double kept = static_cast<double>(hidden.shape[1]);
    if (io_.has("attention_mask")) {
      const Golden row = rows_of(io_.at("attention_mask"), b, 1);
      kept = static_cast<double>(std::count(row.values.begin(), row.values.end(), 1.0));
    }
    lengths.push_back(static_cast<int32_t>(kept));
  }
  return lengths;
}

Tensor LayerPass::cross_attention(const Tensor& h) {
  int64_t last = 0;
  while (io_.has("encoder_hidden_states." + std::to_string(last + 1))) ++last;
  const Golden& encoded = io_.at("encoder_hidden_states." + std::to_string(last));
  const Tensor memory = input_of(encoded).flatten_to(2);
  const std::vector<int32_t> lengths = source_lengths(encoded);
  const Rows rows = Rows::across(cx, rows_, Rows::padded(cx, lengths, encoded.shape[1]));
  const auto one = [&](const Tensor& x, const std::string& like) {
    return ops::split_heads(project(x, f_.cross + like.substr(like.rfind('.') + 1)), f_.heads);
  };
  const Heads heads{one(h, f_.q), one(memory, f_.k), one(memory, f_.v)};
  return project(attend(heads, rows, {.scale = f_.attention.scale}, "cross_attentions"),
                 f_.cross + f_.out.substr(f_.out.rfind('.') + 1));
}

// --- feed-forward ----------------------------------------------------------------------------------------------------

Tensor LayerPass::plain(const Tensor& h) {
  return project(ops::activation(cx, project(h, f_.mlp + f_.up), f_.act), f_.mlp + f_.down);
}

Tensor LayerPass::gated(const Tensor& h) {
  return project(ops::gated(cx, project(h, f_.mlp + f_.gate), project(h, f_.mlp + f_.up), {f_.act}), f_.mlp + f_.down);
}

Tensor LayerPass::fused_gated(const Tensor& h) {
  const Tensor both = project(h, f_.mlp + "gate_up_proj");
  const int64_t width = both.cols() / 2;
  return project(ops::gated(cx, both.slice(1, 0, width), both.slice(1, width, width), {f_.act}), f_.mlp + f_.down);
}

Tensor LayerPass::routed(const Tensor& h, const Tensor& logits, const Param* correction) {
  check(recorded("router_logits"), logits);
  const auto chosen = ops::route(cx, logits, f_.route, correction);
  const auto plan = ops::plan_dispatch(cx, chosen.ids, f_.experts);
  const Tensor x = ops::dispatch(cx, h, plan);
  Tensor z;
  if (f_.feed == &LayerPass::interleaved_experts) {
    const Golden both = transpose(weights().at(name("mlp.experts.gate_up_proj")));
    const Golden& bias = weights().at(name("mlp.experts.gate_up_proj_bias"));
    const auto half = [&](int64_t first) {  // gate and up lie in turn
      return ops::linear(cx, x, weight("gate_up", every_other(both, first)),
                         {.bias = &weight("gate_up_bias", every_other(bias, first)), .groups = plan.groups});
    };
    z = ops::linear(cx, ops::gated(cx, half(0), half(1), ops::gate::clamped_swiglu),
                    weight("down", transpose(weights().at(name("mlp.experts.down_proj")))),
                    {.bias = &weight(name("mlp.experts.down_proj_bias")), .groups = plan.groups});
  } else {
    const auto product = [&](const Tensor& from, const std::string& which) {
      const Golden all = stacked(weights(), f_.experts, name(f_.mlp + "experts."), "." + which + ".weight");
      return ops::linear(cx, from, weight(which, all), {.groups = plan.groups});
    };
    z = product(ops::gated(cx, product(x, f_.gate), product(x, f_.up), {f_.act}), f_.down);
  }
  return ops::combine(cx, z, chosen.weights, plan);
}

Tensor LayerPass::experts(const Tensor& h) {
  return routed(h, project(h, f_.mlp + "gate"), nullptr);
}
Tensor LayerPass::interleaved_experts(const Tensor& h) {
  return routed(h, project(h, "mlp.router"), nullptr);
}
Tensor LayerPass::experts_beside_a_shared_one(const Tensor& h) {
  const Tensor chosen = routed(h, project(h, "mlp.gate"), weight_or_none(name("mlp.gate.e_score_correction_bias")));
  f_.mlp = "mlp.shared_experts.";
  return ops::add(cx, chosen, gated(h));
}

// --- the layer -------------------------------------------------------------------------------------------------------

std::vector<Compared> LayerPass::run() {
  const std::string states = f_.io + "hidden_states";
  const Golden& hidden = io_.at(recorded(states));
  const int64_t batch = hidden.shape[0], length = hidden.shape[1];
  std::vector<Segment> segments;
  // An encoder's padding is hidden as keys, yet the recorded padded rows look at the others. BERT's recording saw all.
  const std::vector<int32_t> lengths =
      f_.io == "encoder_" ? source_lengths(hidden)
                          : std::vector<int32_t>(static_cast<size_t>(batch), static_cast<int32_t>(length));
  for (int64_t b = 0; b < batch; ++b) {
    const auto first = static_cast<int32_t>(b * length);
    segments.push_back({.request = static_cast<int32_t>(b),
                        .first_row = first,
                        .rows = static_cast<int32_t>(length),
                        .first_key = first,
                        .keys = lengths[static_cast<size_t>(b)]});
  }
  rows_ = Rows::make(cx, segments, batch * length, batch * length);

  Tensor x = input_of(hidden).flatten_to(2);
  const Tensor attended = norm(f_.attention_norm, self_attention(before(f_.norm1, x)));
  if (f_.norms == Family::Norms::parallel) {
    x = ops::add(cx, ops::add(cx, x, attended), (this->*f_.feed)(norm(f_.norm2, x)));
  } else {
    x = residual(f_.norm1, x, attended);
    if (!f_.cross.empty()) x = residual(f_.cross_norm, x, cross_attention(before(f_.cross_norm, x)));
    x = residual(f_.norm2, x, norm(f_.feed_norm, (this->*f_.feed)(before(f_.norm2, x))));
  }
  const bool last = !io_.has(states + "." + std::to_string(layer_ + 2));
  if (last && !f_.final_norm.empty()) x = whole_norm(f_.final_norm, x);
  check(states + "." + std::to_string(layer_ + 1), x);
  return compared_;
}

std::vector<Compared> compare_layer(const LayerChoice& choice, const Kernels& kernels) {
  const auto& [folder, stack, layer, patch] = choice;
  Json config = json_of(folder / "config.json");
  if (patch.is_object()) config.merge_patch(patch);
  const GoldenFile weights = GoldenFile::read(folder / "model.safetensors"),
                   io = GoldenFile::read(folder / "io.safetensors");
  return LayerPass(weights, io, config, Family::of(config, stack, layer), layer, kernels).run();
}

}  // namespace qkv::test
