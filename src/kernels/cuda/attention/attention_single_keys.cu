// Probabilities of single keys for the statistics of fast attention, A = exp(x - LSE): the first key and keys at
// offsets. A warp takes 16 rows and one head; offsets low ... low + 8 lie in a band of 24 keys. A score is one chain of
// k16 steps, so it has the bits of the forms that found LSE.
#include "kernels/cuda/attention/attention_fast.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kRows = 16, kBand = 8;  // offsets of a band beside its lowest

// Of 16 rows, as far as they lie in one segment. What does not depend on the head is found before the first one.
template <int kWidth>
class SingleKeys {
 public:
  __device__ SingleKeys(const FastAttention& f, int first_row, int n, int from, int last)
      : f_(f), segment_(fast_segment(f, n)), index_(n), first_row_(first_row), from_(from), last_(last) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row_of(i);
      q_[i] = {row < f.rows ? f.q + int64_t{row} * f.q_row + column() : nullptr};
      seen_[i] = seen_keys(f, segment_.keys, position(row));
    }
  }

  // All heads from `head` on, `step` apart: one band of offsets after the other, the first key along with the first.
  __device__ void attend(int head, int step) {
    bool first = f_.first != nullptr;
    for (int o = 0; o < f_.offset_count; ++o) {
      if (!begins_band(o)) continue;
      find_band(o);
      find_first(first);
      for (int h = head; h < f_.heads; h += step) attend_head(h, true, first);
      first = false;
    }
    if (!first) return;
    find_first(true);
    for (int h = head; h < f_.heads; h += step) attend_head(h, false, true);
  }

 private:
  static constexpr int kSteps = kWidth / 16, kTiles = (kRows + kBand) / 8, kScores = 4 * kTiles;
  using Keys = uint2[kSteps];  // of eight keys, one in each group of four lanes
  struct Row {                 // the lane's columns of it, in head 0; absent: zeros
    const __nv_bfloat16* at = nullptr;
  };
  struct Head {
    HeadOptions options;
    int index;
    uint32_t q[kSteps][4];
    float lse2[2];  // log2 of the rows' sums
  };

  // i: of the lane's two.
  __device__ int row_of(int i) const {
    return first_row_ + lane_ / 4 + 8 * i;
  }
  __device__ int column() const {
    return 4 * (lane_ % 4);
  }
  __device__ int position(int row) const {
    return segment_.position + row - segment_.first_row;
  }
  // Row and key of score e of a band.
  __device__ static int half_of(int e) {
    return e % 4 / 2;
  }
  __device__ int key_of(int e) const {
    return first_key_ + 8 * (e / 4) + 2 * (lane_ % 4) + e % 2;
  }

  __device__ Row key_at(int key) const {
    const int row = key >= 0 && key < segment_.keys ? key_row(f_, segment_, index_, key) : -1;
    const bool there = row >= 0 && row < f_.key_rows;  // a page that no row sees may be gone
    return {there ? f_.k + int64_t{row} * f_.k_row + column() : nullptr};
  }
  // Whether offset o lies in no band before; one that is listed twice has a band of its own.
  __device__ bool begins_band(int o) const {
    int low = INT32_MAX;
    for (int before = 0; before <= o; ++before) {
      const int offset = f_.offsets[before];
      const bool inside = low != INT32_MAX && offset > low && offset <= low + kBand;
      if (before == o) return !inside;
      if (!inside) low = offset;
    }
    return true;
  }
  // The band whose lowest offset is o: its keys, and which score is which offset.
  __device__ void find_band(int o) {
    const int low = f_.offsets[o];
    first_key_ = position(first_row_) - low - kBand;
    int which = -1;  // lane l: the index of offset low + l
    for (int i = f_.offset_count - 1; i >= o; --i) {
      if (f_.offsets[i] == low + lane_) which = i;
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) band_[t] = key_at(first_key_ + 8 * t + lane_ / 4);
#pragma unroll
    for (int e = 0; e < kScores; ++e) {
      const int i = half_of(e), row = row_of(i), back = position(row) - low - key_of(e);
      const int index = __shfl_sync(~0U, which, back & 31);
      offset_[e] = back < 0 || back > kBand || row < from_ || row > last_ ? -1 : index;
    }
  }
  __device__ void find_first(bool wanted) {
    first_ = key_at(wanted && lane_ < 4 ? 0 : -1);
  }

  // Columns of all steps: inside a step their order is free if it is the same on both sides.
  __device__ void load(Keys& to, const Row& row, int64_t head) const {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const bool there = row.at != nullptr && 16 * k + column() < f_.width;
      to[k] = there ? *reinterpret_cast<const uint2*>(row.at + head + 16 * k) : make_uint2(0, 0);
    }
  }
  __device__ static void multiply(float (&s)[4], const Head& h, const Keys& keys) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) mma(s, h.q[k], keys[k].x, keys[k].y);
  }
  // Of row i of the lane's two.
  __device__ float probability(const Head& h, int i, int key, float s) const {
    if (key < seen_[i].begin || key >= seen_[i].end) return 0;
    if (f_.options) s = h.options.logit(f_, s, key - position(row_of(i)));
    return fast_exp2(fmaf(s, f_.unit2, -h.lse2[i]));
  }

  __device__ void attend_head(int head, bool band, bool first) const {
    Head h{.options = HeadOptions(f_, head), .index = head};
    const int64_t to_q = int64_t{head} * f_.q_head, to_k = int64_t{f_.kv_map[head]} * f_.k_head;
    Keys keys[kTiles], first_keys, q[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row_of(i);
      h.lse2[i] = row < f_.rows ? f_.lse[static_cast<int64_t>(row) * f_.heads + head] * kLog2E : 0.0F;
      load(q[i], q_[i], to_q);
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) load(keys[t], band ? band_[t] : Row{}, to_k);
    load(first_keys, first_, to_k);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        h.q[k][i] = q[i][k].x;
        h.q[k][2 + i] = q[i][k].y;
      }
    }
    if (band) write_band(h, keys);
    if (first) write_first(h, first_keys);
  }
  __device__ void write_band(const Head& h, const Keys (&keys)[kTiles]) const {
    float s[kTiles][4] = {};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) multiply(s[t], h, keys[t]);
    float* to[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      to[i] = f_.at_offset + (static_cast<int64_t>(row_of(i)) * f_.heads + h.index) * f_.offset_count;
    }
