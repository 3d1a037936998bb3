// Typed access to a Hugging Face config.json; errors name the file and the key.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "core/dtype.h"
#include "model/spec.h"

namespace qkv {

inline constexpr size_t kLargestConfig = 16 << 20;  // bytes of a config.json

class Config {
 public:
  // Alternative keys of one value, since older models use other names; the first that is present and not null counts.
  using Keys = std::initializer_list<const char*>;

  Config(Json json, std::string what) : json_(std::move(json)), what_(std::move(what)) {}

  const Json& json() const { return json_; }
  const std::string& what() const { return what_; }

  bool has(const char* key) const { return find({key}) != nullptr; }
  int64_t whole(Keys keys) const;  // required
  int64_t whole(Keys keys, int64_t otherwise) const;
  double number(Keys keys) const;
  double number(Keys keys, double otherwise) const;
  float probability(Keys keys, float otherwise) const;  // in [0, 1)
  bool flag(Keys keys, bool otherwise) const;
  std::string text(Keys keys) const;
  std::string text(Keys keys, const std::string& otherwise) const;
  std::vector<double> numbers(Keys keys) const;         // [] if absent
  std::vector<std::string> texts(Keys keys) const;      // [] if absent
  std::vector<int64_t> wholes(Keys keys) const;         // one number or a list; [] if absent
  std::optional<Config> inside(const char* key) const;  // an object

  // The keys that were asked for so far, present or not, and those of the objects inside. Copies share them.
  struct Asked {
    std::set<std::string, std::less<>> keys;
    std::map<std::string, std::shared_ptr<Asked>, std::less<>> inside;
  };
  const Asked& asked() const { return *asked_; }
  // The same file with other contents. What is asked of it counts as asked of this one.
  Config with(Json json) const;

  [[noreturn]] void fail(const std::string& key, const std::string& problem, const std::string& hint) const;

 private:
  const Json* find(Keys keys, const char** key = nullptr) const;
  const Json& need(Keys keys, const char** key) const;
  int64_t as_whole(const Json& value, const char* key) const;
  double as_number(const Json& value, const char* key) const;

  Json json_;
  std::string what_;
  std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
};

// qkv's own key: the offset of norms, in configs read from GGUF.
inline constexpr const char* kNormOffsetKey = "qkv_norm_offset";
// And the heads and experts that remain after a cut, see docs/add-a-family.md.
inline constexpr const char *kHeadsKey = "qkv_heads", *kExpertsKey = "qkv_experts";

// Keys of all families.
Activation read_activation(const Config& config, Config::Keys keys, const char* otherwise);
DType read_dtype(const Config& config);  // "dtype", or the older "torch_dtype"; default f32
TokenIds read_token_ids(const Config& config);

struct RopeKeys {
  const char* layer_type = nullptr;  // selects one of several `rope_parameters`
  double part = 1;                   // rotary share of the columns where the config is silent
  const char* base = "rope_theta";   // key of the base outside of `rope_parameters`
};
// Rotary embedding of a head `width` wide: `rope_parameters` (one, or one per kind of layer), or `rope_theta` with
// `rope_scaling` as older configs have it.
RopeSpec read_rope(const Config& config, int64_t width, const RopeKeys& keys = {});

// Which layers have a sliding window: `layer_types`, or `otherwise` of layer i; without either [].
std::vector<bool> read_sliding(const Config& config, int64_t layers, bool (*otherwise)(int64_t layer));
// The same for any kind of layer that has full attention beside it.
std::vector<bool> read_layer_kind(const Config& config, int64_t layers, const std::string& kind);

}  // namespace qkv
