#include "inspect/taps/taps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "inspect/heads/head_id.h"
#include "inspect/taps/nearest_tap.h"

namespace qkv {
namespace {

constexpr std::array<SiteInfo, 20> kSites{{
    {Site::embed, "embed", "[N, C]", "input of layer 0: token, position and type embeddings, and their norm",
     "hook_embed"},
    {Site::resid_pre, "resid.pre", "[N, C]", "residual stream before a layer (cross: before cross-attention)",
     "hook_resid_pre"},
    {Site::attn_q, "attn.q", "[N, H, D]", "queries, after norm and RoPE", "attn.hook_q"},
    {Site::attn_k, "attn.k", "[M, G, D]", "keys of the rows of this pass", "attn.hook_k"},
    {Site::attn_v, "attn.v", "[M, G, D']", "values of the rows of this pass", "attn.hook_v"},
    {Site::attn_scores, "attn.scores", "[N, H, S]", "attention scores, before the softmax", "attn.hook_attn_scores"},
    {Site::attn_probs, "attn.probs", "[N, H, S]", "attention weights, after the softmax", "attn.hook_pattern"},
    {Site::attn_lse, "attn.lse", "[N, H]", "log-sum-exp of the scores", ""},
    {Site::attn_z, "attn.z", "[N, H, D']", "output of each head, before W_O", "attn.hook_z"},
    {Site::attn_out, "attn.out", "[N, C]", "attention output, after W_O", "hook_attn_out"},
    {Site::resid_mid, "resid.mid", "[N, C]", "residual stream before the feed-forward", "hook_resid_mid"},
    {Site::route_logits, "route.logits", "[N, E]", "router logit of each expert", "mlp.hook_gate"},
    {Site::route_ids, "route.ids", "[N, k]", "the chosen experts", "mlp.hook_expert_indices"},
    {Site::route_weights, "route.weights", "[N, k]", "their weights", "mlp.hook_expert_weights"},
    {Site::mlp_pre, "mlp.pre", "[N, F]",
     "before the activation (gated: the gate); with experts [N, k, F], the chosen ones", "mlp.hook_pre"},
    {Site::mlp_post, "mlp.post", "[N, F]", "after the activation and gate; with experts [N, k, F]", "mlp.hook_post"},
    {Site::mlp_out, "mlp.out", "[N, C]", "output of the feed-forward", "hook_mlp_out"},
    {Site::resid_post, "resid.post", "[N, C]", "residual stream after a layer", "hook_resid_post"},
    {Site::final, "final", "[N, C]", "after the last norm", "ln_final.hook_normalized"},
    {Site::logits, "logits", "[N, V]", "output logits of the requested rows", ""},
}};

bool is_per_layer(Site site) {
  return site != Site::embed && site != Site::final && site != Site::logits;
}

class Lister {
 public:
  explicit Lister(const ModelSpec& spec) : spec_(spec) {}

  std::vector<TapInfo> run() {
    if (!spec_.encoder.layers.empty()) stack(Stack::encoder, spec_.encoder);
    if (!spec_.decoder.layers.empty()) stack(Stack::decoder, spec_.decoder);
    if (spec_.vocabulary > 0) add({spec_.main(), 0}, Site::logits, {{"N", 0}, {"V", spec_.vocabulary}});
    return std::move(all_);
  }

 private:
  using Axes = std::vector<TapAxis>;

  void add(Place place, Site site, Axes shape) {
    all_.push_back({.id = {place, site}, .name = name_of(spec_, TapId{place, site}), .shape = std::move(shape)});
  }
  Axes stream() const { return {{"N", 0}, {"C", spec_.width}}; }

  void stack(Stack which, const StackSpec& s) {
    if (spec_.vocabulary > 0) add({which, 0}, Site::embed, stream());  // nn.Transformer has no embedding
    for (size_t i = 0; i < s.layers.size(); ++i) layer({which, static_cast<int16_t>(i)}, s.layers[i]);
    add({which, 0}, Site::final, stream());
  }

