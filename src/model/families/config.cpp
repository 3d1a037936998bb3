#include "model/families/config.h"

#include <cmath>

#include "base/error.h"
#include "base/printable.h"

namespace qkv {

const Json* Config::find(Keys keys, const char** key) const {
  for (const char* name : keys) asked_->keys.emplace(name);
  for (const char* name : keys) {
    const auto at = json_.find(name);
    if (at != json_.end() && !at->is_null()) {
      if (key != nullptr) *key = name;
      return &*at;
    }
  }
  return nullptr;
}

const Json& Config::need(Keys keys, const char** key) const {
  const Json* found = find(keys, key);
  if (found == nullptr) {
    std::string spellings = *keys.begin(), near;
    for (auto at = keys.begin() + 1; at != keys.end(); ++at) spellings += std::string("' or '") + *at;
    std::vector<std::string_view> others;  // one of them may be meant
    if (json_.is_object()) {
      for (const auto& [name, value] : json_.get_ref<const Json::object_t&>()) {
        if (!asked_->keys.contains(name)) others.push_back(name);
      }
    }
    for (auto at = keys.begin(); at != keys.end() && near.empty(); ++at) near = nearest_key(*at, others);
    fail(spellings, "is missing",
         near.empty() ? "the file is not the config of this family, or was cut short"
                      : "is it " + printable(near) + "?");
  }
  return *found;
}

Config Config::with(Json json) const {
  Config changed = *this;
  changed.json_ = std::move(json);
  return changed;
}

void Config::fail(const std::string& key, const std::string& problem, const std::string& hint) const {
  QKV_FAIL(what_, ": '", key, "' ", problem, Hint(hint));
}

int64_t Config::as_whole(const Json& value, const char* key) const {
  if (value.is_number_float()) {  // 1e3 and 4.0 are whole numbers too
    const double number = value.get<double>();
    if (number == std::floor(number) && std::abs(number) < 9e15) return static_cast<int64_t>(number);
  }
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    fail(key, "is " + value.dump() + " but must be below 2^63", "the config is damaged");
  }
  if (!value.is_number_integer()) {
    fail(key, "is " + printable(value.dump()) + " but must be a whole number", "the config is damaged");
  }
  return value.get<int64_t>();
}

double Config::as_number(const Json& value, const char* key) const {
  if (!value.is_number()) {
    fail(key, "is " + printable(value.dump()) + " but must be a number", "the config is damaged");
  }
  return value.get<double>();
}

int64_t Config::whole(Keys keys) const {
  const char* key = nullptr;
  const Json& value = need(keys, &key);
  return as_whole(value, key);
}
int64_t Config::whole(Keys keys, int64_t otherwise) const {
  const char* key = nullptr;
  const Json* value = find(keys, &key);
  return value != nullptr ? as_whole(*value, key) : otherwise;
}
double Config::number(Keys keys) const {
  const char* key = nullptr;
  const Json& value = need(keys, &key);
  return as_number(value, key);
}
double Config::number(Keys keys, double otherwise) const {
  const char* key = nullptr;
  const Json* value = find(keys, &key);
  return value != nullptr ? as_number(*value, key) : otherwise;
}

float Config::probability(Keys keys, float otherwise) const {
  const char* key = nullptr;
  const Json* value = find(keys, &key);
  if (value == nullptr) return otherwise;
  const double p = as_number(*value, key);
  if (!(p >= 0 && p < 1)) fail(key, "is " + value->dump() + " but must lie in [0, 1)", "it is a probability");
  return static_cast<float>(p);
}

bool Config::flag(Keys keys, bool otherwise) const {
  const char* key = nullptr;
  const Json* value = find(keys, &key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    fail(key, "is " + printable(value->dump()) + " but must be true or false", "the config is damaged");
  }
  return value->get<bool>();
}

std::string Config::text(Keys keys) const {
  const char* key = nullptr;
  const Json& value = need(keys, &key);
  if (!value.is_string()) {
    fail(key, "is " + printable(value.dump()) + " but must be a text", "the config is damaged");
  }
  return value.get<std::string>();
}
std::string Config::text(Keys keys, const std::string& otherwise) const {
  return find(keys) != nullptr ? text(keys) : otherwise;
}

