// String literals of a template.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace qkv::jinja {

// What stands between the quotes, as Python means it. A bad escape is told to `fail`, which throws.
std::string unescape(std::string_view written, FunctionRef<void(std::string_view problem)> fail);

}  // namespace qkv::jinja
