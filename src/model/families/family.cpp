#include "model/families/family.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "model/families/all.h"

namespace qkv {
namespace {

const Family* const kFamilies[] = {
    &families::bart,      &families::bert,       &families::bloom,   &families::cohere2,   &families::deepseek_v3,
    &families::ernie4_5,  &families::exaone4,    &families::falcon,  &families::gemma2,    &families::gemma3,
    &families::glm4,      &families::glm4_moe,   &families::gpt2,    &families::gpt_neox,  &families::gpt_oss,
    &families::gptj,      &families::granite,    &families::llama,   &families::llama4,    &families::m2m_100,
    &families::marian,    &families::mbart,      &families::mistral, &families::mixtral,   &families::modernbert,
    &families::nemotron,  &families::olmo2,      &families::olmo3,   &families::opt,       &families::pegasus,
    &families::phi,       &families::phi3,       &families::qwen2,   &families::qwen2_moe, &families::qwen3,
    &families::qwen3_moe, &families::roberta,    &families::smollm3, &families::stablelm,  &families::starcoder2,
    &families::t5,        &families::transformer};

// Heads that were cut: "qkv_heads": {"decoder": [[0, 0, 1], ...]} gives, per layer, the key/value head of each
// remaining query head. Stacks: encoder, decoder, cross.
void apply_head_maps(const Config& config, ModelSpec& spec) {
  const std::optional<Config> maps = config.inside(kHeadsKey);
  if (!maps) return;
  spec.heads_cut = true;
  for (const auto& [name, list] : maps->json().items()) {
    StackSpec& stack = name == "encoder" ? spec.encoder : spec.decoder;
    if (name != "encoder" && name != "decoder" && name != "cross") {
      maps->fail(name, "is not a stack", "stacks are encoder, decoder and cross");
    }
    if (!list.is_array() || list.size() != stack.layers.size()) {
      maps->fail(name, "must hold " + std::to_string(stack.layers.size()) + " lists, one per layer",
                 "each names the key/value head of every query head");
    }
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      LayerSpec& layer = stack.layers[i];
      if (name == "cross" && !layer.cross) maps->fail(name, "is given but the model has none", "leave it out");
      AttentionSpec& a = name == "cross" ? *layer.cross : layer.attention;
      if (a.relative) a.relative->in_each_layer = true;
      if (a.qk_norm == AttentionSpec::QkNorm::whole) {
        a.normed_heads = a.heads;
        a.normed_kv_heads = a.kv_heads;
      }
      const Config one(Json{{"map", list[i]}}, maps->what() + ": '" + name + "' layer " + std::to_string(i));
      a.kv_map.clear();
      a.kv_heads = 0;
      for (const int64_t g : one.wholes({"map"})) {
        if (g < 0 || g > 65535) one.fail("map", "holds " + std::to_string(g), "heads count from 0");
        a.kv_map.push_back(static_cast<int32_t>(g));
        a.kv_heads = std::max(a.kv_heads, g + 1);
      }
      if (a.alibi != 0 && std::ssize(a.kv_map) != a.heads) {
        one.fail("map", "holds " + std::to_string(a.kv_map.size()) + " of " + std::to_string(a.heads) + " heads",
                 "heads with ALiBi cannot be cut: each has its own slope, by its number");
      }
      a.heads = static_cast<int64_t>(a.kv_map.size());
    }
  }
}

// Experts that were cut: "qkv_experts": [4, 3] is the number left in each layer of the main stack.
void apply_expert_counts(const Config& config, ModelSpec& spec) {
  if (!config.has(kExpertsKey)) return;
  spec.heads_cut = true;
  const std::vector<int64_t> counts = config.wholes({kExpertsKey});
  std::vector<LayerSpec>& layers = (spec.kind == ModelSpec::Kind::encoder_only ? spec.encoder : spec.decoder).layers;
  if (counts.size() != layers.size()) {
    config.fail(kExpertsKey, "must hold " + std::to_string(layers.size()) + " numbers, one per layer",
                "0 stands for a layer without experts");
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].feed.experts) layers[i].feed.experts->count = counts[i];
  }
}

Config with_defaults(const Config& config, const Family& family) {
  const Json defaults = parse_json(family.defaults, family.name);
  Json json = config.json();
  for (const auto& [key, value] : defaults.items()) {
    if (!json.contains(key)) json[key] = value;
  }
  return config.with(std::move(json));
}

}  // namespace

std::span<const Family* const> all_families() {
  return kFamilies;
}

const Family& family_of(std::string_view model_type, std::string_view what) {
  std::vector<std::string_view> known;
  for (const Family* family : kFamilies) {
    if (model_type == family->name) return *family;
    known.push_back(family->name);
  }
  std::string near = nearest_key(model_type, known);
  for (const std::string_view name : known) {  // gemma3, llama4: the text part has a name of its own
    if (name.starts_with(std::string(model_type) + "_")) near = name;
  }
  QKV_FAIL(what, ": model_type is ", printable(model_type), ", a family that is not known",
           Hint(near.empty() ? "" : "the nearest known is " + near + "; ",
                "qkv info --families lists all, docs/add-a-family.md shows how to add one"));
}

ModelSpec read_unvalidated_spec(const Config& config) {
  QKV_CHECK(config.json().is_object(), config.what(), ": a config is a JSON object", Hint("this is another file"));
  const Family& family = family_of(config.text({"model_type"}), config.what());
  ModelSpec spec = family.spec(with_defaults(config, family));
  spec.family = family.name;
  return spec;
}

ModelSpec read_spec(const Config& config) {
  ModelSpec spec = read_unvalidated_spec(config);
  apply_head_maps(config, spec);
  apply_expert_counts(config, spec);
  validate(spec, config.what());
  return spec;
}

}  // namespace qkv
