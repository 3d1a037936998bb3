// Configs that do not mention a key against the published defaults of every family.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "model/families/family.h"
#include "support/pass.h"

namespace qkv {
namespace defaults_test {

// All members of a spec as text. The structured bindings stop compiling when a member is added.
struct SpecText {
  static std::string text(bool v) { return v ? "true" : "false"; }
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) static std::string text(T v) {
    return fmt::format("{}", v);
  }
  template <class T>
  requires std::is_enum_v<T>
  static std::string text(T v) { return std::to_string(static_cast<int>(v)); }
  static std::string text(const std::string& v) { return v; }
  template <class... T>
  static std::string joined(const T&... members) {
    std::string all = "{";
    ((all += text(members) + " "), ...);
    return all + "}";
  }

  static std::string text(const Activation& v) {
    const auto& [kind, alpha] = v;
    return joined(kind, alpha);
  }
  static std::string text(const RouteRule& v) {
    const auto& [top_k, sigmoid, renormalise, scaling, groups, top_groups] = v;
    return joined(top_k, sigmoid, renormalise, scaling, groups, top_groups);
  }
  static std::string text(const NormSpec& v) {
    const auto& [kind, eps, offset, bias] = v;
    return joined(kind, eps, offset, bias);
  }
  static std::string text(const ops::RopeScaling& v) {
    const auto& [kind, factor, original, low, high, fast, slow, mscale, mscale_all, truncate, attention, shorter,
                 longer] = v;
    return joined(kind, factor, original, low, high, fast, slow, mscale, mscale_all, truncate, attention, shorter,
                  longer);
  }
  static std::string text(const RopeSpec& v) {
    const auto& [base, width, first, interleaved, scaling] = v;
    return joined(base, width, first, interleaved, scaling);
  }
  static std::string text(const LatentSpec& v) {
    const auto& [q_rank, kv_rank, nope, rope] = v;
    return joined(q_rank, kv_rank, nope, rope);
  }
  static std::string text(const RelativeBiasSpec& v) {
    const auto& [buckets, max_distance, each] = v;
    return joined(buckets, max_distance, each);
  }
  static std::string text(const TemperatureSpec& v) {
    const auto& [scale, floor] = v;
    return joined(scale, floor);
  }
  static std::string text(const AttentionSpec& v) {
    const auto& [heads, kv_heads, width, value_width, kv_map, causal, window, chunk, scale, softcap, q, k, vb, out,
                 qk_norm, normed, normed_kv, norm, sinks, rope, relative, alibi, temperature, latent, dropout] = v;
    return joined(heads, kv_heads, width, value_width, kv_map, causal, window, chunk, scale, softcap, q, k, vb, out,
                  qk_norm, normed, normed_kv, norm, sinks, rope, relative, alibi, temperature, latent, dropout);
  }
  static std::string text(const ExpertsSpec& v) {
    const auto& [count, width, rule, shared_width, shared_gate, weigh_inputs, router_bias, correction, bias] = v;
    return joined(count, width, rule, shared_width, shared_gate, weigh_inputs, router_bias, correction, bias);
  }
  static std::string text(const FeedForwardSpec& v) {
    const auto& [width, gated, act, limit, shift, bias, experts, dropout] = v;
    return joined(width, gated, act, limit, shift, bias, experts, dropout);
  }
  static std::string text(const LayerSpec& v) {
    const auto& [attention, cross, feed, place, norm, attention_norm, branch, dropout] = v;
    return "\n" + joined(attention, cross, feed, place, norm, attention_norm, branch, dropout);
  }
  static std::string text(const PositionSpec& v) {
    const auto& [kind, count, offset, padding, order] = v;
    return joined(kind, count, offset, padding, order);
  }
  static std::string text(const StackSpec& v) {
    const auto& [layers, positions, types, embedding_norm, final_norm, factor, dropout] = v;
    return joined(layers, positions, types, embedding_norm, final_norm, factor, dropout);
  }
  static std::string text(const HeadSpec& v) {
    const auto& [tied, bias, transform, transform_bias, act, factor, softcap] = v;
    return joined(tied, bias, transform, transform_bias, act, factor, softcap);
  }
  static std::string text(const InitSpec& v) {
    const auto& [kind, std] = v;
    return joined(kind, std);
  }
  static std::string text(const TokenIds& v) {
    const auto& [bos, pad, start, forced, eos] = v;
    return joined(bos, pad, start, forced, eos);
  }
  static std::string text(const ModelSpec& v) {
    const auto& [kind, family, vocabulary, width, source, context, dtype, norm, encoder, decoder, head, init, tokens,
                 cut] = v;
    return joined(kind, family, vocabulary, width, source, context, dtype, norm, encoder, decoder, head, init, tokens,
                  cut);
  }
  template <class T>
  static std::string text(const std::vector<T>& list) {
    std::string all = "[";
    for (const T& v : list) all += text(v) + " ";
    return all + "]";
  }
  template <class T>
  static std::string text(const std::optional<T>& v) {
    return v ? text(*v) : "none";
  }
};

std::string spec_text(const Json& config, const std::string& what) {
  return SpecText::text(read_spec(Config(config, what)));
}

// What follows where two texts begin to differ.
std::string difference(const std::string& got, const std::string& expected) {
  if (got == expected) return "";
  const auto at = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end()).first - got.begin();
  const auto from = static_cast<size_t>(std::max<std::ptrdiff_t>(at - 20, 0));
  return "'.." + got.substr(std::min(from, got.size()), 40) + "..' instead of '.." + expected.substr(from, 40) + "..'";
}

