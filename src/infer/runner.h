// A model with its KV caches: each pass takes rows of many sequences and returns the logits of some.
//
// A row depends on its own sequence alone, bit for bit, however passes are split and mixed.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/engine.h"
#include "core/pass_recorder.h"
#include "model/kv_layouts.h"
#include "model/model.h"

namespace qkv {

struct RunOptions {
  Precision precision = Precision::bf16();
  DType cache = DType::bf16;  // of keys and values: f32, bf16 or i8
  int64_t positions = 0;      // of all sequences together; 0: one sequence of the model's context
  int64_t sources = 0;        // the same for the sources of encoder-decoders; 0: as many
  int64_t chunk = 256;        // most rows of a pass
  Probe* probe = nullptr;
};

// Bytes a run needs.
struct MemoryNeed {
  int64_t weights = 0, cache = 0, pass = 0;
  int64_t arena = 0;  // of the pass: what lies on the device while it runs
  int64_t total() const { return weights + cache + pass; }
};

class Runner {
 public:
  // An Error that says need and have if it does not fit into memory, before anything is allocated.
  Runner(const Model& model, const Engine& engine, const RunOptions& options);
  static MemoryNeed need(const Model& model, const Engine& engine, const RunOptions& options);

  const Model& model() const { return *model_; }
  const Engine& engine() const { return *engine_; }
  const RunOptions& options() const { return options_; }
  int64_t positions() const { return cache_.pages() * KvCache::kPage; }
  int64_t vocabulary() const { return model_->spec().vocabulary; }
  // The model's context length; no sequence gets longer.
  int64_t context() const;
  // Whether a sequence of up to `reach` tokens uses the RoPE frequencies of long texts (longrope). Only sequences with
  // the same frequencies can share pages.
  bool uses_long_rope(int64_t reach) const;

  // A sequence of tokens; in an encoder-decoder with its source.
  struct Sequence {
    KvCache::Id own = -1, source = -1;
  };
  Sequence start();
  Sequence start(std::span<const int32_t> source);  // encodes the source
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
    std::span<const int32_t> ids;  // the next tokens
    int64_t logits = 1;            // of the last so many of them
    int32_t request = 0;           // reported by taps
    int64_t reach = 0;             // most tokens the sequence may have; matters for longrope
  };
  // One pass, with this probe instead of RunOptions::probe if there is one. Returns logits [rows, V] in the order of the
  // parts, valid until the next pass.
  std::span<const float> pass(std::span<const Part> parts, Probe* probe = nullptr);
  // The same where all that is wanted of a row of logits may be which is the first highest one. `highest` then has
  // those and `logits` is empty, unless the device does not find them itself or a logit is not finite.
  enum class Wanted : uint8_t { logits, highest };
  struct Result {
    std::span<const float> logits;
    std::span<const int32_t> highest;
  };
  Result pass(std::span<const Part> parts, Wanted wanted, Probe* probe = nullptr);
  // The same for one part of any length, in chunks.
  std::span<const float> prefill(Part part);

 private:
  static MemoryNeed fitting(const Model& model, const Engine& engine, const RunOptions& options);
  Runner(const Model& model, const Engine& engine, const RunOptions& options, const MemoryNeed& need);
  Context pass_context(Probe* probe = nullptr);
  std::span<const float> on_host(const Tensor& logits);
  std::span<const int32_t> ids_on_host(const Tensor& ids);
  std::byte* room_on_host(Storage& room, DType dtype, int64_t count);

  const Model* model_;
  const Engine* engine_;
  RunOptions options_;
  Arena arena_;
  KvCache cache_;
  std::optional<KvCache> sources_;
  PassRecorder recorder_;
  Storage logits_, highest_;  // of the host
};

// The decoder's prompt: the given one; if that is empty, an encoder-decoder's start token. An Error if it names none.
std::vector<int32_t> decoder_prompt(std::vector<int32_t> given, const ModelSpec& spec);

// Bytes of a weight in the format in which a pass with this compute dtype reads it.
int64_t bytes_in_pass(const Param& weight, DType compute);

}  // namespace qkv
