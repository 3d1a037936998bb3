// Failures of what surrounds the program: files, permissions, memory, threads.
#pragma once

#include <exception>
#include <optional>

#include "base/error.h"

namespace qkv {

// An exception of the standard library that tells of such a failure, as an Error of kind input. Nothing for any other:
// that one is ours.
std::optional<Error> environment_error(const std::exception& failure);

// Descriptors 0 to 2 that are closed are opened on /dev/null, so that no file opened later becomes one of them.
void open_standard_descriptors();

}  // namespace qkv
