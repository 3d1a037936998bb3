// A read of a mapped file beyond its end, because the file was shortened, or from a failing disk raises SIGBUS. For
// mappings noted here that ends the program with a message that names the file and exit code 2.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace qkv {

void note_mapping(std::span<const std::byte> bytes, const std::string& name);
void forget_mapping(std::span<const std::byte> bytes);

// Reads every page. After a system call failed with EFAULT on these bytes, the fault names the file.
void touch_pages(std::span<const std::byte> bytes);

}  // namespace qkv
