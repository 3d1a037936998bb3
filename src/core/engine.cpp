#include "core/engine.h"

namespace qkv {

Engine::Engine(const Kernels& kernels, Options options) : kernels_(kernels), pool_(options.threads) {
  Device& device = options.device != nullptr ? *options.device : kernels.device();
  const Shape shape{pool_.threads(), device.scratch_bytes(pool_.threads()) / pool_.threads()};
  scratch_ = Storage(device, Format(DType::i8), shape.count());
  if (device.can_record()) constants_ = std::make_unique<Constants>(device);
  exec_ = {.device = &device, .pool = &pool_, .stream = device.stream(), .scratch = Tensor(scratch_, shape)};
}

}  // namespace qkv
