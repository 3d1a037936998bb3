#include "model/weight_list.h"

#include <cmath>

namespace qkv {
namespace {

class Lister {
 public:
  explicit Lister(const ModelSpec& spec) : spec_(spec) {}

  std::vector<WeightSpec> run() {
    using Kind = ModelSpec::Kind;
    const bool has_source = spec_.has_source();
    if (has_source && spec_.source_vocabulary == 0 && spec_.vocabulary > 0) embedding("embed", spec_.vocabulary);
    if (spec_.kind != Kind::decoder_only)
      stack(Stack::encoder, spec_.encoder, has_source ? spec_.source_vocabulary : spec_.vocabulary);
    if (spec_.kind != Kind::encoder_only) {
      stack(Stack::decoder, spec_.decoder, has_source && spec_.source_vocabulary == 0 ? 0 : spec_.vocabulary);
    }
    head();
    return std::move(list_);
  }

 private:
  double width() const { return static_cast<double>(spec_.width); }

  void add(const std::string& name, const Shape& shape, Part part, Init init) {
    list_.push_back({.name = prefix_ + name,
                     .shape = shape,
                     .part = part,
                     .place = {stack_, static_cast<int16_t>(layer_ < 0 ? 0 : layer_)},
                     .in_layer = layer_ >= 0,
                     .init = init});
  }
  static Init constant(double value) { return {Init::Kind::constant, value}; }
  static Init normal(double std) { return {Init::Kind::normal, std}; }

  // A matrix [O, K]. `t5`: its deviation there; `writes`: its output is added to the stream.
  Init matrix(int64_t outputs, int64_t inputs, double t5, bool writes = false) const {
    switch (spec_.init.kind) {
      case InitSpec::Kind::normal:
        return normal(spec_.init.std);
      case InitSpec::Kind::gpt2:
        return normal(writes ? spec_.init.std / std::sqrt(2.0 * static_cast<double>(spec_.main_stack().layers.size()))
                             : spec_.init.std);
      case InitSpec::Kind::t5:
        return normal(spec_.init.std * t5);
      case InitSpec::Kind::xavier:
        return {Init::Kind::uniform, std::sqrt(6.0 / static_cast<double>(outputs + inputs))};
    }
    return {};
  }

  void linear(const std::string& name, int64_t outputs, int64_t inputs, Part part, bool bias, Init init) {
    add(name, {outputs, inputs}, part, init);
    if (bias) add(name + ".bias", {outputs}, part, constant(0));
  }
  void norm(const std::string& name, const NormSpec& n, int64_t size) {
    add(name, {size}, Part::norm, constant(1 - n.offset));
    if (n.kind == NormSpec::Kind::layer && n.bias) add(name + ".bias", {size}, Part::norm, constant(0));
  }
  void embedding(const std::string& name, int64_t rows) {
    const double std = spec_.init.kind == InitSpec::Kind::xavier ? 1 / std::sqrt(width()) : spec_.init.std;
    add(name, {rows, spec_.width}, Part::embedding, normal(std));
  }

  void relative(const std::string& name, const AttentionSpec& a) {
    add(name, {a.heads, a.relative->buckets}, Part::embedding,
        normal(spec_.init.kind == InitSpec::Kind::t5 ? spec_.init.std / std::sqrt(width()) : spec_.init.std));
  }

  void stack(Stack which, const StackSpec& s, int64_t vocabulary) {
    prefix_ = stack_prefix(spec_, which);
    stack_ = which;
    if (vocabulary > 0) embedding("embed", vocabulary);
    if (s.positions.kind == PositionSpec::Kind::learned) embedding("positions", s.positions.count + s.positions.offset);
    if (s.token_types > 0) embedding("types", s.token_types);
    if (s.embedding_norm) norm("norm_embed", spec_.norm, spec_.width);
    const AttentionSpec& first = s.layers.front().attention;
    if (first.relative && !first.relative->in_each_layer) relative("relative", first);
    const std::string stack_name = prefix_;
    for (size_t i = 0; i < s.layers.size(); ++i) {
      prefix_ = stack_name + "layers." + std::to_string(i) + ".";
      layer_ = static_cast<int>(i);
      layer(s.layers[i]);
    }
    prefix_ = stack_name;
    layer_ = -1;
    if (s.final_norm) norm("norm_final", spec_.norm, spec_.width);
  }

  void layer(const LayerSpec& l) {
    if (l.attention_norm) branch_norms("norm_attn", l);
    attention("attn", l.attention);
    if (l.cross) {
      branch_norms("norm_cross", l);
      attention("cross", *l.cross);
    }
    if (l.feed.absent()) return;
    if (l.place != NormPlace::shared) branch_norms("norm_mlp", l);
    feed(l.feed);
  }

  void branch_norms(const std::string& name, const LayerSpec& l) {
    if (l.place != NormPlace::branch) norm(name, l.norm, spec_.width);
    if (l.place == NormPlace::branch || l.place == NormPlace::around) norm(name + "_out", l.norm, spec_.width);
  }

  void attention(const std::string& name, const AttentionSpec& a) {
    const int64_t c = spec_.width, q = a.projected_heads() * a.width, k = a.projected_kv_heads() * a.width,
                  v = a.kv_heads * a.value_width;
    const double by_width = 1 / std::sqrt(width());
    if (a.latent) {
      latent(name, a);
    } else {
      linear(name + ".q", q, c, Part::query, a.q_bias,
             matrix(q, c, by_width / std::sqrt(static_cast<double>(a.width))));
      linear(name + ".k", k, c, Part::key, a.k_bias, matrix(k, c, by_width));
      linear(name + ".v", v, c, Part::value, a.v_bias, matrix(v, c, by_width));
      const bool per_head = a.qk_norm == AttentionSpec::QkNorm::per_head;
      if (per_head || a.qk_norm == AttentionSpec::QkNorm::whole) {
        norm(name + ".q_norm", a.norm, per_head ? a.width : q);
        norm(name + ".k_norm", a.norm, per_head ? a.width : k);
      }
    }
    const int64_t out = a.heads * a.value_width;
    linear(name + ".o", c, out, Part::out, a.out_bias, matrix(c, out, 1 / std::sqrt(static_cast<double>(out)), true));
    if (a.sinks) add(name + ".sinks", {a.heads}, Part::key, normal(spec_.init.std));
    if (a.relative && a.relative->in_each_layer) relative(name + ".relative", a);
  }

