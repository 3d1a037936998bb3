// A tensor as all file formats read and write it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace qkv {

class AtomicFile;

inline constexpr const char* kDamagedFile = "the file is damaged or cut short; fetch or write it again";  // a hint

struct StoredTensor {
  std::string name;
  std::string dtype;           // as safetensors and GGUF spell it: "F32", "BF16", "I64", "Q4_K", ...; see stored_type.h
  std::vector<int64_t> shape;  // outermost first, in GGUF too
  std::span<const std::byte> bytes;  // little endian; may start at any address, so copy rather than cast
};

using ByteSink = FunctionRef<void(std::span<const std::byte>)>;

// A tensor to be written. give() is called once, when its turn comes, and passes the bytes to the sink in any pieces.
struct OutgoingTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::function<void(ByteSink)> give;
};

OutgoingTensor outgoing(const StoredTensor& entry);  // the entry's bytes must outlive the write

// Writes the bytes that give() passes; an Error unless their number is right.
void write_tensor(AtomicFile& out, const OutgoingTensor& tensor, uint64_t bytes);

// In entries sorted by name; nullptr if absent.
const StoredTensor* find_by_name(std::span<const StoredTensor> sorted, std::string_view name);

// The Error for a missing name, with the nearest names in the file.
[[noreturn]] void fail_no_such_tensor(const std::string& container, std::string_view wanted,
                                      std::span<const StoredTensor> entries);

}  // namespace qkv
