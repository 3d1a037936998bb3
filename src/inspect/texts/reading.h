// Texts through a model while somebody looks: in passes of bounded size, whatever the length of a text.
//
// Short texts share a pass, one after the other. A text of a decoder that is longer than a pass goes through a cache,
// stretch by stretch, so that memory grows with its length by the cache alone. What a row computes is the same in both
// ways, bit for bit.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/engine.h"
#include "data/token_text.h"
#include "model/model.h"

namespace qkv {

// Which token of which text stands where in a pass.
struct PassTexts {
  struct At {
    int32_t text = -1, position = -1;  // -1: none
  };
  std::span<const TokenText> texts;
  std::vector<At> rows;         // of the decoder, or of the only stack
  std::vector<At> keys;         // one for each row of its own k and v; with a cache, for each slot of its pages
  std::vector<At> source_rows;  // of the encoder: rows, and keys of it and of cross-attention
};

class ReadingProbe : public Probe {
 public:
  // Before each pass. In taps a segment's `request` is the number of the text, its `position` where its first row
  // stands in it.
  virtual void begin(Context& cx, const PassTexts& pass) = 0;
};

struct ReadOptions {
  Precision precision = Precision::f32();
  int64_t rows = 1024;  // of a pass, at most
};

class Reader {
 public:
  Reader(const Model& model, const Engine& engine, const ReadOptions& options);

  const Model& model() const { return model_; }
  const Engine& engine() const { return engine_; }
  const ReadOptions& options() const { return options_; }
  int64_t peak_bytes() const;  // of passes and cache so far

  using Finished = std::function<bool(size_t texts)>;  // told how many are done; false ends it there

  // -log p of every target that is not ignored, text after text, in nats. The last token of a text predicts nothing
  // unless targets say what. An encoder alone has to be given targets.
  std::vector<std::vector<float>> losses(std::span<const TokenText> texts, ReadingProbe* probe = nullptr,
                                         const Finished& finished = {});
  // The same without the last product: for who only looks inside.
  void look(std::span<const TokenText> texts, ReadingProbe& probe, const Finished& finished = {});

  // Forward and backward of each text alone: the gradient of its mean loss reaches whoever asked for importance.
  // Returns the losses.
  std::vector<double> backward(std::span<const TokenText> texts, ReadingProbe& probe, const Finished& finished = {});

 private:
  struct Pass;
  void read(std::span<const TokenText> texts, ReadingProbe* probe, std::vector<std::vector<float>>* losses,
            const Finished& finished);
  void whole(Pass& pass, size_t first, size_t end);
  void in_stretches(Pass& pass, size_t text);
  void check(std::span<const TokenText> texts, bool scored) const;

  const Model& model_;
  const Engine& engine_;
  ReadOptions options_;
  Arena arena_, gradients_;
  int64_t cache_bytes_ = 0;
};

}  // namespace qkv
