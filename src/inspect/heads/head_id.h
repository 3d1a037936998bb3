// Names of heads: L3H7 is head 7 of layer 3. In an encoder-decoder E3H7 is an encoder head, X3H7 a cross-attention head
// and L3H7 a decoder self-attention head. Layers and heads are counted from 0.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "model/spec.h"

namespace qkv {

struct HeadId {
  Stack stack = Stack::decoder;
  int16_t layer = 0;
  int16_t head = 0;

  Place place() const { return {stack, layer}; }
  auto operator<=>(const HeadId&) const = default;
};

std::string name_of(const ModelSpec& spec, const HeadId& head);
std::string name_of(const ModelSpec& spec, Place attention);  // "L3"

// All heads and attentions of a model, in the order of a forward pass.
std::vector<HeadId> all_heads(const ModelSpec& spec);
std::vector<Place> all_attentions(const ModelSpec& spec);

const AttentionSpec& attention_at(const ModelSpec& spec, Place place);
int64_t kv_head_of(const AttentionSpec& spec, int64_t head);  // the key/value head it reads

// "L3H7,E0H1"; a layer alone, "L3", is all its heads. The Error lists what exists. Sorted, without duplicates.
std::vector<HeadId> parse_heads(const ModelSpec& spec, std::string_view text);

}  // namespace qkv
