// String literals of a template.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace qkv::jinja {

// Resolves the escapes of a Python string literal. A bad escape is reported to `fail`, which throws.
std::string unescape(std::string_view written, FunctionRef<void(std::string_view problem)> fail);

}  // namespace qkv::jinja
