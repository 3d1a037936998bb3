// A probe reads or edits tensors inside a pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/place.h"
#include "core/rows.h"

namespace qkv {

class Context;

// What a probe asks for at a site, known before the kernel is chosen. A set of flags.
enum class Ask : uint8_t {
  none = 0,
  read = 1,         // visit() with the tensor
  edit = 2,         // visit() may replace the tensor
  stats = 4,        // attention only: per-row statistics, from inside the fused kernel
  rows = 8,         // attention only: the pattern of some query rows
  pattern = 16,     // attention only: the whole pattern; the only request that takes N x S memory
  importance = 32,  // attn.z under a tape: z . dL/dz of each head, during backward
};
constexpr Ask operator|(Ask a, Ask b) {
  return static_cast<Ask>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool has(Ask set, Ask flag) {
  return (static_cast<uint8_t>(set) & static_cast<uint8_t>(flag)) != 0;
}

struct Tap {
  Place place;
  Site site = Site::embed;
  const Rows* rows = nullptr;  // the rows of the pass; null where a tensor has none
};

// Per query row and head, accumulated while the softmax runs. Undefined tensors are not computed.
struct AttentionStats {
  Tensor entropy;      // [N, H]     -sum_j A_ij ln A_ij
  Tensor distance;     // [N, H]     sum_j A_ij (i - j)
  Tensor first;        // [N, H]     A_i0: mass on the first key
  Tensor highest;      // [N, H]     max_j A_ij
  Tensor argmax;       // i32 [N, H] its key, -1 where a row sees none
  Tensor offsets;      // i32 [O]    distances asked for (in)
  Tensor at_offset;    // [N, H, O]  A_{i, i - offset}
  Tensor key_classes;  // i32 [M] (or one per slot of the pages): class of each key (in)
  Tensor in_class;     // [N, H, K]  mass on the keys of each class
};

// The optional statistics.
struct StatsWanted {
  std::vector<int32_t> offsets;
  Tensor key_classes;
  int32_t classes = 0;
  bool checked = false;  // key_classes is known to lie in [0, classes): it need not be read back to be sure
};

class Probe {
 public:
  virtual ~Probe() = default;
  virtual Ask ask(Place place, Site site) const = 0;
  virtual void visit(Context& cx, const Tap& tap,
                     Tensor& x) = 0;  // read x, or replace it (under a tape by an op's output)

  virtual StatsWanted stats_wanted(Place) const { return {}; }
  virtual void visit_stats(Context&, const Tap&, const AttentionStats&) {}
  virtual std::vector<int32_t> rows_wanted(Place) const { return {}; }
  virtual void visit_importance(Context&, const Tap&, const Tensor&) {}  // [N, H]: z . dL/dz of every row and head
};

}  // namespace qkv