// The config of a golden without what it spells out for its layers.
Json base_of(const std::string& family) {
  const std::string folder = family.ends_with("_text") ? family.substr(0, family.size() - 5) : family;
  Json config = parse_json(read_file(test::golden(folder) / "config.json", 1 << 20), "config.json");
  for (const char* key :
       {"layer_types", "rope_parameters", "no_rope_layers", "moe_layers", "is_gated_act", "dense_act_fn",
        "partial_rotary_factor", "scale_decoder_outputs", "_sliding_window_pattern"}) {
    config.erase(key);
  }
  return config;
}

// Another possible value of a key.
Json other_than(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value == "relu" ? "silu" : "relu";
  if (value.is_number_integer()) return 2 * value.get<int64_t>() + 2;
  if (value.is_number()) return value == 0.0 ? 0.25 : value.get<double>() / 2;
  if (value.is_array()) return Json::array({0});
  return value.is_null() ? Json(8) : Json();
}

struct Published {
  const char* family;
  const char* defaults;      // of its config class in transformers
  const char* given = "{}";  // keys that make the others matter
};

// The keys that readers look for, except widths, numbers of heads and token ids.
constexpr const char *kBart = R"({"activation_function": "gelu", "dropout": 0.1, "attention_dropout": 0.0,
    "activation_dropout": 0.0, "init_std": 0.02, "scale_embedding": false, "tie_word_embeddings": true,
    "max_position_embeddings": 1024})",
                     *kBert = R"({"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12, "tie_word_embeddings": true})",
                     *kMostLayersSlide = R"({"use_sliding_window": true, "num_hidden_layers": 40})",
                     *kWindowUsed = R"({"use_sliding_window": true, "num_hidden_layers": 40, "sliding_window": 8})";

