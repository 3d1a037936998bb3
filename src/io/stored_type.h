// The element types of file formats, by name: "F32", "BF16", "Q4_K", ...
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/blocks.h"

namespace qkv {

struct StoredType {
  std::string_view name;
  uint64_t elements;  // to a block; 1 for plain types
  uint64_t bits;      // of a block
  Block block;
  int safetensors_rank;  // order of types in a safetensors file, highest first; -1 if not of that format
  int gguf_id;           // -1 if not of that format
};

const StoredType* find_stored_type(std::string_view name);  // nullptr if not known
const StoredType* find_gguf_type(uint32_t id);
std::string gguf_type_name(uint32_t id);  // also of types that are not read; "number 99" if it has no name
std::string known_safetensors_types();    // "F64 F32 ...", for error texts
std::string known_gguf_types();

// The bytes of a tensor of this row-major shape. An Error that starts with `what` if they overflow 64 bits or are not
// whole blocks or bytes.
uint64_t stored_bytes(const StoredType& type, std::span<const int64_t> shape, const std::string& what);

std::string shape_text(std::span<const int64_t> shape);  // "[2, 3]", long ones cut short

}  // namespace qkv
