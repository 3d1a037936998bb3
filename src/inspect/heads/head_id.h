// A head has a name: L3H7 is head 7 of layer 3. In an encoder-decoder the encoder's are E3H7, those of the decoder that
// look at the encoder X3H7, and the decoder's own L3H7. Layers and heads are counted from 0.
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

// Of every attention of a model, in the order a pass meets them.
std::vector<HeadId> all_heads(const ModelSpec& spec);
std::vector<Place> all_attentions(const ModelSpec& spec);

const AttentionSpec& attention_at(const ModelSpec& spec, Place place);
int64_t kv_head_of(const AttentionSpec& spec, int64_t head);  // whose keys and values it reads

// "L3H7,E0H1"; a layer alone, "L3", is all its heads. An Error says what exists. In order, each once.
std::vector<HeadId> parse_heads(const ModelSpec& spec, std::string_view text);

}  // namespace qkv
