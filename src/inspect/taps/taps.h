// Taps have stable names: 3.attn.q is what the heads of layer 3 ask with. In an encoder-decoder a name says its stack:
// enc.3.attn.q, dec.3.attn.q, cross.3.attn.q; without one it is the decoder's. embed, final and logits have no layer.
// Names of TransformerLens (blocks.3.attn.hook_q) are read too.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "model/spec.h"

namespace qkv {

struct TapId {
  Place place;
  Site site = Site::embed;

  bool operator==(const TapId& other) const {
    return place.stack == other.place.stack && place.layer == other.place.layer && site == other.site;
  }
};

struct TapAxis {
  std::string letter;  // N rows, M keys' rows, S keys, C width, H heads, G key/value heads, D head width, ...
  int64_t size = 0;    // in this model; 0: as many as a pass has
};

struct TapInfo {
  TapId id;
  std::string name;
  std::vector<TapAxis> shape;
};

// Every tap of a model, in the order a pass meets them.
std::vector<TapInfo> all_taps(const ModelSpec& spec);

// What each site is, for tables: shape in letters, one line of meaning, the name TransformerLens has for it.
struct SiteInfo {
  Site site;
  const char *name, *shape, *meaning, *transformer_lens;
};
std::vector<SiteInfo> all_sites();

std::string name_of(const ModelSpec& spec, const TapId& tap);

// "3.attn.q,final"; without a layer, "attn.q", of every layer of that stack. An Error says what this model has, and the
// nearest name.
std::vector<TapId> parse_taps(const ModelSpec& spec, std::string_view text);

}  // namespace qkv
