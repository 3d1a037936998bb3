// Stable names of taps: 3.attn.q is the queries of layer 3. An encoder-decoder has enc.3.attn.q, dec.3.attn.q and
// cross.3.attn.q; without a prefix the decoder is meant. embed, final and logits have no layer. Layers may be named as
// heads are (L3.attn.q, E3.attn.q, X3.attn.q), and TransformerLens names (blocks.3.attn.hook_q) are accepted too.
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
  int64_t size = 0;    // in this model; 0: depends on the pass
};

struct TapInfo {
  TapId id;
  std::string name;
  std::vector<TapAxis> shape;
};

// Every tap of a model, in the order of a forward pass.
std::vector<TapInfo> all_taps(const ModelSpec& spec);

// For tables: shape in letters, a one-line description, the TransformerLens name.
struct SiteInfo {
  Site site;
  const char *name, *shape, *meaning, *transformer_lens;
};
std::vector<SiteInfo> all_sites();

std::string name_of(const ModelSpec& spec, const TapId& tap);

// Of an array in a file: L3.attn.q, as qkv look names them; E3 and X3 in an encoder-decoder.
std::string array_name(const ModelSpec& spec, const TapId& tap);

// "3.attn.q,final"; without a layer, "attn.q" means every layer of that stack. For an unknown name the Error lists what
// this model has and the nearest name.
std::vector<TapId> parse_taps(const ModelSpec& spec, std::string_view text);

}  // namespace qkv
