#include "model/spec.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"

namespace qkv {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;  // of any one dimension
constexpr int64_t kMostLayers = 4096, kMostHeads = 65536;

class Validator {
 public:
  Validator(const ModelSpec& spec, const std::string& what) : spec_(spec), what_(what) {}

  void run() const {
    const bool vectors = spec_.family == "transformer";  // nn.Transformer itself has no vocabulary
    in_range("vocabulary", spec_.vocabulary, vectors ? 0 : 1, kMost);
    in_range("width", spec_.width, 1, kMost);
    in_range("source vocabulary", spec_.source_vocabulary, 0, kMost);
    countable("the embedding", {std::max(spec_.vocabulary, spec_.source_vocabulary), spec_.width});
    in_range("context", spec_.context, 0, kMost);
    norm("the last norm", spec_.norm);
    using Kind = ModelSpec::Kind;
    if (spec_.kind != Kind::encoder_only) stack("decoder", spec_.decoder, spec_.has_source());
    if (spec_.kind != Kind::decoder_only) stack("encoder", spec_.encoder, false);
    number("head factor", spec_.head.factor, 1e-12, 1e12);
    number("head softcap", spec_.head.softcap, 0, 1e12);
    for (const auto& [name, id] : {std::pair{"bos", spec_.tokens.bos}, std::pair{"pad", spec_.tokens.pad},
                                   std::pair{"decoder start", spec_.tokens.decoder_start}}) {
      if (id)
        in_range(std::string(name) + " token id", *id, 0, std::max(spec_.vocabulary, spec_.source_vocabulary) - 1);
    }
  }

 private:
  void in_range(const std::string& name, int64_t value, int64_t low, int64_t high) const {
    QKV_CHECK(value >= low && value <= high, what_, ": ", name, " is ", value, " but must lie in [", low, ", ", high,
              "]", Hint("the config is damaged or for another family"));
  }
  void number(const std::string& name, double value, double low, double high) const {
    QKV_CHECK(std::isfinite(value) && value >= low && value <= high, what_, ": ", name, " is ", value,
              " but must lie in [", low, ", ", high, "]", Hint("the config is damaged or for another family"));
  }
  // The numbers of one weight can be counted.
  void countable(const std::string& name, std::initializer_list<int64_t> sizes) const {
    const std::string what = what_ + ": " + name;
    CheckedU64 product(1, what);
    for (const int64_t size : sizes) product = product * size;
    product.as<int64_t>();
  }
  void norm(const std::string& name, const NormSpec& n) const { number(name + "'s epsilon", n.eps, 0, 0.1); }

  void stack(const std::string& name, const StackSpec& s, bool crosses) const {
    in_range(name + " layers", static_cast<int64_t>(s.layers.size()), 1, kMostLayers);
    in_range(name + " positions", s.positions.count, 0, kMost);
    in_range(name + " position offset", s.positions.offset, s.positions.padding ? 1 : 0, kMost);
    in_range(name + " token types", s.token_types, 0, kMost);
    number(name + " embedding factor", s.embedding_factor, 1e-12, 1e12);
    for (size_t i = 0; i < s.layers.size(); ++i) {
      const std::string where = name + " layer " + std::to_string(i);
      const LayerSpec& layer = s.layers[i];
      QKV_CHECK(layer.cross.has_value() == crosses, what_, ": ", where, crosses ? " has no" : " has a",
                " cross-attention", Hint("only the decoder of an encoder-decoder looks at an encoder"));
      attention(where, layer.attention);
      if (layer.cross) attention(where + " cross", *layer.cross);
      feed(where, layer);
      norm(where, layer.norm);
      number(where + " residual multiplier", layer.branch_factor, -1e6, 1e6);
      number(where + " dropout", static_cast<double>(layer.dropout), 0, 0.999);
    }
  }

  void attention(const std::string& where, const AttentionSpec& a) const {
    in_range(where + " heads", a.heads, 1, kMostHeads);
    in_range(where + " key/value heads", a.kv_heads, 1, a.heads);
    in_range(where + " heads under one norm", a.projected_heads(), a.heads, kMostHeads);
    in_range(where + " head width", a.width, 1, kMost);
    in_range(where + " value width", a.value_width, 1, kMost);
    countable(where + " projections", {a.projected_heads(), a.width + a.value_width, spec_.width});
    in_range(where + " window", a.window, 0, INT64_MAX);
    in_range(where + " chunk", a.chunk, 0, INT64_MAX);
    number(where + " ALiBi factor", a.alibi, 0, 1e6);
    if (a.temperature) {
      number(where + " attn_scale", a.temperature->scale, 0, 1e6);
      number(where + " floor_scale", a.temperature->floor, 1, 1e12);
    }
    number(where + " attention dropout", static_cast<double>(a.dropout), 0, 0.999);
    number(where + " softcap", a.softcap, 0, 1e12);
    if (a.kv_map.empty()) {
      QKV_CHECK(a.heads % a.kv_heads == 0, what_, ": ", where, ": ", a.heads, " heads do not divide over ", a.kv_heads,
                " key/value heads", Hint("num_attention_heads must be a multiple of num_key_value_heads"));
    } else {
      QKV_CHECK(static_cast<int64_t>(a.kv_map.size()) == a.heads, what_, ": ", where, ": the map names ",
                a.kv_map.size(), " heads but there are ", a.heads, Hint("one key/value head per query head"));
      for (const int32_t g : a.kv_map) in_range(where + " key/value head of the map", g, 0, a.kv_heads - 1);
    }
    if (a.rope) rope(where, a, *a.rope);
    if (a.relative) {
      in_range(where + " relative buckets", a.relative->buckets, 4, 1 << 20);
      in_range(where + " relative distance", a.relative->max_distance, a.relative->buckets / 2 + 1, 1 << 24);
    }
    if (a.latent) {
      in_range(where + " kv_lora_rank", a.latent->kv_rank, 1, kMost);
      in_range(where + " q_lora_rank", a.latent->q_rank, 0, kMost);
      QKV_CHECK(a.latent->nope_width + a.latent->rope_width == a.width && a.rope, what_, ": ", where, ": ",
                a.latent->nope_width, " columns without and ", a.latent->rope_width,
                " with rotary positions do not make a head of ", a.width,
                Hint("qk_nope_head_dim + qk_rope_head_dim is the width of a key"));
    }
  }

