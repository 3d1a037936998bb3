// Looking inside: arrays at named places of a pass, edits, heads that are cut, guesses of every layer, roles of heads.
#pragma once

#include <qkv/error.h>
#include <qkv/text.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::QKV_INLINE v1 {

// A place inside a model: 3.attn.q is the queries of layer 3; embed, final and logits have no layer. An encoder-decoder
// has enc.3.attn.q, dec.3.attn.q and cross.3.attn.q. Names of TransformerLens (blocks.3.attn.hook_q) are read too.
struct TapInfo {
  std::string name;
  std::string axes;                   // letters: N rows, M keys' rows, S keys, C width, H heads, G key/value heads, ...
  std::vector<int64_t> sizes;         // of each; 0: depends on the text
  std::string meaning;                // in one line
  std::string transformer_lens = {};  // its name there, if it has one
  bool editable = true;               // false: worked out beside the pass, so it can be read but not changed
};

using Shape = std::span<const int64_t>;

// Numbers with a name, row by row. `shape` multiplies up to the size.
struct Array {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// Called once for each tap of a pass, in the order of the pass. `taps` as in "3.attn.q,final"; without a layer, "attn.q"
// is that of every layer. What they throw ends the reading and comes out of it; the model stays usable. They must not
// ask the same model for anything: that is a BusyError.
struct See {
  std::string taps;
  std::function<void(const std::string& name, Shape shape, std::span<const float> values)> function;
};
struct Edit {  // what it leaves in `values` is what the pass goes on with
  std::string taps;
  std::function<void(const std::string& name, Shape shape, std::span<float> values)> function;
};

enum class CutWith : uint8_t { zero, mean, resample };

// Heads by name, L3H7 or a whole layer L3 (E3H7 of an encoder, X3H7 of cross-attention); experts L1E3.
struct Cut {
  std::string heads = {}, experts = {};
  CutWith with = CutWith::zero;   // what replaces the output of a head: mean and resample are measured on `data`
  std::optional<Data> data = {};  // none: the built-in world
};

struct ReadOptions {
  std::string keep = {};  // taps whose arrays are in the result
  std::vector<See> see = {};
  std::vector<Edit> edit = {};
  std::optional<Cut> cut = {};
  bool losses = false;  // -log p of every token that follows
};

struct ReadResult {
  std::vector<int32_t> ids, source;
  std::vector<Array> arrays;  // in the order of the pass; the names are those of the taps
  std::vector<float> losses;  // nats, of ids[1], ids[2], ...; empty unless asked for

  const Array& operator[](std::string_view name) const { return at(name); }
  QKV_API const Array& at(std::string_view name) const;  // an Error that lists what there is
};

// A mean over texts with its 95 % interval, which promises too much where there are fewer than 20 texts.
struct Estimate {
  double mean = 0, low = 0, high = 0;
  int64_t n = 0, texts = 0;
};

struct CutEffect {
  Estimate before, after;  // mean loss, nats per token
  Estimate delta;          // after - before, paired
  Estimate kl;             // KL(p || p cut), nats per token
  Estimate same_guess;     // share of rows whose top guess stays
};

struct Guess {
  int32_t id = 0;
  double p = 0;
  std::string text = {};
};

// One token at one level of the ladder: the prediction if the model ended there.
struct Rung {
  std::vector<Guess> guesses;  // most likely first
  double entropy = 0;          // nats
  double kl = 0;               // to the output
  int64_t rank = 1;            // of the output's top guess
};

struct LookOptions {
  int64_t token = -1;  // whose path is kept in detail; -1: the last one
  std::optional<Cut> cut = {};
};

// One text through a model, and everything that happens inside: what qkv look shows.
class QKV_API Looked {
 public:
  std::vector<std::string> tokens() const;  // as they read; empty where an earlier one shows its character
  std::vector<int32_t> ids() const;
  // L0.q, L0.k, L0.v, L0.z, L0.probs [query, head, key], embed, resid.0, logits, ...: the arrays of qkv look --npz.
  // Texts of up to 512 tokens.
  std::vector<std::string> names() const;
  Array array(std::string_view name) const;
  // Without a copy, valid as long as this is.
  struct View {
    std::vector<int64_t> shape;
    std::span<const float> values;
  };
  View view(std::string_view name) const;

  int64_t levels() const;  // of the ladder: the embedding, then after each layer
  const std::vector<Rung>& ladder(int64_t level) const;

  std::string json() const;  // the report, as qkv look --json
  std::string html() const;  // a page that opens offline, as qkv look --html
  void save_npz(const std::string& path) const;

  struct QKV_HIDDEN Impl;
  explicit Looked(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  const Impl& impl() const;
  std::shared_ptr<const Impl> impl_;
};

// The logit lens over many texts: one for the embedding and for each layer. The last is the output itself.
struct LensLayer {
  std::string name;
  Estimate agrees, rank, entropy, kl, loss, settled;
};
struct Lens {
  std::vector<LensLayer> layers;
  Estimate settled_at;  // mean depth of settling, in layers
};

// A role is named only where the whole interval of its score is above its threshold.
struct Role {
  std::string name;
  Estimate score, coverage;  // coverage: share of the head's attention it explains
};
struct HeadRoles {
  std::string head;
  std::vector<Role> roles;  // largest coverage first
  std::vector<std::pair<std::string, Estimate>> measures;
};

struct AttributeOptions {
  int64_t token = -1;                   // after which one; -1: the last
  std::optional<int32_t> target = {};   // none: the top guess
  std::optional<int32_t> against = {};  // none: the second guess, or the top guess if that is the target
};
struct AttributedPart {
  std::string name, kind;  // "L3H7": "head"; "L3 mlp": "mlp"; "embed", "biases"
  double share = 0;        // its term of the difference
};
struct Attribution {
  int64_t token = 0;
  int32_t target = 0, against = 0;
  std::vector<AttributedPart> parts;  // in the order of the pass
  double sum = 0, difference = 0;     // of the parts; of the two logits
  bool linearised = false;
};

}  // namespace qkv::QKV_INLINEv1