const Published kPublished[] = {
    {"bart", kBart},
    {"mbart", kBart},
    {"pegasus", kBart},
    {"m2m_100", R"({"activation_function": "relu", "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.0,
        "init_std": 0.02, "scale_embedding": true, "tie_word_embeddings": true})"},
    {"marian", R"({"activation_function": "gelu", "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
        "init_std": 0.02, "scale_embedding": false, "tie_word_embeddings": true,
        "share_encoder_decoder_embeddings": true})"},
    {"bert", kBert},
    {"roberta", kBert},
    {"bloom",
     R"({"layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "hidden_dropout": 0.0, "attention_dropout": 0.0,
        "tie_word_embeddings": true, "apply_residual_connection_post_layernorm": false})"},
    {"cohere2", R"({"logit_scale": 0.0625, "hidden_act": "silu", "initializer_range": 0.02, "layer_norm_eps": 1e-5,
        "tie_word_embeddings": true, "rope_theta": 1e4, "attention_bias": false, "attention_dropout": 0.0,
        "sliding_window": 4096, "sliding_window_pattern": 4})"},
    {"deepseek_v3", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02,
        "tie_word_embeddings": false, "attention_bias": false, "attention_dropout": 0.0, "rope_theta": 1e4,
        "rope_interleave": true, "first_k_dense_replace": 3, "n_shared_experts": 1, "n_group": 8, "topk_group": 4,
        "routed_scaling_factor": 2.5, "q_lora_rank": 1536, "norm_topk_prob": true})",
     R"({"num_hidden_layers": 5, "n_routed_experts": 32, "n_group": 16, "topk_group": 4})"},
    {"ernie4_5", R"({"rms_norm_eps": 1e-5, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": true,
        "rope_theta": 500000.0, "use_bias": false})"},
    {"exaone4", R"({"rms_norm_eps": 1e-5, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e4, "attention_dropout": 0.0, "sliding_window": 4096, "sliding_window_pattern": 4})"},
    {"falcon",
     R"({"layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "hidden_dropout": 0.0, "attention_dropout": 0.0,
        "alibi": false, "new_decoder_architecture": false, "multi_query": true, "parallel_attn": true, "bias": false,
        "activation": "gelu", "tie_word_embeddings": true, "rope_theta": 1e4})"},
    {"falcon", R"({"num_ln_in_parallel_attn": 2})", R"({"new_decoder_architecture": true})"},
    {"gemma2", R"({"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 256,
        "hidden_activation": "gelu_pytorch_tanh", "initializer_range": 0.02, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": true, "rope_theta": 1e4, "attention_bias": false, "attention_dropout": 0.0,
        "sliding_window": 4096})"},
    {"gemma3_text", R"({"attn_logit_softcapping": null, "final_logit_softcapping": null, "query_pre_attn_scalar": 256,
        "hidden_activation": "gelu_pytorch_tanh", "initializer_range": 0.02, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": true, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "attention_bias": false,
        "attention_dropout": 0.0, "sliding_window": 4096, "sliding_window_pattern": 6})",
     R"({"num_hidden_layers": 6})"},
    {"glm4", R"({"rms_norm_eps": 1.5625e-7, "hidden_act": "silu", "initializer_range": 0.02,
        "tie_word_embeddings": false, "rope_theta": 1e4, "attention_dropout": 0.0, "attention_bias": true,
        "partial_rotary_factor": 0.5})"},
    {"glm4_moe", R"({"rms_norm_eps": 1e-5, "hidden_act": "silu", "initializer_range": 0.02,
        "tie_word_embeddings": false, "rope_theta": 1e4, "attention_bias": false, "attention_dropout": 0.0,
        "partial_rotary_factor": 0.5, "n_shared_experts": 1, "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "norm_topk_prob": true, "use_qk_norm": false})"},
    {"gpt2", R"({"activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "scale_attn_weights": true,
        "scale_attn_by_inverse_layer_idx": false, "tie_word_embeddings": true})"},
    {"gpt_neox", R"({"hidden_act": "gelu", "attention_dropout": 0.0, "hidden_dropout": 0.0, "initializer_range": 0.02,
        "layer_norm_eps": 1e-5, "tie_word_embeddings": false, "use_parallel_residual": true, "attention_bias": true,
        "rotary_emb_base": 1e4, "rotary_pct": 0.25})"},
    {"gpt_oss", R"({"rms_norm_eps": 1e-5, "initializer_range": 0.02, "tie_word_embeddings": false,
        "attention_bias": true, "attention_dropout": 0.0, "swiglu_limit": 7.0, "sliding_window": 128,
        "rope_theta": 150000.0, "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "truncate": false, "original_max_position_embeddings": 4096}})"},
    {"gptj", R"({"rotary_dim": 64, "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0,
        "attn_pdrop": 0.0, "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "tie_word_embeddings": false})",
     R"({"n_embd": 512})"},
    {"granite", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e4, "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false,
        "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0})"},
    {"llama", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e4, "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false})"},
    {"llama4_text", R"({"rms_norm_eps": 1e-5, "hidden_act": "silu", "initializer_range": 0.02,
        "tie_word_embeddings": false, "rope_theta": 500000.0, "attention_bias": false, "attention_dropout": 0.0,
        "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 1, "use_qk_norm": true, "no_rope_layer_interval": 4,
        "attention_chunk_size": 8192, "attn_temperature_tuning": true, "floor_scale": 8192, "attn_scale": 0.1})",
     R"({"num_hidden_layers": 4})"},
    {"mistral", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e4, "attention_dropout": 0.0, "sliding_window": 4096})"},
    {"mixtral", R"({"rms_norm_eps": 1e-5, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e6, "attention_dropout": 0.0, "sliding_window": null})"},
    {"modernbert", R"({"hidden_activation": "gelu", "initializer_range": 0.02, "norm_eps": 1e-5, "norm_bias": false,
        "attention_bias": false, "attention_dropout": 0.0, "local_attention": 128, "embedding_dropout": 0.0,
        "mlp_bias": false, "mlp_dropout": 0.0, "decoder_bias": true, "classifier_bias": false,
        "classifier_activation": "gelu", "tie_word_embeddings": true, "global_attn_every_n_layers": 3,
        "global_rope_theta": 160000.0, "local_rope_theta": 1e4})",
     R"({"local_attention": 8})"},
    {"nemotron", R"({"hidden_act": "relu2", "initializer_range": 0.0134, "norm_eps": 1e-5, "tie_word_embeddings": false,
        "rope_theta": 1e4, "partial_rotary_factor": 0.5, "attention_bias": false, "attention_dropout": 0.0,
        "mlp_bias": false})"},
    {"olmo2", R"({"rms_norm_eps": 1e-5, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e4, "attention_bias": false, "attention_dropout": 0.0})"},
    {"olmo3", R"({"rms_norm_eps": 1e-5, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 500000.0, "attention_bias": false, "attention_dropout": 0.0, "sliding_window": 4096})"},
    {"opt", R"({"activation_function": "relu", "dropout": 0.1, "attention_dropout": 0.0, "init_std": 0.02,
        "do_layer_norm_before": true, "_remove_final_layer_norm": false, "enable_bias": true,
        "layer_norm_elementwise_affine": true, "tie_word_embeddings": true, "max_position_embeddings": 2048})"},
    {"phi", R"({"hidden_act": "gelu_new", "attention_dropout": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
        "layer_norm_eps": 1e-5, "initializer_range": 0.02, "tie_word_embeddings": false, "rope_theta": 1e4,
        "partial_rotary_factor": 0.5, "qk_layernorm": false})"},
    {"phi3", R"({"rms_norm_eps": 1e-5, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e4, "attention_dropout": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "sliding_window": null,
        "original_max_position_embeddings": 4096})",
     R"({"rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [2, 2, 2, 2]},
        "max_position_embeddings": 8192})"},
    {"qwen2", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e4, "attention_dropout": 0.0, "use_sliding_window": false})",
     R"({"sliding_window": 8, "max_window_layers": 0})"},
    {"qwen2", R"({"max_window_layers": 28})", kWindowUsed},
    {"qwen2", R"({"sliding_window": 4096})", kMostLayersSlide},
    {"qwen2_moe", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02,
        "tie_word_embeddings": false, "rope_theta": 1e4, "attention_dropout": 0.0, "use_sliding_window": false,
        "decoder_sparse_step": 1, "norm_topk_prob": false, "qkv_bias": true, "mlp_only_layers": []})",
     R"({"sliding_window": 8, "max_window_layers": 1})"},
    {"qwen2_moe", R"({"max_window_layers": 28})", kWindowUsed},
    {"qwen2_moe", R"({"sliding_window": 4096})", kMostLayersSlide},
    {"qwen3", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false,
        "rope_theta": 1e4, "attention_bias": false, "attention_dropout": 0.0, "use_sliding_window": false})",
     R"({"sliding_window": 8, "max_window_layers": 0})"},
    {"qwen3", R"({"max_window_layers": 28})", kWindowUsed},
    {"qwen3", R"({"sliding_window": 4096})", kMostLayersSlide},
    {"qwen3_moe", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02,
        "tie_word_embeddings": false, "rope_theta": 1e4, "attention_bias": false, "attention_dropout": 0.0,
        "use_sliding_window": false, "decoder_sparse_step": 1, "norm_topk_prob": false})",
     R"({"sliding_window": 8})"},
    {"qwen3_moe", R"({"sliding_window": 4096})", kMostLayersSlide},
    {"smollm3", R"({"rms_norm_eps": 1e-6, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": true,
        "rope_theta": 2000000.0, "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false,
        "no_rope_layer_interval": 4, "use_sliding_window": false})",
     R"({"sliding_window": 8})"},
    {"smollm3", R"({"sliding_window": null})", kMostLayersSlide},
    {"stablelm", R"({"hidden_act": "silu", "initializer_range": 0.02, "layer_norm_eps": 1e-5,
        "tie_word_embeddings": false, "use_qkv_bias": false, "qk_layernorm": false, "use_parallel_residual": false,
        "hidden_dropout": 0.0, "attention_dropout": 0.0, "rope_theta": 1e4, "partial_rotary_factor": 0.25})"},
    {"starcoder2", R"({"hidden_act": "gelu_pytorch_tanh", "initializer_range": 0.018042, "norm_epsilon": 1e-5,
        "sliding_window": null, "attention_dropout": 0.0, "residual_dropout": 0.0, "embedding_dropout": 0.0,
        "use_bias": true, "tie_word_embeddings": true, "rope_theta": 1e4})"},
    {"t5", R"({"feed_forward_proj": "relu", "dropout_rate": 0.1, "layer_norm_epsilon": 1e-6, "initializer_factor": 1.0,
        "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "tie_word_embeddings": true})"},
};

