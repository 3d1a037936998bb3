// Which calls of attention the fast forms take, and which form.
#include "kernels/cuda/attention/attention_fast.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int64_t kMostWidth = 128;
constexpr int kFewRows = 16;  // up to so many a segment, one row at a time is faster

bool in_pieces(const Tensor& t) {  // of 16 bytes
  bool whole = t.dtype() == DType::bf16 && t.dim(-1) > 0 && t.dim(-1) % 8 == 0 && t.dim(-1) <= kMostWidth &&
               reinterpret_cast<uintptr_t>(t.data()) % 16 == 0 && t.stride(-1) == 1;
  for (int axis = 0; axis < t.rank() - 1; ++axis) whole = whole && t.stride(axis) % 8 == 0 && t.stride(axis) >= 0;
  return whole;
}
bool plain_f32(const Tensor& t) {
  return !t.defined() || (t.dtype() == DType::f32 && t.contiguous());
}

bool takes(const AttentionArgs& a) {
  const AttentionInput& in = a.in;
  const AttentionStats& s = a.stats;
  bool fits = !in.mask.defined() && !in.k_scales.defined() && !in.v_scales.defined() && in_pieces(in.q) &&
              in_pieces(in.k) && in_pieces(in.v) && in_pieces(a.z) && in.scale >= 1e-6 && in.scale <= 1e6 &&
              in.q.dim(0) > 0 && in.q.dim(1) > 0 && in.segments.dim(0) > 0 && a.lse.dtype() == DType::f32;
  for (const Tensor& t :
       {a.lse, in.sinks, in.slopes, in.bias, s.entropy, s.distance, s.first, s.highest, s.at_offset, s.in_class}) {
    fits = fits && plain_f32(t);
  }
  if (in.table.defined()) {
    for (const Tensor& t : {in.k, in.v}) fits = fits && t.stride(0) == t.dim(1) * t.stride(1);
  }
  fits = fits && rows_fit(in.dropout.p != 0 || std::max(in.q.dim(-1), a.z.dim(-1)) > 64);
  const int64_t rows = in.q.dim(0) * in.q.dim(1), slots = in.k.count() / (in.k.dim(-1) * in.k.dim(-2));
  return fits && rows < INT32_MAX / 2 && slots < INT32_MAX / 2;
}

template <class T>
T* pointer(const Tensor& t) {
  return t.defined() ? reinterpret_cast<T*>(t.data()) : nullptr;
}

FastAttention fast(const AttentionArgs& a) {
  const AttentionInput& in = a.in;
  const AttentionStats& s = a.stats;
  const bool paged = in.table.defined(), options = in.softcap > 0 || in.slopes.defined() || in.bias.defined();
  const int axis = paged ? 1 : 0;  // of keys, in k and v
  const auto small = [](int64_t n) { return static_cast<int>(n); };
  FastAttention f{.q = pointer<__nv_bfloat16>(in.q),
                  .k = pointer<__nv_bfloat16>(in.k),
                  .v = pointer<__nv_bfloat16>(in.v),
                  .z = pointer<__nv_bfloat16>(a.z),
                  .lse = pointer<float>(a.lse),
                  .q_row = in.q.stride(0),
                  .q_head = in.q.stride(1),
                  .k_row = in.k.stride(axis),
                  .k_head = in.k.stride(axis + 1),
                  .v_row = in.v.stride(axis),
                  .v_head = in.v.stride(axis + 1),
                  .z_row = a.z.stride(0),
                  .z_head = a.z.stride(1),
                  .segments = pointer<int32_t>(in.segments),
                  .table = pointer<int32_t>(in.table),
                  .kv_map = pointer<int32_t>(in.kv_map),
                  .rows = small(in.q.dim(0)),
                  .heads = small(in.q.dim(1)),
                  .kv_heads = small(in.k.dim(axis + 1)),
                  .key_rows = small(paged ? in.k.dim(0) * in.k.dim(1) : in.k.dim(0)),
                  .width = small(in.q.dim(2)),
                  .value_width = small(a.z.dim(2)),
                  .segment_count = small(in.segments.dim(0)),
                  .table_width = paged ? small(in.table.dim(1)) : 0,
                  .page = paged ? small(in.k.dim(1)) : 1,
                  .causal = in.causal,
                  .window = small(std::min<int64_t>(in.window, 1 << 30)),
                  .chunk = small(std::min<int64_t>(in.chunk, 1 << 30)),
                  .scale = static_cast<float>(in.scale),
                  .unit = options ? 1.0F : static_cast<float>(in.scale),
                  .options = options,
                  .softcap = static_cast<float>(in.softcap),
                  .sinks = pointer<float>(in.sinks),
                  .slopes = pointer<float>(in.slopes),
                  .bias = pointer<float>(in.bias),
                  .buckets = pointer<int32_t>(in.buckets),
                  .bias_row = in.bias.defined() ? small(in.bias.dim(1)) : 0,
                  .reach = in.buckets.defined() ? small(in.buckets.count() / 2) : 0,
                  .entropy = pointer<float>(s.entropy),
                  .distance = pointer<float>(s.distance),
                  .first = pointer<float>(s.first),
                  .highest = pointer<float>(s.highest),
                  .argmax = pointer<int32_t>(s.argmax),
                  .few = paged ? kFewRows : 0};
  f.unit2 = f.unit * kLog2E;
  if (s.at_offset.defined()) {
    f.at_offset = pointer<float>(s.at_offset);
    f.offsets = pointer<int32_t>(s.offsets);
    f.offset_count = small(s.offsets.count());
  }
  if (s.in_class.defined() && s.in_class.dim(2) <= kMostClasses) {
    f.in_class = pointer<float>(s.in_class);
    f.key_classes = pointer<int32_t>(s.key_classes);
    f.class_count = small(s.in_class.dim(2));
  }
  f.stats = f.entropy != nullptr || f.distance != nullptr || f.first != nullptr || f.highest != nullptr ||
            f.argmax != nullptr || f.offset_count > 0 || f.class_count > 0;
  return f;
}

}  // namespace

bool attend_fast(const Exec& exec, const AttentionArgs& a) {
  if (!takes(a)) return false;
  FastAttention f = fast(a);
  Exec rest = exec;  // with the scratch that a mask leaves
  StreamMemory memory(exec);
  if (a.in.dropout.p != 0) {
    if (f.options || f.stats || f.table != nullptr) return false;
    f.drop = find_drop_mask(rest, a.in, memory);
    if (f.drop.words == nullptr) return false;
  }
  const bool many = f.rows >= kFewRows * f.segment_count;
  const bool plain = !f.options && !f.stats && f.table == nullptr && f.drop.words == nullptr;
  if (many && plain && all_short(a.in) && attend_short(rest, f)) {
    if (f.causal || f.window > 0 || f.chunk > 0) attend_rows(rest, f, RowsOf::marked_short);  // else no value is hidden
  } else if (many && attend_tiles(rest, f)) {
    attend_rows(rest, f, RowsOf::marked);
    if (f.few > 0) attend_rows(rest, f, RowsOf::short_segments);
  } else {
    attend_rows(rest, f, RowsOf::all);
  }
  if (f.first != nullptr || f.offset_count > 0) attend_single_keys(rest, f);
  return true;
}

}  // namespace qkv::kernels::cuda
