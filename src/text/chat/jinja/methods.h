// Methods that live in files of their own.
#pragma once

#include "text/chat/jinja/builtins.h"

namespace qkv::jinja {

Value format_braces(Machine& m, const Call& call);  // "{} {}".format(...)

// Argument `at` of a call as the kind it must have; an Error naming the call otherwise.
std::string_view text_argument(Machine& m, const Call& call, size_t at);
int64_t integer_argument(Machine& m, const Call& call, size_t at);

}  // namespace qkv::jinja
