#include "model/describe/spec_difference.h"

#include <cmath>
#include <sstream>

namespace qkv {
namespace {

class Comparison {
 public:
  std::string first;

  template <class T>
  void same(const std::string& what, const T& a, const T& b) {
    if (first.empty() && !(a == b)) say(what, a, b);
  }
  void close(const std::string& what, double a, double b) {
    if (first.empty() && std::abs(a - b) > 1e-6 * std::max(std::abs(a), std::abs(b))) say(what, a, b);
  }
  void alike(const std::string& what, bool same) {
    if (first.empty() && !same) first = what + " differs";
  }

 private:
  template <class T>
  void say(const std::string& what, const T& a, const T& b) {
    std::ostringstream out;
    out << std::boolalpha << what << " is " << a << " and " << b;
    first = out.str();
  }
};

void compare(Comparison& c, const std::string& what, const NormSpec& a, const NormSpec& b) {
  c.alike(what + " kind of norm", a.kind == b.kind);
  c.close(what + " norm's epsilon", a.eps, b.eps);
  if (a.kind == NormSpec::Kind::layer) c.same(what + " norm's bias", a.bias, b.bias);
}

// Two scalings are equal if they give the same table.
bool same_angles(const RopeSpec& a, const RopeSpec& b) {
  if (a.scaling == b.scaling && a.base == b.base) return true;
  const double original = std::max(a.scaling.original_context, b.scaling.original_context);
  for (const int64_t positions : {int64_t{8}, static_cast<int64_t>(std::min(original, 16384.0)) + 1}) {
    const ops::RopeTable left = ops::rope_table(a.base, a.width, positions, a.scaling),
                         right = ops::rope_table(b.base, b.width, positions, b.scaling);
    for (size_t i = 0; i < left.cos.size(); ++i) {
      if (std::abs(left.cos[i] - right.cos[i]) > 1e-3F || std::abs(left.sin[i] - right.sin[i]) > 1e-3F) return false;
    }
  }
  return true;
}

void compare(Comparison& c, const std::string& what, const AttentionSpec& a, const AttentionSpec& b) {
  c.same(what + " heads", a.heads, b.heads);
  c.same(what + " key/value heads", a.kv_heads, b.kv_heads);
  c.same(what + " head width", a.width, b.width);
  c.same(what + " value width", a.value_width, b.value_width);
  c.alike(what + " map of heads", a.kv_map == b.kv_map);
  c.same(what + " causal", a.causal, b.causal);
  c.same(what + " window", a.window, b.window);
  c.same(what + " chunk", a.chunk, b.chunk);
  c.close(what + " ALiBi", a.alibi, b.alibi);
  c.alike(what + " temperature of queries", a.temperature == b.temperature);
  const auto plain = [](const AttentionSpec& s) { return 1 / std::sqrt(static_cast<double>(s.width)); };
  c.close(what + " attention scale", a.scale.value_or(plain(a)), b.scale.value_or(plain(b)));
  c.close(what + " softcap", a.softcap, b.softcap);
  c.same(what + " bias of W_Q", a.q_bias, b.q_bias);
  c.same(what + " bias of W_K", a.k_bias, b.k_bias);
  c.same(what + " bias of W_V", a.v_bias, b.v_bias);
  c.same(what + " bias of W_O", a.out_bias, b.out_bias);
  c.alike(what + " norm of queries and keys", a.qk_norm == b.qk_norm);
  if (a.qk_norm != AttentionSpec::QkNorm::none || a.latent) compare(c, what + " queries'", a.norm, b.norm);
  c.same(what + " sinks", a.sinks, b.sinks);
  c.alike(what + " relative bias", a.relative == b.relative);
  c.alike(what + " latent attention", a.latent == b.latent);
  c.same(what + " rotary positions", a.rope.has_value(), b.rope.has_value());
  if (!c.first.empty() || !a.rope) return;
  c.close(what + " rope base", a.rope->base, b.rope->base);
  c.same(what + " rotary width", a.rope->width, b.rope->width);
  c.same(what + " first rotary column", a.rope->first, b.rope->first);
  c.same(what + " interleaved pairs", a.rope->interleaved, b.rope->interleaved);
  if (c.first.empty()) c.alike(what + " rope scaling", same_angles(*a.rope, *b.rope));
}

void compare(Comparison& c, const std::string& what, const FeedForwardSpec& a, const FeedForwardSpec& b) {
  c.same(what + " gated", a.gated, b.gated);
  c.alike(what + " activation", a.act.kind == b.act.kind && a.act.alpha == b.act.alpha);
  c.close(what + " gate limit", static_cast<double>(a.gate_limit), static_cast<double>(b.gate_limit));
  c.close(what + " gate shift", static_cast<double>(a.gate_shift), static_cast<double>(b.gate_shift));
  c.same(what + " feed-forward bias", a.bias, b.bias);
  c.same(what + " experts", a.experts.has_value(), b.experts.has_value());
  if (!a.experts || !b.experts) return c.same(what + " feed-forward width", a.width, b.width);
  const ExpertsSpec &x = *a.experts, &y = *b.experts;
  c.same(what + " number of experts", x.count, y.count);
  c.same(what + " expert width", x.width, y.width);
  c.same(what + " shared expert width", x.shared_width, y.shared_width);
  c.same(what + " gate of the shared expert", x.shared_gate, y.shared_gate);
  c.same(what + " weighted inputs of experts", x.weigh_inputs, y.weigh_inputs);
  c.same(what + " router bias", x.router_bias, y.router_bias);
  c.same(what + " correction bias", x.correction, y.correction);
  c.same(what + " expert bias", x.bias, y.bias);
  c.same(what + " experts per token", x.rule.top_k, y.rule.top_k);
  c.same(what + " sigmoid scores", x.rule.sigmoid, y.rule.sigmoid);
  c.same(what + " renormalised expert weights", x.rule.renormalise, y.rule.renormalise);
  c.close(what + " expert scaling", x.rule.scaling, y.rule.scaling);
  c.same(what + " expert groups", x.rule.groups, y.rule.groups);
  c.same(what + " chosen groups", x.rule.top_groups, y.rule.top_groups);
}

void compare(Comparison& c, const std::string& what, const StackSpec& a, const StackSpec& b) {
  c.same(what + " layers", a.layers.size(), b.layers.size());
  c.alike(what + " positions", a.positions.kind == b.positions.kind && a.positions.count == b.positions.count &&
                                   a.positions.offset == b.positions.offset && a.positions.order == b.positions.order &&
                                   a.positions.padding == b.positions.padding);
  c.same(what + " token types", a.token_types, b.token_types);
  c.same(what + " norm on embeddings", a.embedding_norm, b.embedding_norm);
  c.same(what + " last norm", a.final_norm, b.final_norm);
  c.close(what + " embedding factor", a.embedding_factor, b.embedding_factor);
  for (size_t i = 0; c.first.empty() && i < a.layers.size(); ++i) {
    const std::string where = what + " layer " + std::to_string(i);
    const LayerSpec &x = a.layers[i], &y = b.layers[i];
    c.alike(where + " place of norms", x.place == y.place);
    compare(c, where, x.norm, y.norm);
    c.same(where + " norm before attention", x.attention_norm, y.attention_norm);
    c.close(where + " residual multiplier", x.branch_factor, y.branch_factor);
    compare(c, where, x.attention, y.attention);
    c.same(where + " cross-attention", x.cross.has_value(), y.cross.has_value());
    if (x.cross && y.cross) compare(c, where + " cross", *x.cross, *y.cross);
    compare(c, where, x.feed, y.feed);
  }
}

}  // namespace

std::string difference(const ModelSpec& a, const ModelSpec& b) {
  Comparison c;
  c.alike("kind of model", a.kind == b.kind);
  c.same("vocabulary", a.vocabulary, b.vocabulary);
  c.same("source vocabulary", a.source_vocabulary, b.source_vocabulary);
  c.same("width", a.width, b.width);
  compare(c, "the last", a.norm, b.norm);
  c.same("tied head", a.head.tied, b.head.tied);
  c.same("bias of the head", a.head.bias, b.head.bias);
  c.same("transform of the head", a.head.transform, b.head.transform);
  c.close("factor before the head", a.head.factor, b.head.factor);
  c.close("softcap of the head", a.head.softcap, b.head.softcap);
  compare(c, "encoder", a.encoder, b.encoder);
  compare(c, "decoder", a.decoder, b.decoder);
  return c.first;
}

}  // namespace qkv