std::vector<double> Config::numbers(Keys keys) const {
  const char* key = nullptr;
  const Json* value = find(keys, &key);
  if (value == nullptr) return {};
  if (!value->is_array()) {
    fail(key, "is " + printable(value->dump()) + " but must be a list of numbers", "the config is damaged");
  }
  std::vector<double> list;
  for (const Json& one : *value) list.push_back(as_number(one, key));
  return list;
}

std::vector<std::string> Config::texts(Keys keys) const {
  const char* key = nullptr;
  const Json* value = find(keys, &key);
  if (value == nullptr) return {};
  std::vector<std::string> list;
  for (const Json& one : value->is_array() ? *value : Json::array({nullptr})) {
    if (!one.is_string()) {
      fail(key, "is " + printable(value->dump()) + " but must be a list of texts", "the config is damaged");
    }
    list.push_back(one.get<std::string>());
  }
  return list;
}

std::vector<int64_t> Config::wholes(Keys keys) const {
  const char* key = nullptr;
  const Json* value = find(keys, &key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {as_whole(*value, key)};
  std::vector<int64_t> list;
  for (const Json& one : *value) list.push_back(as_whole(one, key));
  return list;
}

std::optional<Config> Config::inside(const char* key) const {
  const Json* value = find({key});
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    fail(key, "is " + printable(value->dump()) + " but must be an object", "the config is damaged");
  }
  Config made(*value, what_ + ": '" + key + "'");
  std::shared_ptr<Asked>& asked = asked_->inside[key];
  if (!asked) asked = made.asked_;
  made.asked_ = asked;
  return made;
}

Activation read_activation(const Config& config, Config::Keys keys, const char* otherwise) {
  struct Known {
    const char* name;
    Activation act;
  };
  static constexpr Known kKnown[] = {
      {"silu", ops::act::silu},
      {"swish", ops::act::silu},
      {"relu", ops::act::relu},
      {"relu2", ops::act::relu_squared},
      {"gelu", ops::act::gelu_erf},
      {"gelu_new", ops::act::gelu_tanh},
      {"gelu_pytorch_tanh", ops::act::gelu_tanh},
      {"gelu_fast", ops::act::gelu_tanh},
      {"quick_gelu", ops::act::quick_gelu},
      {"tanh", ops::act::tanh},
      {"identity", ops::act::identity},
  };
  const std::string name = config.text(keys, otherwise);
  std::string all;
  for (const Known& known : kKnown) {
    if (name == known.name) return known.act;
    all += all.empty() ? known.name : std::string(", ") + known.name;
  }
  config.fail(*keys.begin(), "is " + printable(name) + ", an activation that is not known", "known are " + all);
}

DType read_dtype(const Config& config) {
  const std::string name = config.text({"dtype", "torch_dtype"}, "float32");
  if (name == "float32") return DType::f32;
  if (name == "bfloat16") return DType::bf16;
  if (name == "float16") return DType::f16;
  config.fail(config.has("dtype") ? "dtype" : "torch_dtype",
              "is " + printable(name) +
                  " but weights are stored in "
                  "float32, bfloat16 or float16",
              "the config is damaged or for a format that is not known");
}

