#include "base/between_layers.h"

#include <utility>

namespace qkv {
namespace {

thread_local const std::function<void()>* between_layers = nullptr;

}  // namespace

const std::function<void()>* set_between_layers(const std::function<void()>* function) {
  return std::exchange(between_layers, function);
}

void call_between_layers() {
  if (between_layers != nullptr) (*between_layers)();
}

}  // namespace qkv
