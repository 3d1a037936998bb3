// A Transformer: its spec, its weights, and what it computes. Three kinds from the same parts.
#pragma once

#include <memory>

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

  struct Input {
    Tensor ids;  // i32 [N], and whose they are
    const Rows* rows = nullptr;
    Tensor source_ids;  // what an encoder-decoder reads
    const Rows* source_rows = nullptr;
  };
  virtual Tensor states(Context& cx, const Input& input) const = 0;  // [N, C], what the head reads
  Tensor logits(Context& cx, const Input& input) const { return head_.forward(cx, states(cx, input)); }  // [N, V]

  // What the head says of a residual stream [N, C] at any height of the main stack: last norm, head. Taps nothing; of
  // the last layer's stream it is logits(), bit for bit.
  virtual Tensor read_out(Context& cx, const Tensor& stream) const = 0;

  // The rows that follow what `past` holds; an encoder-decoder has remembered its source in `memory`.
  virtual Tensor next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const = 0;

 protected:
  Model(ModelSpec spec, Weights weights);

  ModelSpec spec_;
  Weights weights_;
  Ropes ropes_;
  Head head_;
};

// A decoder that stands alone: each token sees what is left of it.
class DecoderOnly : public Model {
 public:
  DecoderOnly(ModelSpec spec, Weights weights);
  Tensor states(Context& cx, const Input& input) const override;
  Tensor read_out(Context& cx, const Tensor& stream) const override;
  Tensor next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const override;

 private:
  ModelStack stack_;
};

// An encoder that stands alone: each token sees all.
class EncoderOnly : public Model {
 public:
  EncoderOnly(ModelSpec spec, Weights weights);
  Tensor states(Context& cx, const Input& input) const override;
  Tensor read_out(Context& cx, const Tensor& stream) const override;
  Tensor next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const override;

 private:
  ModelStack stack_;
};

// An encoder reads, a decoder writes and looks at what was read.
class EncoderDecoder : public Model {
 public:
  EncoderDecoder(ModelSpec spec, Weights weights);
  Tensor states(Context& cx, const Input& input) const override;
  Tensor read_out(Context& cx, const Tensor& stream) const override;
  Tensor next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const override;

  Tensor encode(Context& cx, const Tensor& source_ids, const Rows& source_rows) const;  // [M, C]
  // Reads a source once for all passes of the decoder: `memory` has a place for each of its tokens.
  void cache_source(Context& cx, const Tensor& source_ids, const Rows& source_rows, const KvPages& memory) const;

 private:
  ModelStack encoder_, decoder_;
};

}  // namespace qkv
