// Every weight of a model, from its spec alone: name, shape, part and initialisation. Loading, counting, initialising
// and writing all use this list.
//
//   embed  positions  types  norm_embed
//   layers.3.norm_attn  layers.3.attn.q  .k  .v  .o  ...  layers.3.mlp.gate  .up  .down  ...
//   norm_final  head
// An encoder-decoder has them under enc. and dec., with one embed for both unless they have an embedding each.
#pragma once

#include <vector>

#include "core/shape.h"
#include "model/spec.h"

namespace qkv {

enum class Part : uint8_t { embedding, query, key, value, key_value, out, feed_forward, experts, router, norm, head };
const char* name_of(Part part);

struct Init {
  enum class Kind : uint8_t { constant, normal, uniform } kind = Kind::constant;
  double value = 0;  // the constant, the deviation, or the bound
};

struct WeightSpec {
  std::string name;
  Shape shape;
  Part part = Part::embedding;
  Place place;            // stack and layer
  bool in_layer = false;  // else embeddings, last norm, head
  Init init;
};

std::vector<WeightSpec> weight_list(const ModelSpec& spec);

// Whether the weight can be in blocks: only products and lookups read it. Routers are excluded, since rounding might
// choose other experts.
bool read_by_products(const WeightSpec& weight);

// "", "enc." or "dec.": the prefix of a stack's names.
std::string stack_prefix(const ModelSpec& spec, Stack stack);
// "dec.layers.3.", and its attention: "dec.layers.3.attn" or "dec.layers.3.cross".
std::string layer_prefix(const ModelSpec& spec, Place place);
std::string attention_prefix(const ModelSpec& spec, Place place);

}  // namespace qkv
