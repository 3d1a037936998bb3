#include "base/error.h"
#include "model/families/family.h"
#include "model/gguf/gguf_config.h"

namespace qkv {
namespace {

using Layout = NamedTensor::Layout;

struct Naming {
  const char* family;
  const char* architecture;
  bool pairs = false;             // W_Q and W_K with interleaved rotary pairs
  bool one_qkv = false;           // W_Q, W_K and W_V in one tensor
  bool one_gate_up = false;       // both halves of the feed-forward in one tensor
  bool predicts_further = false;  // a layer after the last predicts further tokens; it is not read
  bool late_norm = false;         // the norm before the feed-forward is named as the norm after attention
  ExpertTensors experts = ExpertTensors::one;
  bool swapped = false;  // where attention and feed-forward have a norm each, attention's is the second
};

constexpr Naming kNamings[] = {
    {.family = "llama", .architecture = "llama", .pairs = true},
    {.family = "mistral", .architecture = "llama", .pairs = true},
    {.family = "mixtral", .architecture = "llama", .pairs = true},
    {.family = "qwen2", .architecture = "qwen2"},
    {.family = "qwen3", .architecture = "qwen3"},
    {.family = "qwen3_moe", .architecture = "qwen3moe"},
    {.family = "gemma2", .architecture = "gemma2"},
    {.family = "gemma3_text", .architecture = "gemma3"},
    {.family = "phi3", .architecture = "phi3", .one_qkv = true, .one_gate_up = true},
    {.family = "gpt2", .architecture = "gpt2", .one_qkv = true},
    {.family = "gpt_neox", .architecture = "gptneox", .one_qkv = true},
    {.family = "olmo2", .architecture = "olmo2"},
    {.family = "gpt_oss", .architecture = "gpt-oss", .late_norm = true},
    {.family = "deepseek_v3", .architecture = "deepseek2"},
    {.family = "t5", .architecture = "t5"},
    {.family = "bloom", .architecture = "bloom", .one_qkv = true},
    {.family = "cohere2", .architecture = "cohere2"},
    {.family = "ernie4_5", .architecture = "ernie4_5"},
    {.family = "exaone4", .architecture = "exaone4"},
    {.family = "falcon", .architecture = "falcon", .one_qkv = true, .swapped = true},
    {.family = "glm4", .architecture = "glm4", .one_gate_up = true},
    {.family = "glm4_moe", .architecture = "glm4moe", .predicts_further = true, .late_norm = true},
    {.family = "granite", .architecture = "granite", .pairs = true},
    {.family = "nemotron", .architecture = "nemotron"},
    {.family = "olmo3", .architecture = "olmo2"},
    {.family = "phi", .architecture = "phi2"},
    {.family = "qwen2_moe", .architecture = "qwen2moe"},
    {.family = "smollm3", .architecture = "smollm3", .pairs = true},
    {.family = "stablelm", .architecture = "stablelm"},
    {.family = "starcoder2", .architecture = "starcoder2"},
};

const Naming& naming_of(const ModelSpec& spec) {
  for (const LayerSpec& layer : spec.main_stack().layers) {
    QKV_CHECK(!layer.feed.absent(), "GGUF has no place for layers without a feed-forward",
              Hint("keep the Hugging Face folder"));
  }
  std::string known;
  for (const Naming& naming : kNamings) {
    if (spec.family == naming.family) return naming;
    known += (known.empty() ? "" : ", ") + std::string(naming.family);
  }
  QKV_FAIL(
      "GGUF has no place for a model of the family ", spec.family,
      spec.kind == ModelSpec::Kind::encoder_only ? ": its encoders are without the head that names masked words" : "",
      Hint("families that GGUF can hold: ", known, "; keep the Hugging Face folder for others"));
}

void feed_names(TensorNames& list, const Naming& naming, const std::string& file, const std::string& weight) {
  if (naming.one_gate_up) {
    list.fused(file + "ffn_up", {weight + "gate", weight + "up"});
  } else {
    list.linear(file + "ffn_gate", weight + "gate");
    list.linear(file + "ffn_up", weight + "up");
  }
  list.linear(file + "ffn_down", weight + "down");
  list.linear(file + "ffn_gate_inp", weight + "router");
  list.tensor(file + "exp_probs_b.bias", weight + "router.correction");
  list.tensor_as(
      {.name = file + "ffn_gate_inp_shexp.weight", .parts = {{weight + "shared_gate"}}, .shape = {list.spec().width}});
  for (const std::string which : {"gate", "up", "down"}) {
    if (naming.experts == ExpertTensors::apart) {
      list.experts(file + "ffn_" + which + ".", ".weight", weight + "experts." + which);
    } else {
      list.linear(file + "ffn_" + which + "_exps", weight + "experts." + which);
    }
    list.linear(file + "ffn_" + which + "_shexp", weight + "shared." + which);
  }
}

void attention_names(TensorNames& list, const Naming& naming, const std::string& file, const std::string& weight) {
  const AttentionSpec& a = list.spec().main_stack().layers.front().attention;
  if (naming.one_qkv) {
    list.fused(file + "attn_qkv", {weight + "q", weight + "k", weight + "v"});
  } else {
    list.fused(file + "attn_q", {weight + "q"}, naming.pairs ? Layout::rope_pairs : Layout::plain, a.heads);
    list.fused(file + "attn_k", {weight + "k"}, naming.pairs ? Layout::rope_pairs : Layout::plain, a.kv_heads);
    list.linear(file + "attn_v", weight + "v");
  }
  for (const std::string which : {"q_norm", "k_norm", "q_a", "q_a_norm", "q_b", "kv_a_norm", "kv_b"}) {
    list.linear(file + "attn_" + which, weight + which);
  }
  list.linear(file + "attn_kv_a_mqa", weight + "kv_a");
  list.linear(file + "attn_output", weight + "o");
  list.tensor(file + "attn_sinks.weight", weight + "sinks");
}

void decoder_names(TensorNames& list, const Naming& naming) {
  list.tensor("token_embd.weight", "embed");
  list.linear("token_embd_norm", "norm_embed");
  list.tensor("position_embd.weight", "positions");
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "blk." + i + ".", layer = "layers." + i + ".";
    const bool swaps = naming.swapped && list.has(layer + "norm_mlp");
    list.linear(file + (swaps ? "attn_norm_2" : "attn_norm"), layer + "norm_attn");
    attention_names(list, naming, file, layer + "attn.");
    list.linear(file + "post_attention_norm", layer + (naming.late_norm ? "norm_mlp" : "norm_attn_out"));
    if (!naming.late_norm) list.linear(file + (swaps ? "attn_norm" : "ffn_norm"), layer + "norm_mlp");
    feed_names(list, naming, file, layer + "mlp.");
    list.linear(file + "post_ffw_norm", layer + "norm_mlp_out");
  });
  list.linear("output_norm", "norm_final");
  list.linear("output", "head");
  if (naming.predicts_further) list.ignore("blk." + std::to_string(list.spec().decoder.layers.size()) + ".*");
  for (const char* extra : {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}) {
    list.ignore(extra);  // used by the config reader
  }
}