TokenIds read_token_ids(const Config& config) {
  const auto one = [&](const char* key) -> std::optional<int32_t> {
    const int64_t id = config.whole({key}, -1);
    if (id < -1 || id > INT32_MAX) config.fail(key, "is " + std::to_string(id), "a token id is 0 or more");
    return id < 0 ? std::nullopt : std::optional(static_cast<int32_t>(id));
  };
  TokenIds ids{.bos = one("bos_token_id"),
               .pad = one("pad_token_id"),
               .decoder_start = one("decoder_start_token_id"),
               .forced_eos = one("forced_eos_token_id")};
  for (const int64_t id : config.wholes({"eos_token_id"})) {
    if (id < 0 || id > INT32_MAX) config.fail("eos_token_id", "holds " + std::to_string(id), "a token id is 0 or more");
    ids.eos.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

namespace {

ops::RopeScaling read_scaling(const Config& rope, const Config& whole_config) {
  using Kind = ops::RopeScaling::Kind;
  const std::string type = rope.text({"rope_type", "type"}, "default");
  ops::RopeScaling s;
  if (type == "default" || type == "mrope") return s;
  if (type == "linear") {
    s.kind = Kind::linear;
  } else if (type == "llama3") {
    s.kind = Kind::llama3;
  } else if (type == "yarn") {
    s.kind = Kind::yarn;
  } else if (type == "longrope" || type == "su") {
    s.kind = Kind::longrope;
  } else {
    rope.fail("rope_type", "is " + printable(type) + ", which is not known",
              "known are default, linear, llama3, yarn and longrope");
  }
  const double longest = whole_config.number({"max_position_embeddings"}, 0);
  // Phi-3 keeps the original context beside the scaling, most others inside it.
  const double original = rope.number({"original_max_position_embeddings"},
                                      whole_config.number({"original_max_position_embeddings"}, longest));
  s.original_context = original;
  s.factor = rope.number({"factor"}, original > 0 ? longest / original : 1);
  s.low_freq = rope.number({"low_freq_factor"}, 1);
  s.high_freq = rope.number({"high_freq_factor"}, 4);
  s.beta_fast = rope.number({"beta_fast"}, 32);
  s.beta_slow = rope.number({"beta_slow"}, 1);
  s.mscale = rope.number({"mscale"}, 0);
  s.mscale_all_dim = rope.number({"mscale_all_dim"}, 0);
  s.truncate = rope.flag({"truncate"}, true);
  s.attention_factor = rope.number({"attention_factor"}, 0);
  s.short_factors = rope.numbers({"short_factor"});
  s.long_factors = rope.numbers({"long_factor"});
  return s;
}

}  // namespace

RopeSpec read_rope(const Config& config, int64_t width, const RopeKeys& keys) {
  const Config* at = &config;
  std::optional<Config> parameters = config.inside("rope_parameters"), of_type;
  if (parameters) {
    at = &*parameters;
    if (keys.layer_type != nullptr && (of_type = parameters->inside(keys.layer_type))) at = &*of_type;
  }
  const double part = at->number({"partial_rotary_factor", "rotary_pct"},
                                 config.number({"partial_rotary_factor", "rotary_pct"}, keys.part));
  const double base = config.number({keys.base, "rotary_emb_base"}, 10000);
  RopeSpec rope{.base = parameters ? at->number({"rope_theta", "rotary_emb_base"}, base) : base,
                .width = static_cast<int64_t>(static_cast<double>(width) * part)};
  if (parameters) {
    rope.scaling = read_scaling(*at, config);
  } else if (const std::optional<Config> scaling = config.inside("rope_scaling")) {
    rope.scaling = read_scaling(*scaling, config);
  }
  return rope;
}

std::vector<bool> read_sliding(const Config& config, int64_t layers, bool (*otherwise)(int64_t layer)) {
  std::vector<bool> sliding = read_layer_kind(config, layers, "sliding_attention");
  if (!sliding.empty() || otherwise == nullptr) return sliding;
  for (int64_t i = 0; i < std::min<int64_t>(layers, 4096); ++i) sliding.push_back(otherwise(i));
  return sliding;
}

std::vector<bool> read_layer_kind(const Config& config, int64_t layers, const std::string& kind) {
  const std::vector<std::string> types = config.texts({"layer_types"});
  if (types.empty()) return {};
  std::vector<bool> of_kind;
  if (static_cast<int64_t>(types.size()) != layers) {
    config.fail("layer_types",
                "names " + std::to_string(types.size()) + " layers but the model has " + std::to_string(layers),
                "one entry per layer");
  }
  for (const std::string& type : types) {
    if (type != kind && type != "full_attention") {
      config.fail("layer_types", "holds " + printable(type) + ", which is not known",
                  "known are " + kind + " and full_attention");
    }
    of_kind.push_back(type == kind);
  }
  return of_kind;
}

}  // namespace qkv