  void layer(Place place, const LayerSpec& l) {
    add(place, Site::resid_pre, stream());
    attention(place, l.attention);
    if (l.cross) {
      const Place across{Stack::cross, place.layer};
      add(across, Site::resid_pre, stream());
      attention(across, *l.cross);
    }
    add(place, Site::resid_mid, stream());
    if (!l.feed.absent()) feed(place, l.feed);
    add(place, Site::resid_post, stream());
  }

  void feed(Place place, const FeedForwardSpec& f) {
    Axes inner{{"N", 0}};
    int64_t width = f.width;
    if (f.experts) {
      const TapAxis chosen{"k", f.experts->rule.top_k};
      add(place, Site::route_logits, {{"N", 0}, {"E", f.experts->count}});
      add(place, Site::route_ids, {{"N", 0}, chosen});
      add(place, Site::route_weights, {{"N", 0}, chosen});
      inner.push_back(chosen);
      width = f.experts->width;
    }
    inner.push_back({"F", width});
    add(place, Site::mlp_pre, inner);
    add(place, Site::mlp_post, inner);
    add(place, Site::mlp_out, stream());
  }

  void attention(Place place, const AttentionSpec& a) {
    const TapAxis rows{"N", 0}, heads{"H", a.heads}, keys{"S", 0};
    const TapAxis width{"D", a.width}, value_width{"D'", a.value_width};
    add(place, Site::attn_q, {rows, heads, width});
    add(place, Site::attn_k, {{"M", 0}, {"G", a.kv_heads}, width});
    add(place, Site::attn_v, {{"M", 0}, {"G", a.kv_heads}, value_width});
    add(place, Site::attn_scores, {rows, heads, keys});
    add(place, Site::attn_probs, {rows, heads, keys});
    add(place, Site::attn_lse, {rows, heads});
    add(place, Site::attn_z, {rows, heads, value_width});
    add(place, Site::attn_out, stream());
  }