void t5_names(TensorNames& list) {
  list.tensor("token_embd.weight", "embed");
  for (const std::string stack : {"enc.", "dec."}) {
    list.tensor_as({.name = stack + "blk.0.attn_rel_b.weight",
                    .parts = {{stack + "relative"}},
                    .layout = NamedTensor::Layout::transposed});
    for_each_layer(stack == "enc." ? list.spec().encoder : list.spec().decoder, [&](const std::string& i) {
      const std::string file = stack + "blk." + i + ".", layer = stack + "layers." + i + ".";
      for (const std::string which : {"q", "k", "v", "o"}) {
        list.linear(file + "attn_" + which, layer + "attn." + which);
        list.linear(file + "cross_attn_" + which, layer + "cross." + which);
      }
      list.linear(file + "attn_norm", layer + "norm_attn");
      list.linear(file + "cross_attn_norm", layer + "norm_cross");
      list.linear(file + "ffn_norm", layer + "norm_mlp");
      for (const std::string which : {"gate", "up", "down"}) list.linear(file + "ffn_" + which, layer + "mlp." + which);
    });
    list.linear(stack + "output_norm", stack + "norm_final");
  }
  list.tensor("output.weight", "head");
  list.ignore("dec.blk.0.cross_attn_rel_b.weight");  // never used
}

}  // namespace

std::string gguf_architecture(const ModelSpec& spec) {
  return naming_of(spec).architecture;
}

TensorNames gguf_names(const ModelSpec& spec, ExpertTensors experts) {
  Naming naming = naming_of(spec);
  naming.experts = experts;
  TensorNames list(spec);
  if (spec.has_source()) {
    t5_names(list);
  } else {
    decoder_names(list, naming);
  }
  list.norms_stored_for(0);
  list.check_complete();
  return list;
}

}  // namespace qkv
