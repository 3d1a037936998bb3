// Runs texts through a model with a probe, in passes of bounded size.
//
// Short texts share a pass. A decoder reads a text longer than a pass in chunks through a KV cache, so that only the
// cache grows with its length. A row computes the same bits in both ways.
//
// A pass that makes a NaN or an infinite number is an Error (finite.h), whatever is read of it. So is one that does not fit into
// the memory of its device, with need and have, before it begins.
//
// Losses come from the fused cross-entropy: they work with probes that edit, with gradients and with encoders. For
// log-probabilities through the caches of generation see infer/likelihood.h.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/engine.h"
#include "data/token_text.h"
#include "model/model.h"

namespace qkv {

// The text and position of each row of a pass.
struct PassTexts {
  struct At {
    int32_t text = -1, position = -1;  // -1: none
  };
  std::span<const TokenText> texts;
  std::vector<At> rows;         // of the decoder, or of the only stack
  std::vector<At> keys;         // for each row of its own k and v; with a cache, for each slot of its pages
  std::vector<At> source_rows;  // of the encoder; also the keys of cross-attention
};

class ReadingProbe : public Probe {
 public:
  // Called before each pass. In taps a segment's `request` is the index of its text, its `position` that of its first
  // row.
  virtual void begin(Context& cx, const PassTexts& pass) = 0;
  // Called after each pass, when everything of it has been asked for: what begin() allocated may be downloaded now.
  virtual void end() {}
};

struct ReadOptions {
  Precision precision = Precision::f32();
  int64_t rows = 1024;  // most rows of a pass
};

class Reader {
 public:
  Reader(const Model& model, const Engine& engine, const ReadOptions& options);

  const Model& model() const { return model_; }
  const Engine& engine() const { return engine_; }
  const ReadOptions& options() const { return options_; }
  int64_t peak_bytes() const;  // of arena and cache so far

  using Finished = std::function<bool(size_t texts)>;  // called with the number of texts done; false ends it

  // -log p of every TokenText::target() that is not ignored, by text, in nats. An encoder-only model needs targets.
  std::vector<std::vector<float>> losses(std::span<const TokenText> texts, ReadingProbe* probe = nullptr,
                                         const Finished& finished = {});
  // The same without the losses; the head runs if the probe reads its logits.
  void look(std::span<const TokenText> texts, ReadingProbe& probe, const Finished& finished = {});

  // Forward and backward of each text alone: the probe sees the gradients of its mean loss. Returns the losses.
  std::vector<double> backward(std::span<const TokenText> texts, ReadingProbe& probe, const Finished& finished = {});

 private:
  struct Pass;
  struct Input;
  struct Size {
    int64_t rows = 0, longest = 0;  // of the pass, and the most keys of one
    int64_t cache = 0;              // bytes that earlier passes leave to later ones
  };
  using DryRun = std::function<void(Context& cx, Arena& gradients)>;
  void plan(const Probe& asks, const Size& size, const DryRun& run);
  void read(std::span<const TokenText> texts, ReadingProbe* probe, std::vector<std::vector<float>>* losses,
            const Finished& finished);
  void whole(Pass& pass, size_t first, size_t end, bool again = false);
  void in_chunks(Pass& pass, size_t text);
  void check(std::span<const TokenText> texts, bool scored) const;

  const Model& model_;
  const Engine& engine_;
  ReadOptions options_;
  Arena arena_, gradients_;
  int64_t cache_bytes_ = 0;
  Size fits_;  // a pass of this size, in the call that is under way
};

}  // namespace qkv
