// A model with its caches, ready for one pass after the other: rows of many sequences go in, logits of some come out.
//
// What a row computes depends on its own sequence alone, bit for bit: the passes may be cut and mixed in any way.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/engine.h"
#include "model/kv_layouts.h"
#include "model/model.h"

namespace qkv {

struct RunOptions {
  Precision precision = Precision::bf16();
  DType cache = DType::bf16;  // of keys and values: f32, bf16 or i8
  int64_t positions = 0;      // the cache has room for, of all sequences together; 0: one of the model's context
  int64_t sources = 0;        // the same for what encoders read; 0: as many
  int64_t chunk = 256;        // most rows of a pass
  Probe* probe = nullptr;
};

// Bytes a run needs, and what the machine has left.
struct MemoryNeed {
  int64_t weights = 0, cache = 0, pass = 0;
  int64_t total() const { return weights + cache + pass; }
};

class Runner {
 public:
  // An Error that says need and have if it does not fit into memory, before any of it is taken.
  Runner(const Model& model, const Engine& engine, const RunOptions& options);
  static MemoryNeed need(const Model& model, const Engine& engine, const RunOptions& options);

  const Model& model() const { return *model_; }
  const Engine& engine() const { return *engine_; }
  const RunOptions& options() const { return options_; }
  int64_t positions() const { return cache_.pages() * KvCache::kPage; }
  int64_t vocabulary() const { return model_->spec().vocabulary; }
  // Positions the model was made for; no sequence gets longer.
  int64_t context() const;
  // Whether a sequence that may become so long turns by the angles of long texts: sequences share only what was turned
  // alike.
  bool turns_as_long(int64_t reach) const;

  // A sequence of tokens, in an encoder-decoder with what it translates.
  struct Sequence {
    KvCache::Id own = -1, source = -1;
  };
  Sequence start();
  Sequence start(std::span<const int32_t> source);  // reads it
  std::vector<Sequence> start(std::span<const std::vector<int32_t>> sources);
  Sequence fork(const Sequence& from, int64_t length);
  void truncate(const Sequence& s, int64_t length) { cache_.truncate(s.own, length); }
  void end(const Sequence& s);
  int64_t length(const Sequence& s) const { return cache_.length(s.own); }
  bool can_fork(const Sequence& s, int64_t length) const { return cache_.can_fork(s.own, length); }
  const KvCache& cache() const { return cache_; }
  int64_t source_pages() const { return sources_ ? sources_->pages() : 0; }

  struct Part {
    Sequence sequence;
    std::span<const int32_t> ids;  // the tokens that follow
    int64_t logits = 1;            // of how many of the last of them
    int32_t request = 0;           // whose; taps report it
    int64_t reach = 0;             // how long the sequence may become, where the angles of positions depend on it
  };
  // One pass. Row after row of logits, in the order of the parts: [rows, V], valid until the next pass.
  std::span<const float> pass(std::span<const Part> parts);
  // The same of one part of any length, cut into chunks.
  std::span<const float> read(Part part);

 private:
  static RunOptions fitting(const Model& model, const Engine& engine, const RunOptions& options);

  const Model* model_;
  const Engine* engine_;
  RunOptions options_;
  Arena arena_;
  KvCache cache_;
  std::optional<KvCache> sources_;
  std::vector<float> logits_;
};

// Bytes of a weight as a pass that computes in a dtype multiplies it.
int64_t bytes_in_pass(const Param& weight, DType compute);

}  // namespace qkv
