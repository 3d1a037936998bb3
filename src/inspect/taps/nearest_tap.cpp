#include "inspect/taps/nearest_tap.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/json.h"
#include "inspect/taps/taps.h"

namespace qkv {
namespace {

// Places of TransformerLens that are not taps here, with the tap beside them.
struct Instead {
  std::string_view theirs;
  Site site;
  const char* why;
};
constexpr const char *kNormed = "what that norm reads", *kInput = "what the norm before it reads";
constexpr Instead kInstead[] = {
    {"ln1.hook_scale", Site::resid_pre, kNormed},
    {"ln1.hook_normalized", Site::resid_pre, kNormed},
    {"ln1_post.hook_scale", Site::attn_out, kNormed},
    {"ln1_post.hook_normalized", Site::attn_out, kNormed},
    {"ln2.hook_scale", Site::resid_mid, kNormed},
    {"ln2.hook_normalized", Site::resid_mid, kNormed},
    {"ln2_post.hook_scale", Site::mlp_out, kNormed},
    {"ln2_post.hook_normalized", Site::mlp_out, kNormed},
    {"ln3.hook_scale", Site::resid_mid, kNormed},
    {"ln3.hook_normalized", Site::resid_mid, kNormed},
    {"hook_attn_in", Site::resid_pre, kInput},
    {"hook_q_input", Site::resid_pre, kInput},
    {"hook_k_input", Site::resid_pre, kInput},
    {"hook_v_input", Site::resid_pre, kInput},
    {"hook_mlp_in", Site::resid_mid, kInput},
    {"mlp.hook_pre_linear", Site::mlp_pre, "the gate, which multiplies it"},
    {"attn.hook_result", Site::attn_z, "a head's output before W_O"},
    {"hook_pos_embed", Site::embed, "the sum of token, position and type embeddings"},
    {"hook_token_type_embed", Site::embed, "the sum of token, position and type embeddings"},
    {"ln_final.hook_scale", Site::final, "after that norm"},
    {"ln_final.hook_scaled", Site::final, "after that norm"},
};

// A name without what says where: stack and layer.
struct Parts {
  std::optional<Stack> stack;
  std::optional<int16_t> layer;
  std::string site;
};

std::optional<int16_t> number_in(std::string_view text) {
  int16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

bool take_stack(std::string_view word, Parts& parts) {
  if (word == "enc" || word == "encoder") parts.stack = Stack::encoder;
  if (word == "dec" || word == "decoder") parts.stack = Stack::decoder;
  if (word == "cross") parts.stack = Stack::cross;
  return parts.stack.has_value() || word == "blocks" || word == "*";
}

// L3, E3, X3.
bool take_letter(std::string_view word, Parts& parts) {
  if (word.empty() || std::string_view("LEX").find(word[0]) == std::string_view::npos) return false;
  const std::optional<int16_t> layer = number_in(word.substr(1));
  if (!layer) return false;
  parts.layer = layer;
  if (word[0] == 'E') parts.stack = Stack::encoder;
  if (word[0] == 'X') parts.stack = Stack::cross;
  return true;
}

Parts parts_of(std::string_view name) {
  Parts parts;
  bool where = true;  // still before the site
  for (size_t at = 0; at <= name.size();) {
    const size_t dot = std::min(name.find('.', at), name.size());
    std::string_view word = name.substr(at, dot - at);
    at = dot + 1;
    if (where && !parts.layer && (take_letter(word, parts) || (!parts.stack && take_stack(word, parts)))) continue;
    if (where && !parts.layer && number_in(word)) {
      parts.layer = number_in(word);
      continue;
    }
    where = false;
    if (parts.site.empty() && word.starts_with("cross_")) {
      parts.stack = Stack::cross;
      word.remove_prefix(6);
    }
    parts.site += (parts.site.empty() ? "" : ".") + std::string(word);
  }
  return parts;
}

// By spelling: among the names of both kinds, as long as at least a third of it is right.
std::optional<Site> spelled(std::string_view site, const std::vector<SiteInfo>& sites) {
  std::vector<std::string_view> names;
  for (const SiteInfo& info : sites) {
    names.emplace_back(info.name);
    if (info.transformer_lens[0] != '\0') names.emplace_back(info.transformer_lens);
  }
  const std::string near = nearest_key(site, names);
  for (const SiteInfo& info : sites) {
    if (!near.empty() && (near == info.name || near == info.transformer_lens)) return info.site;
  }
  for (const SiteInfo& info : sites) {  // "pattern", "0.probs", "hook_probs"
    const std::string_view own(info.name), theirs(info.transformer_lens);
    const std::string_view word = site.substr(site.find_last_of("._") + 1);
    const auto ends = [&](std::string_view full) {
      return !word.empty() && full.ends_with(word) && full.size() > word.size() &&
             (full[full.size() - word.size() - 1] == '.' || full[full.size() - word.size() - 1] == '_');
    };
    if (ends(own) || ends(theirs)) return info.site;
  }
  return std::nullopt;
}

}  // namespace

NearestTap nearest_tap(const ModelSpec& spec, std::string_view name) {
  const Parts parts = parts_of(name);
  const std::vector<SiteInfo> sites = all_sites();
  NearestTap nearest;
  std::optional<Site> site;
  const auto instead = std::find_if(std::begin(kInstead), std::end(kInstead),
                                    [&](const Instead& one) { return one.theirs == parts.site; });
  if (instead != std::end(kInstead)) {
    site = instead->site;
    nearest.why = instead->why;
  } else {
    site = spelled(parts.site, sites);
  }
  if (!site) return nearest;
  // Of this site the tap at the nearest layer, in the stack that was named if it is there.
  const TapInfo* best = nullptr;
  const std::vector<TapInfo> taps = all_taps(spec);
  const auto distance = [&](const TapInfo& tap) {
    const int stack = tap.id.place.stack == parts.stack.value_or(spec.main()) ? 0 : 1;
    return std::pair(stack, std::abs(tap.id.place.layer - parts.layer.value_or(0)));
  };
  for (const TapInfo& tap : taps) {
    if (tap.id.site == *site && (best == nullptr || distance(tap) < distance(*best))) best = &tap;
  }
  if (best == nullptr) return {};
  nearest.name = best->name;
  const std::string layer = std::to_string(best->id.place.layer) + ".";
  const size_t at = nearest.name.find(layer);
  if (!parts.layer && at != std::string::npos) nearest.name.erase(at, layer.size());  // every layer is meant
  return nearest;
}

}  // namespace qkv
