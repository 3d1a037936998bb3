// What a program without kernels for GPUs says of them. Whatever is linked with kernels (src/kernels/cuda) takes those instead.
#include "base/error.h"
#include "kernels/tables.h"

namespace qkv::kernels::cuda {

bool available(const char** why) {
  if (why != nullptr) *why = "this program was built without kernels for NVIDIA GPUs";
  return false;
}

const Kernels& table() {
  const char* why = nullptr;
  available(&why);
  QKV_FAIL("there is no GPU to use: ", why,
           Hint("where nvcc is, build it with  cmake --preset release -DQKV_CUDA=ON; or use --device cpu"));
}

std::string gpu_name() {
  return "";
}

std::string gpu_id() {
  return "";
}

}  // namespace qkv::kernels::cuda
