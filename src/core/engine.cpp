#include "core/engine.h"

namespace qkv {

Engine::Engine(const Kernels& kernels, Options options) : kernels_(kernels), pool_(options.threads) {
  Device& device = options.device != nullptr ? *options.device : cpu_device();
  const Shape shape{pool_.threads(), kScratchPerThread};
  scratch_ = Storage(device, Format(DType::i8), shape.count());
  exec_ = {.device = &device, .pool = &pool_, .stream = nullptr, .scratch = Tensor(scratch_, shape)};
}

}  // namespace qkv