  void rope(const std::string& where, const AttentionSpec& a, const RopeSpec& r) const {
    number(where + " rope_theta", r.base, 1.000001, 1e15);
    QKV_CHECK(r.width > 0 && r.width % 2 == 0 && r.first >= 0 && r.first + r.width <= a.width, what_, ": ", where,
              ": columns [", r.first, ", ", r.first + r.width, ") turn but a head has ", a.width,
              Hint("head_dim, partial_rotary_factor and the number of heads do not fit together"));
    using Kind = ops::RopeScaling::Kind;
    const ops::RopeScaling& s = r.scaling;
    if (s.kind == Kind::plain) return;
    number(where + " rope factor", s.factor, 1e-6, 1e6);
    if (s.kind == Kind::linear) return;
    number(where + " original_max_position_embeddings", s.original_context, 1, 1e12);
    if (s.kind == Kind::longrope) {
      const auto pairs = static_cast<size_t>(r.width / 2);
      QKV_CHECK(s.short_factors.size() == pairs && s.long_factors.size() == pairs, what_, ": ", where,
                ": longrope has ", s.short_factors.size(), " short and ", s.long_factors.size(), " long factors but ",
                pairs, " pairs of columns turn", Hint("one factor per pair"));
    }
    if (s.kind == Kind::llama3) {
      QKV_CHECK(s.low_freq > 0 && s.low_freq < s.high_freq, what_, ": ", where, ": low_freq_factor is ", s.low_freq,
                " and high_freq_factor is ", s.high_freq, Hint("low must be positive and below high"));
    }
  }

  void feed(const std::string& where, const LayerSpec& layer) const {
    const FeedForwardSpec& f = layer.feed;
    number(where + " dropout after the activation", static_cast<double>(f.dropout), 0, 0.999);
    // Without one, x + f(norm(x)) is x. Elsewhere its norm would still act, or it shares one with the attention.
    QKV_CHECK(!f.absent() || layer.place == NormPlace::before, what_, ": ", where,
              " has a feed-forward of width 0, that is none, but its norms are not in front of the sublayers",
              Hint("only layers such as those of llama or gpt2 can be of attention alone"));
    if (!f.experts) return in_range(where + " feed-forward width", f.width, 0, kMost);
    const ExpertsSpec& e = *f.experts;
    in_range(where + " experts", e.count, 1, 65536);
    in_range(where + " expert width", e.width, 1, kMost);
    in_range(where + " shared expert width", e.shared_width, 0, kMost);
    countable(where + " experts", {e.count, e.width, spec_.width});
    in_range(where + " experts per token", e.rule.top_k, 1, e.count);
    in_range(where + " expert groups", e.rule.groups, 1, e.count);
    in_range(where + " chosen groups", e.rule.top_groups, 1, e.rule.groups);
    QKV_CHECK(e.count % e.rule.groups == 0 && e.rule.top_k <= e.count / e.rule.groups * e.rule.top_groups, what_, ": ",
              where, ": ", e.rule.top_k, " of ", e.count, " experts in ", e.rule.top_groups, " of ", e.rule.groups,
              " groups cannot be chosen", Hint("experts divide evenly over groups, and the chosen ones hold enough"));
    QKV_CHECK(!e.shared_gate || e.shared_width > 0, what_, ": ", where, ": a shared expert of width ", e.shared_width,
              " has a gate", Hint("the config is damaged or for another family"));
    number(where + " routed_scaling_factor", e.rule.scaling, 1e-12, 1e12);
    QKV_CHECK(f.gated, what_, ": ", where, ": experts without a gate are not known", Hint("no public family has them"));
  }

  const ModelSpec& spec_;
  const std::string& what_;
};

}  // namespace

const char* name_of(ModelSpec::Kind kind) {
  switch (kind) {
    case ModelSpec::Kind::decoder_only:
      return "decoder-only";
    case ModelSpec::Kind::encoder_only:
      return "encoder-only";
    case ModelSpec::Kind::encoder_decoder:
      return "encoder-decoder";
  }
  return "?";
}

void validate(const ModelSpec& spec, const std::string& what) {
  Validator(spec, what).run();
}

}  // namespace qkv
