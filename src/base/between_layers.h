// A function of a thread that is called between the layers of its passes; what it throws ends them (qkv/interrupt.h).
#pragma once

#include <functional>

namespace qkv {

// Null: none. Returns what was set before.
const std::function<void()>* set_between_layers(const std::function<void()>* function);

void call_between_layers();

}  // namespace qkv