  const ModelSpec& spec_;
  std::vector<TapInfo> all_;
};

// --- reading names ---------------------------------------------------------------------------------------------------

// A parsed name; parts it leaves out are absent.
struct TapName {
  std::optional<Stack> stack;
  std::optional<int16_t> layer;
  std::optional<Site> site;
};

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<int16_t> take_layer(std::string_view& text) {
  int16_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto used = static_cast<size_t>(end - text.data());
  if (failed != std::errc{} || value < 0 || used >= text.size() || text[used] != '.') return std::nullopt;
  text.remove_prefix(used + 1);
  return value;
}

TapName parse_own_name(std::string_view text) {
  TapName named;
  if (take(text, "enc.")) named.stack = Stack::encoder;
  if (take(text, "dec.")) named.stack = Stack::decoder;
  if (take(text, "cross.")) named.stack = Stack::cross;
  if (!named.stack && text.size() > 1 && text[1] >= '0' && text[1] <= '9') {  // L3.attn.q, as heads are named
    if (text[0] == 'E') named.stack = Stack::encoder;
    if (text[0] == 'X') named.stack = Stack::cross;
    if (text[0] == 'L' || named.stack) text.remove_prefix(1);
  }
  named.layer = take_layer(text);
  if (!named.layer) take(text, "*.");
  for (const SiteInfo& site : kSites) {
    if (text == site.name && (is_per_layer(site.site) || !named.layer)) named.site = site.site;
  }
  return named;
}

TapName parse_transformer_lens_name(std::string_view text) {
  TapName named;
  if (take(text, "encoder")) {
    named.stack = Stack::encoder;
  } else if (take(text, "decoder")) {
    named.stack = Stack::decoder;
  } else {
    take(text, "blocks");
  }
  if (take(text, "_final_ln.") || text == "ln_final.hook_normalized") {
    if (text.ends_with("hook_normalized")) named.site = Site::final;
    return named;
  }
  if (take(text, ".")) named.layer = take_layer(text);
  if (named.layer.has_value() && (take(text, "cross_") || text == "hook_cross_attn_out")) named.stack = Stack::cross;
  // TransformerLens: hook_resid_mid is between self- and cross-attention; ours is before the feed-forward.
  if (text == "hook_resid_mid_cross") text = "hook_resid_mid";
  if (text == "hook_cross_attn_out") text = "hook_attn_out";
  if (text == "attn.hook_rot_q") text = "attn.hook_q";
  if (text == "attn.hook_rot_k") text = "attn.hook_k";
  if (text == "hook_full_embed") text = "hook_embed";
  for (const SiteInfo& site : kSites) {
    if (text == site.transformer_lens && is_per_layer(site.site) == named.layer.has_value()) named.site = site.site;
  }
  return named;
}

[[noreturn]] void fail_no_tap(const ModelSpec& spec, std::string_view name) {
  const NearestTap near = nearest_tap(spec, name);
  QKV_CHECK(!name.ends_with("attn.hook_result") || near.name.empty(), printable(std::string(name)),
            " is not a tap: a head's own part of attn.out is its attn.z times its rows of W_O; the nearest is ",
            near.name, Hint("qkv attribute computes it; tap ", near.name, " otherwise"));
  std::string layers;
  for (const StackSpec* stack : {&spec.encoder, &spec.decoder}) {
    if (stack->layers.empty()) continue;
    const std::string last = std::to_string(stack->layers.size() - 1);
    const bool has_source = spec.has_source();
    const std::string prefix = !has_source ? "" : stack == &spec.encoder ? "enc." : "dec.";
    layers += (layers.empty() ? "" : ", ") + prefix + "0.* to " + prefix + last + ".*";
    if (stack->layers.front().cross) layers += ", cross.0.* to cross." + last + ".*";
  }
  const std::string meant = near.name.empty()     ? ""
                            : near.why[0] == '\0' ? ", did you mean " + near.name + "?"
                                                  : ", the nearest is " + near.name + ", " + near.why;
  QKV_FAIL("no tap ", printable(std::string(name)), meant, ": this ", spec.family, " has ", layers, " and ",
           spec.vocabulary > 0 ? "embed, final, logits" : "final", Hint("qkv taps MODEL lists them all"));
}

}  // namespace

std::vector<TapInfo> all_taps(const ModelSpec& spec) {
  return Lister(spec).run();
}

std::vector<SiteInfo> all_sites() {
  return {kSites.begin(), kSites.end()};
}

std::string name_of(const ModelSpec& spec, const TapId& tap) {
  std::string name;
  if (tap.place.stack == Stack::cross) {
    name = "cross.";
  } else if (spec.has_source() && tap.site != Site::logits) {
    name = tap.place.stack == Stack::encoder ? "enc." : "dec.";
  }
  if (is_per_layer(tap.site)) name += std::to_string(tap.place.layer) + ".";
  return name + name_of(tap.site);
}

std::string array_name(const ModelSpec& spec, const TapId& tap) {
  return is_per_layer(tap.site) ? name_of(spec, tap.place) + "." + name_of(tap.site) : name_of(spec, tap);
}

std::vector<TapId> parse_taps(const ModelSpec& spec, std::string_view text) {
  const std::vector<TapInfo> all = all_taps(spec);
  std::vector<TapId> found;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view name = text.substr(at, comma - at);
    at = comma + 1;
    TapName named =
        name.find("hook_") == std::string_view::npos ? parse_own_name(name) : parse_transformer_lens_name(name);
    if (!named.site) fail_no_tap(spec, name);
    const bool between = name.ends_with("hook_resid_mid") && spec.has_source() && named.stack != Stack::encoder;
    if (between) {
      named.stack = Stack::cross;
      named.site = Site::resid_pre;
    }
    const Stack stack = named.stack.value_or(spec.main());
    bool any = false;
    for (const TapInfo& tap : all) {
      const bool here = tap.id.place.stack == stack && tap.id.site == *named.site;
      if (!here || (named.layer && tap.id.place.layer != *named.layer)) continue;
      any = true;
      if (std::find(found.begin(), found.end(), tap.id) == found.end()) found.push_back(tap.id);
    }
    if (!any) fail_no_tap(spec, name);
  }
  return found;
}

}  // namespace qkv