TEST(FamilyDefaults, AKeyThatIsNotMentionedHasItsPublishedValue) {
  std::set<std::string> seen;
  for (const Published& row : kPublished) {
    seen.insert(row.family);
    Json base = base_of(row.family);
    base.update(parse_json(row.given, row.family));
    const Json defaults = parse_json(row.defaults, row.family);
    for (const auto& [key, value] : defaults.items()) {
      const std::string what = std::string(row.family) + " without " + key;
      Json said = base, silent = base, changed = base;
      said[key] = value;
      silent.erase(key);
      changed[key] = other_than(value);
      const std::string expected = spec_text(said, what);
      std::string got, other;
      const std::optional<Error> refused = error_of([&] { got = spec_text(silent, what); });
      EXPECT_FALSE(refused) << what << ", whose default is " << value << ": " << refused->what();
      EXPECT_EQ(difference(got, expected), "") << what << ", whose default is " << value;
      // Another value changes the spec or is refused: otherwise the comparison says nothing.
      if (!error_of([&] { other = spec_text(changed, what); })) {
        EXPECT_NE(difference(other, expected), "") << what << ": the key has no effect";
      }
    }
  }
  for (const Family* family : all_families()) {
    if (std::string(family->name) != "transformer") {  // our own
      EXPECT_TRUE(seen.contains(family->name)) << family->name << " has no published defaults here";
    }
  }
}