  void latent(const std::string& name, const AttentionSpec& a) {
    const LatentSpec& l = *a.latent;
    const int64_t c = spec_.width, q = a.heads * a.width, kv = a.kv_heads * (l.nope_width + a.value_width);
    if (l.q_rank == 0) {
      linear(name + ".q", q, c, Part::query, a.q_bias, matrix(q, c, 1));
    } else {
      linear(name + ".q_a", l.q_rank, c, Part::query, a.q_bias, matrix(l.q_rank, c, 1));
      norm(name + ".q_a_norm", a.norm, l.q_rank);
      linear(name + ".q_b", q, l.q_rank, Part::query, false, matrix(q, l.q_rank, 1));
    }
    const int64_t small = l.kv_rank + l.rope_width;
    linear(name + ".kv_a", small, c, Part::key_value, a.k_bias, matrix(small, c, 1));
    norm(name + ".kv_a_norm", a.norm, l.kv_rank);
    linear(name + ".kv_b", kv, l.kv_rank, Part::key_value, false, matrix(kv, l.kv_rank, 1));
  }

  void dense(const std::string& name, const FeedForwardSpec& f, int64_t inner, Part part) {
    const int64_t c = spec_.width;
    const Init in = matrix(inner, c, 1 / std::sqrt(width()));
    if (f.gated) linear(name + ".gate", inner, c, part, f.bias, in);
    linear(name + ".up", inner, c, part, f.bias, in);
    linear(name + ".down", c, inner, part, f.bias, matrix(c, inner, 1 / std::sqrt(static_cast<double>(inner)), true));
  }

  void feed(const FeedForwardSpec& f) {
    if (!f.experts) return dense("mlp", f, f.width, Part::feed_forward);
    const ExpertsSpec& e = *f.experts;
    const int64_t c = spec_.width;
    linear("mlp.router", e.count, c, Part::router, e.router_bias, matrix(e.count, c, 1));
    if (e.correction) add("mlp.router.correction", {e.count}, Part::router, constant(0));
    const auto experts = [&](const std::string& name, int64_t outputs, int64_t inputs, bool writes) {
      add(name, {e.count, outputs, inputs}, Part::experts, matrix(outputs, inputs, 1, writes));
      if (e.bias) add(name + ".bias", {e.count, outputs}, Part::experts, constant(0));
    };
    experts("mlp.experts.gate", e.width, c, false);
    experts("mlp.experts.up", e.width, c, false);
    experts("mlp.experts.down", c, e.width, true);
    if (e.shared_width > 0) dense("mlp.shared", f, e.shared_width, Part::experts);
    if (e.shared_gate) add("mlp.shared_gate", {1, c}, Part::router, matrix(1, c, 1));
  }

  void head() {
    prefix_ = "";
    stack_ = spec_.main();
    const int64_t c = spec_.width;
    if (spec_.vocabulary == 0) return;  // vectors in, vectors out
    if (spec_.head.transform) {
      linear("head.dense", c, c, Part::head, spec_.head.transform_bias, matrix(c, c, 1));
      norm("head.norm", spec_.norm, c);
    }
    if (!spec_.head.tied) add("head", {spec_.vocabulary, c}, Part::head, matrix(spec_.vocabulary, c, 1));
    if (spec_.head.bias) add("head.bias", {spec_.vocabulary}, Part::head, constant(0));
  }

  const ModelSpec& spec_;
  std::vector<WeightSpec> list_;
  std::string prefix_;
  Stack stack_ = Stack::decoder;
  int layer_ = -1;
};

}  // namespace

const char* name_of(Part part) {
  switch (part) {
    case Part::embedding:
      return "embeddings";
    case Part::query:
      return "W_Q";
    case Part::key:
      return "W_K";
    case Part::value:
      return "W_V";
    case Part::key_value:
      return "W_K, W_V (latent)";
    case Part::out:
      return "W_O";
    case Part::feed_forward:
      return "feed-forward";
    case Part::experts:
      return "experts";
    case Part::router:
      return "router";
    case Part::norm:
      return "norms";
    case Part::head:
      return "head";
  }
  return "?";
}

bool read_by_products(const WeightSpec& weight) {
  const bool matrix = weight.shape.rank() >= 2 && !weight.name.ends_with(".bias");
  const bool relative = weight.name.ends_with("relative");  // attention reads it
  return matrix && !relative && weight.part != Part::router && weight.part != Part::norm;
}

std::string stack_prefix(const ModelSpec& spec, Stack stack) {
  if (!spec.has_source()) return "";
  return stack == Stack::encoder ? "enc." : "dec.";
}

std::string layer_prefix(const ModelSpec& spec, Place place) {
  return stack_prefix(spec, place.stack) + "layers." + std::to_string(place.layer) + ".";
}

std::string attention_prefix(const ModelSpec& spec, Place place) {
  return layer_prefix(spec, place) + (place.stack == Stack::cross ? "cross" : "attn");
}

std::vector<WeightSpec> weight_list(const ModelSpec& spec) {
  return Lister(spec).run();
}

}  // namespace qkv