#pragma unroll
    for (int e = 0; e < kScores; ++e) {
      const int i = half_of(e);
      if (offset_[e] >= 0) to[i][offset_[e]] = probability(h, i, key_of(e), s[e / 4][e % 4]);
    }
  }
  __device__ void write_first(const Head& h, const Keys& keys) const {
    float s[4] = {};
    multiply(s, h, keys);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row_of(i);
      if (lane_ % 4 == 0 && row >= from_ && row <= last_) {
        f_.first[static_cast<int64_t>(row) * f_.heads + h.index] = probability(h, i, 0, s[2 * i]);
      }
    }
  }

  const FastAttention& f_;
  const FastSegment segment_;
  const int index_, first_row_, from_, last_, lane_ = static_cast<int>(threadIdx.x) % 32;
  Row q_[2], band_[kTiles], first_;
  SeenKeys seen_[2];
  int first_key_ = 0, offset_[kScores];  // of each score of the band: which of the offsets it is, -1: none
};

constexpr int kWarpsEach = 4;  // of a block, which takes all heads of its rows

template <int kWidth>
__global__ void __launch_bounds__(32 * kWarpsEach, kWidth > 64 ? 2 : 3)
    find_single_keys(const __grid_constant__ FastAttention f) {
  const int first = static_cast<int>(blockIdx.x) * kRows, end = min(first + kRows, f.rows);
  for (int row = first; row < end;) {
    const int n = find_segment(f, row);
    int next = row + 1;
    if (n >= 0) {
      const FastSegment s = fast_segment(f, n);
      next = min(s.first_row + s.rows, end);
      SingleKeys<kWidth> keys(f, first, n, row, next - 1);
      keys.attend(static_cast<int>(threadIdx.x) / 32, kWarpsEach);
    }
    row = next;
  }
}

}  // namespace

void attend_single_keys(const Exec& exec, const FastAttention& f) {
  const auto blocks = static_cast<unsigned>((f.rows + kRows - 1) / kRows);
  const auto kernel = f.width > 64 ? find_single_keys<128> : find_single_keys<64>;
  launch_after(stream_of(exec), kernel, blocks, 32 * kWarpsEach, 0, f);
}

}  // namespace qkv::kernels::cuda