// s: sliding window, f: all keys, c: chunks.
TEST(FamilyDefaults, LayersWithoutTypesHaveThePublishedOnes) {
  const Json used{{"use_sliding_window", true}, {"sliding_window", 8}};
  struct Case {
    const char *family, *types;
    Json given = Json::object();
  };
  const Case cases[] = {
      {"cohere2", "sssfsssf"},
      {"exaone4", "sssfsssf"},
      {"gemma2", "sfsfsfsf"},
      {"gemma3_text", "sssssfss"},
      {"gpt_oss", "sfsfsfsf"},
      {"llama4_text", "cccfcccf"},
      {"modernbert", "fssfssfs"},
      {"olmo3", "sssfsssf"},
      {"qwen2_moe", "sfsfsfsf", used},
      {"qwen3_moe", "ssssssss", used},
      {"qwen3_moe", "ffffffff"},
      {"smollm3", "fffsfffs", {{"use_sliding_window", true}, {"sliding_window", 8}, {"no_rope_layer_interval", 4}}}};
  for (const Case& c : cases) {
    Json silent = base_of(c.family);
    silent["num_hidden_layers"] = 8;
    silent.update(c.given);
    Json said = silent;
    for (const char type : std::string(c.types)) {
      said["layer_types"].push_back(type == 's'   ? "sliding_attention"
                                    : type == 'c' ? "chunked_attention"
                                                  : "full_attention");
    }
    EXPECT_EQ(difference(spec_text(silent, c.family), spec_text(said, c.family)), "") << c.family << ": " << c.types;
  }
}

