// Filters that take lists.
#pragma once

#include "text/chat/jinja/builtins.h"

namespace qkv::jinja {

const Builtin* find_list_filter(std::string_view name);

}  // namespace qkv::jinja
