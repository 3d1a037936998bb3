// Probabilities of single keys for the statistics of fast attention, A = exp(x - LSE): the first key and keys at
// offsets. A warp takes 16 rows and one head; offsets low ... low + 8 lie in a band of 24 keys. A score is one chain of
// k16 steps, so it has the bits of the forms that found LSE.
#include "kernels/cuda/attention/attention_fast.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kRows = 16, kBand = 8;  // offsets of a band beside its lowest

// Of 16 rows, as far as they lie in one segment.
template <int kWidth>
class SingleKeys {
 public:
  __device__ SingleKeys(const FastAttention& f, int first_row, int n, int from, int last)
      : f_(f), segment_(fast_segment(f, n)), index_(n), first_row_(first_row), from_(from), last_(last) {}

  // All heads from `head` on, `step` apart: one band of offsets after the other, the first key along with the first.
  __device__ void attend(int head, int step) {
    bool first = f_.first != nullptr;
    for (int o = 0; o < f_.offset_count; ++o) {
      if (!begins_band(o)) continue;
      low_ = f_.offsets[o];
      which_ = -1;
      for (int i = f_.offset_count - 1; i >= o; --i) {
        if (f_.offsets[i] == low_ + lane_) which_ = i;
      }
      for (int h = head; h < f_.heads; h += step) attend_head(h, true, first);
      first = false;
    }
    for (int h = head; h < f_.heads && first; h += step) attend_head(h, false, true);
  }

 private:
  static constexpr int kSteps = kWidth / 16, kTiles = (kRows + kBand) / 8;
  using Keys = uint2[kSteps];  // of eight keys, one in each group of four lanes
  struct Head {
    HeadOptions options;
    int index;
    uint32_t q[kSteps][4];
    float lse2[2];  // log2 of the rows' sums
  };

  // Four columns of step k: inside a step their order is free if it is the same on both sides.
  __device__ uint2 load(const __nv_bfloat16* row, int k, bool there) const {
    const int column = 16 * k + 4 * (lane_ % 4);
    return there && column < f_.width ? *reinterpret_cast<const uint2*>(row + column) : make_uint2(0, 0);
  }
  __device__ void load_keys(Keys& keys, int kv_head, int key) const {
    const int row = key >= 0 && key < segment_.keys ? key_row(f_, segment_, index_, key) : -1;
    const bool there = row >= 0 && row < f_.key_rows;  // a page that no row sees may be gone
#pragma unroll
    for (int k = 0; k < kSteps; ++k) keys[k] = load(f_.k + row * f_.k_row + kv_head * f_.k_head, k, there);
  }
  __device__ static void multiply(float (&s)[4], const Head& h, const Keys& keys) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) mma(s, h.q[k], keys[k].x, keys[k].y);
  }
  __device__ int position(int row) const {
    return segment_.position + row - segment_.first_row;
  }
  // Of row i of the lane's two.
  __device__ float probability(const Head& h, int i, int key, float s) const {
    const int at = position(first_row_ + lane_ / 4 + 8 * i);
    const SeenKeys seen = seen_keys(f_, segment_.keys, at);
    if (key < seen.begin || key >= seen.end) return 0;
    if (f_.options) s = h.options.logit(f_, s, key - at);
    return ex2(fmaf(s, f_.unit2, -h.lse2[i]));
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
  __device__ void attend_head(int head, bool band, bool first) const {
    Head h{.options = HeadOptions(f_, head), .index = head};
    const int kv_head = f_.kv_map[head], first_key = position(first_row_) - low_ - kBand;
    Keys keys[kTiles], first_keys;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = first_row_ + lane_ / 4 + 8 * i;
      h.lse2[i] = row < f_.rows ? f_.lse[static_cast<int64_t>(row) * f_.heads + head] * kLog2E : 0.0F;
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        const uint2 columns = load(f_.q + row * f_.q_row + head * f_.q_head, k, row < f_.rows);
        h.q[k][i] = columns.x;
        h.q[k][2 + i] = columns.y;
      }
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) load_keys(keys[t], kv_head, band ? first_key + 8 * t + lane_ / 4 : -1);
    load_keys(first_keys, kv_head, first && lane_ < 4 ? 0 : -1);
    if (band) write_band(h, keys, first_key);
    if (first) write_first(h, first_keys);
  }
  __device__ void write_band(const Head& h, const Keys (&keys)[kTiles], int first_key) const {
    float s[kTiles][4] = {};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) multiply(s[t], h, keys[t]);
#pragma unroll
    for (int e = 0; e < 4 * kTiles; ++e) {
      const int i = e % 4 / 2, column = 8 * (e / 4) + 2 * (lane_ % 4) + e % 2, row = first_row_ + lane_ / 4 + 8 * i;
      const int back = lane_ / 4 + 8 * i + kBand - column, index = __shfl_sync(~0U, which_, back & 31);
      if (back < 0 || back > kBand || index < 0 || row < from_ || row > last_) continue;
      f_.at_offset[(static_cast<int64_t>(row) * f_.heads + h.index) * f_.offset_count + index] =
          probability(h, i, first_key + column, s[e / 4][e % 4]);
    }
  }
  __device__ void write_first(const Head& h, const Keys& keys) const {
    float s[4] = {};
    multiply(s, h, keys);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = first_row_ + lane_ / 4 + 8 * i;
      if (lane_ % 4 == 0 && row >= from_ && row <= last_) {
        f_.first[static_cast<int64_t>(row) * f_.heads + h.index] = probability(h, i, 0, s[2 * i]);
      }
    }
  }

  const FastAttention& f_;
  const FastSegment segment_;
  const int index_, first_row_, from_, last_, lane_ = static_cast<int>(threadIdx.x) % 32;
  int low_ = 0, which_ = -1;  // the band: its lowest offset; lane l: the index of offset low + l, -1 if not asked for
};

constexpr int kWarpsEach = 4;  // of a block, which takes all heads of its rows

template <int kWidth>
__global__ void __launch_bounds__(32 * kWarpsEach) find_single_keys(const __grid_constant__ FastAttention f) {
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
  if (f.width > 64) {
    find_single_keys<128><<<blocks, 32 * kWarpsEach, 0, stream_of(exec)>>>(f);
  } else {
    find_single_keys<64><<<blocks, 32 * kWarpsEach, 0, stream_of(exec)>>>(f);
  }
  note_launch();
}

}  // namespace qkv::kernels::cuda
