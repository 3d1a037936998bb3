// A Transformer: spec, weights and forward passes. Three kinds built from the same parts.
#pragma once

#include <memory>
#include <string>

#include "model/stack.h"

namespace qkv {

class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  static std::unique_ptr<Model> make(ModelSpec spec, Weights weights);

  const ModelSpec& spec() const { return spec_; }
  const Weights& weights() const { return weights_; }
  Weights& weights() { return weights_; }
  const Head& head() const { return head_; }

  std::string origin;  // the file or folder it was read from, for messages; empty: made here

  struct Input {
    Tensor ids;  // i32 [N], and their rows
    const Rows* rows = nullptr;
    Tensor source_ids;  // of the encoder, in an encoder-decoder
    const Rows* source_rows = nullptr;
  };
  virtual Tensor states(Context& cx, const Input& input) const = 0;  // [N, C], the input of the head
  Tensor logits(Context& cx, const Input& input) const { return head_.forward(cx, states(cx, input)); }  // [N, V]

  // Final norm and head applied to the residual stream [N, C] after any layer of the main stack (logit lens). No taps.
  // After the last layer it equals logits(), bit for bit.
  virtual Tensor read_out(Context& cx, const Tensor& stream) const = 0;

  // States of the next rows after those in the cache `past`. `memory`: the cached source of an encoder-decoder.
  virtual Tensor next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const = 0;

 protected:
  Model(ModelSpec spec, Weights weights);

  ModelSpec spec_;
  Weights weights_;
  Ropes ropes_;
  Head head_;
};

// A decoder-only model: causal attention.
class DecoderOnly : public Model {
 public:
  DecoderOnly(ModelSpec spec, Weights weights);
  Tensor states(Context& cx, const Input& input) const override;
  Tensor read_out(Context& cx, const Tensor& stream) const override;
  Tensor next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const override;

 private:
  ModelStack stack_;
};

// An encoder-only model: bidirectional attention.
class EncoderOnly : public Model {
 public:
  EncoderOnly(ModelSpec spec, Weights weights);
  Tensor states(Context& cx, const Input& input) const override;
  Tensor read_out(Context& cx, const Tensor& stream) const override;
  Tensor next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const override;

 private:
  ModelStack stack_;
};

// An encoder-decoder: the decoder attends to the encoder's output by cross attention.
class EncoderDecoder : public Model {
 public:
  EncoderDecoder(ModelSpec spec, Weights weights);
  Tensor states(Context& cx, const Input& input) const override;
  Tensor read_out(Context& cx, const Tensor& stream) const override;
  Tensor next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const override;

  Tensor encode(Context& cx, const Tensor& source_ids, const Rows& source_rows) const;  // [M, C]
  // Runs the encoder once and caches its keys and values for all passes of the decoder. `memory` has a slot per token.
  void cache_source(Context& cx, const Tensor& source_ids, const Rows& source_rows, const KvPages& memory) const;

 private:
  ModelStack encoder_, decoder_;
};

}  // namespace qkv
