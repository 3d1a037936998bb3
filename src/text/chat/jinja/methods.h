// Methods defined in their own files, and checked arguments of methods.
#pragma once

#include "text/chat/jinja/builtins.h"

namespace qkv::jinja {

const Builtin* find_text_method(std::string_view name);
int64_t count_words(std::string_view text);                  // of the filter wordcount
Value format_braces(Interpreter& interp, const Call& call);  // "{} {}".format(...)

// Argument `at` of a call with the required type; an Error otherwise.
std::string_view text_argument(Interpreter& interp, const Call& call, size_t at);
int64_t integer_argument(Interpreter& interp, const Call& call, size_t at);

}  // namespace qkv::jinja
