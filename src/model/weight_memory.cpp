#include "model/weight_memory.h"

#include <algorithm>

#include "core/kernels.h"
#include "model/weight_list.h"

namespace qkv {
namespace {

// Bytes that passes keep of a weight, and before that of its master, where they do not read it.
struct Kept {
  int64_t bytes = 0, before = 0;
};

// Products read weights in their dtype or as tiles, norms and routers in exact. What is looked up stays as it lies in the
// file, also where a tied head reads it a second time.
Kept kept(const Param& weight, const WeightSpec& spec, bool of_head, const Kernels& kernels, Precision precision) {
  const int64_t stored = weight.format().bytes_for(weight.shape());
  const bool exact = spec.part == Part::norm || spec.part == Part::router, bias = spec.name.ends_with(".bias"),
             as_stored =
                 spec.part == Part::embedding || spec.name.ends_with(".sinks") || spec.name.ends_with(".correction");
  const DType dtype = exact ? precision.exact : precision.compute;
  const bool tiles = kernels.wants_tiles && dtype == DType::bf16 && !exact && !bias;
  if ((as_stored && !of_head) || !weight.format().plain() || (!tiles && weight.format().dtype == dtype)) {
    return {stored};
  }
  const int64_t read = Format(dtype).bytes_for(tiles ? tiles_shape(weight.shape()) : weight.shape());
  return as_stored ? Kept{stored + read} : Kept{read, stored};
}

}  // namespace

WeightMemory weight_memory(const Model& model, const Kernels& kernels, Precision precision) {
  WeightMemory memory;
  for (const WeightSpec& spec : weight_list(model.spec())) {
    const Param* weight = model.weights().find(spec.name);
    if (weight == nullptr) continue;  // of a partial model
    const Kept each = kept(*weight, spec, weight == &model.head().weight(), kernels, precision);
    memory.kept += each.bytes;
    memory.before = std::max(memory.before, each.before);
    memory.held += std::min(weight->held_bytes(), each.bytes);
  }
  return memory;
}

}  // namespace qkv