TEST(FamilyDefaults, RopeParametersWithoutABaseOrPartHaveThePublishedOnes) {
  const auto rope = [](const std::string& family, const Json& parameters) {
    Json config = base_of(family);
    config["rope_parameters"] = parameters;
    return spec_text(config, family);
  };
  const auto plain = [](double base) { return Json{{"rope_type", "default"}, {"rope_theta", base}}; };
  const Json silent{{"rope_type", "default"}};
  EXPECT_EQ(difference(rope("gemma3_text", {{"sliding_attention", silent}, {"full_attention", silent}}),
                       rope("gemma3_text", {{"sliding_attention", plain(1e4)}, {"full_attention", plain(1e6)}})),
            "");
  EXPECT_EQ(difference(rope("modernbert", {{"sliding_attention", silent}, {"full_attention", silent}}),
                       rope("modernbert", {{"sliding_attention", plain(1e4)}, {"full_attention", plain(160000)}})),
            "");
  EXPECT_EQ(difference(rope("mixtral", silent), rope("mixtral", plain(1e6))), "");
  EXPECT_EQ(
      difference(rope("gpt_neox", silent), rope("gpt_neox", {{"rope_theta", 1e4}, {"partial_rotary_factor", 0.25}})),
      "");
  EXPECT_NE(rope("gpt_neox", silent), rope("gpt_neox", {{"rope_theta", 1e4}, {"partial_rotary_factor", 1.0}}));
}

// null says "none" where the key's absence means the default.
TEST(FamilyDefaults, NullIsNotSilence) {
  for (const char* family : {"mistral", "exaone4"}) {
    Json none = base_of(family), silent = none;
    none["sliding_window"] = nullptr;
    silent.erase("sliding_window");
    const ModelSpec without = read_spec(Config(none, family)), with = read_spec(Config(silent, family));
    EXPECT_EQ(without.decoder.layers[0].attention.window, 0) << family;
    EXPECT_EQ(with.decoder.layers[0].attention.window, 4096) << family;
  }
}

}  // namespace defaults_test
}  // namespace qkv
