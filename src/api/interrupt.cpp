#include <qkv/interrupt.h>

#include <utility>

#include "base/between_layers.h"

namespace qkv::v1 {

Interruptible::Interruptible(std::function<void()> check)
    : check_(std::move(check)), before_(set_between_layers(check_ ? &check_ : nullptr)) {}

Interruptible::~Interruptible() {
  set_between_layers(before_);
}

}  // namespace qkv::v1
