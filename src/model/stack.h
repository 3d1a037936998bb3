// Embedding, layers and final norm of an encoder or a decoder; and the head.
#pragma once

#include "model/spec.h"
#include "nn/layer.h"

namespace qkv {

class ModelStack {
 public:
  ModelStack(const ModelSpec& spec, Stack which, const Weights& weights, Ropes& ropes);

  // ids i32 [N] -> states [N, C]. With cross attention, pass.memory is the encoder's output.
  Tensor forward(Context& cx, const Tensor& ids, const Pass& pass) const;
  // The same from vectors [N, C] instead of ids; for stacks without a vocabulary.
  Tensor forward_vectors(Context& cx, const Tensor& x, const Pass& pass) const;
  Tensor final_norm(Context& cx, const Tensor& stream) const;  // the stream itself if the stack has no final norm
  // Cross attention: every layer's keys and values of the encoder's output into the cache.
  void cache_source(Context& cx, const Tensor& states, const KvPages& pages) const;

 private:
  Tensor embed(Context& cx, const Tensor& ids, const Rows& rows) const;
  Tensor position_ids(Context& cx, const Tensor& ids, const Rows& rows) const;
  std::vector<size_t> padding_rows(const Context& cx, const Tensor& ids) const;  // of tokens without a position
  Tensor run_layers(Context& cx, Tensor x, const Pass& pass) const;

  StackSpec spec_;
  Stack which_;
  const Param *tokens_, *positions_, *types_;
  std::optional<Sinusoids> sinusoids_;
  std::optional<Norm> embedding_norm_, final_norm_;
  std::vector<std::unique_ptr<Layer>> layers_;
};

class Head {
 public:
  Head(const ModelSpec& spec, const Weights& weights);
  Tensor forward(Context& cx, const Tensor& states) const;   // [N, C] -> logits [N, V] in exact
  Tensor read_out(Context& cx, const Tensor& states) const;  // the same without a tap

  // For the fused loss: the input, weight and bias of the last product.
  Tensor before_logits(Context& cx, const Tensor& states) const;
  const Param& weight() const { return *weight_; }
  const Param* bias() const { return bias_; }
  double softcap() const { return spec_.softcap; }

 private:
  HeadSpec spec_;
  Place place_;
  const Param *weight_, *bias_;
  std::optional<Linear> dense_;
  std::optional<Norm> norm_;
};

}  // namespace qkv
