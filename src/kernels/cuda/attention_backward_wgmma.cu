// Which cases of attention's backward the tensor core takes, and the launches: plan, dq and delta, then dk and dv.
#include "kernels/cuda/attention_backward.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

EncodeTiled encode_tiled() {
  static const EncodeTiled function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return code == cudaSuccess ? reinterpret_cast<EncodeTiled>(found) : nullptr;
  }();
  return function;
}

// [rows, heads, width], any strides of 16 bytes.
bool map_heads(CUtensorMap& map, const Tensor& t) {
  const auto bytes = [&](int axis) { return static_cast<cuuint64_t>(t.stride(axis)) * sizeof(__nv_bfloat16); };
  const cuuint64_t dims[3] = {static_cast<cuuint64_t>(t.dim(2)), static_cast<cuuint64_t>(t.dim(1)),
                              static_cast<cuuint64_t>(t.dim(0))};
  const cuuint64_t strides[2] = {bytes(1), bytes(0)};
  const cuuint32_t box[3] = {64, 1, kBlock}, steps[3] = {1, 1, 1};
  return encode_tiled() != nullptr &&
         encode_tiled()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, t.data(), dims, strides, box, steps,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool loads_well(const Tensor& t) {
  return t.dtype() == DType::bf16 && t.rank() == 3 && t.dim(2) <= 128 && t.dim(2) % 8 == 0 && t.dim(0) > 0 &&
         t.dim(0) < INT32_MAX / 2 && t.stride(0) % 8 == 0 && t.stride(1) % 8 == 0 && t.stride(0) > 0 &&
         t.stride(1) > 0 && reinterpret_cast<uintptr_t>(t.data()) % 16 == 0;
}
bool stores_well(const Grad& g) {
  const Tensor& t = g.tensor;
  return !g || (t.dtype() == DType::bf16 && t.rank() == 3 && t.stride(0) % 2 == 0 && t.stride(1) % 2 == 0 &&
                reinterpret_cast<uintptr_t>(t.data()) % 4 == 0);
}

bool takes(const AttentionBackwardArgs& a) {
  const AttentionInput& in = a.in;
  const bool plain = !in.table.defined() && in.softcap == 0 && !in.slopes.defined() && !in.bias.defined() &&
                     !in.mask.defined() && in.dropout.p == 0;
  return plain && loads_well(in.q) && loads_well(in.k) && loads_well(in.v) && loads_well(a.dz) && loads_well(a.z) &&
         stores_well(a.dq) && stores_well(a.dk) && stores_well(a.dv) && a.lse.dtype() == DType::f32 &&
         a.delta.dtype() == DType::f32 && in.segments.dim(0) > 0;
}

}  // namespace

HeadGradient::HeadGradient(const Grad& g) {
  if (!g) return;
  data = reinterpret_cast<__nv_bfloat16*>(g.tensor.data());
  row = g.tensor.stride(0);
  head = g.tensor.stride(1);
  columns = static_cast<int>(g.tensor.dim(2));
  add = g.add;
}

bool attention_backward_wgmma(const Exec& exec, const AttentionBackwardArgs& a) {
  if (!takes(a)) return false;
  const AttentionInput& in = a.in;
  const int width = static_cast<int>(std::max(in.q.dim(2), in.v.dim(2)));
  const TilePlan plan = place_plan(exec.scratch.data(), in, dq_tile_rows(width));
  const int64_t stats_bytes = in.q.dim(1) * plan.blocks() * kBlock * static_cast<int64_t>(sizeof(float2));
  BackwardMaps maps{};
  if (plan.bytes + stats_bytes > exec.scratch.count() || !map_heads(maps.q, in.q) || !map_heads(maps.k, in.k) ||
      !map_heads(maps.v, in.v) || !map_heads(maps.dz, a.dz) || !map_heads(maps.z, a.z)) {
    return false;
  }
  const BackwardPass pass{.plan = plan,
                          .segments = View(in.segments),
                          .kv_map = reinterpret_cast<const int32_t*>(in.kv_map.data()),
                          .stats = reinterpret_cast<float2*>(exec.scratch.data() + plan.bytes),
                          .sight = {.causal = in.causal, .window = in.window, .chunk = in.chunk},
                          .scale = static_cast<float>(in.scale),
                          .lse = View(a.lse),
                          .delta = View(a.delta),
                          .dq = HeadGradient(a.dq),
                          .dk = HeadGradient(a.dk),
                          .dv = HeadGradient(a.dv),
                          .heads = static_cast<int>(in.q.dim(1)),
                          .kv_heads = static_cast<int>(in.k.dim(1)),
                          .width = width};
  make_plan(exec, in, {.dq = GradView(a.dq), .dk = GradView(a.dk), .dv = GradView(a.dv), .delta = View(a.delta)}, plan);
  find_dq_wgmma(exec, pass, maps);
  if (a.dk || a.dv) find_dk_dv_wgmma(exec, pass, maps);
  return true;
}

}  // namespace qkv::kernels::cuda
