// Looking inside: fixed names of spots (Site), where they are (Place), and who looks or edits there (Probe).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/rows.h"

namespace qkv {

class Context;

enum class Site : uint8_t {
  embed,
  resid_pre,
  resid_mid,
  resid_post,
  attn_q,       // [N, H, D] as multiplied: after norm and rotary
  attn_k,       // [M, G, D]
  attn_v,       // [M, G, E]
  attn_scores,  // [rows, H, S] what enters the softmax
  attn_probs,   // [rows, H, S] what leaves it
  attn_z,       // [N, H, E] what each head brings, before W_O
  attn_out,
  attn_lse,  // [N, H]
  mlp_pre,
  mlp_post,
  mlp_out,
  route_logits,
  route_ids,
  route_weights,
  final,
  logits,
};
const char* name_of(Site site);

enum class Stack : uint8_t { decoder, encoder, cross };

struct Place {
  Stack stack = Stack::decoder;
  int16_t layer = 0;
};

// What a probe wants at a place, said before the kernel is chosen. A set of flags.
enum class Ask : uint8_t {
  none = 0,
  read = 1,         // visit() with the tensor
  edit = 2,         // visit() may replace the tensor
  stats = 4,        // attention only: per-row statistics, from inside the fused kernel
  rows = 8,         // attention only: the pattern of some query rows
  pattern = 16,     // attention only: the whole pattern, the one thing that costs N x S memory
  importance = 32,  // attn.z under a tape: what each head brings times its gradient, while backward runs
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
  const Rows* rows = nullptr;  // whose rows these are; null where a tensor has no rows of a pass
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

// What a probe that asked for statistics wants of them.
struct StatsWanted {
  std::vector<int32_t> offsets;
  Tensor key_classes;
  int32_t classes = 0;
};

class Probe {
 public:
  virtual ~Probe() = default;
  virtual Ask ask(Place place, Site site) const = 0;
  virtual void visit(Context& cx, const Tap& tap, Tensor& x) = 0;  // look, or replace x (under a tape by an op)

  virtual StatsWanted stats_wanted(Place) const { return {}; }
  virtual void visit_stats(Context&, const Tap&, const AttentionStats&) {}
  virtual std::vector<int32_t> rows_wanted(Place) const { return {}; }
  virtual void visit_importance(Context&, const Tap&, const Tensor&) {}  // [N, H]: z . dL/dz of every row and head
};

}  // namespace qkv
