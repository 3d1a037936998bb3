// A tensor as every container gives it, and as every writer takes it.
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

struct StoredTensor {
  std::string name;
  std::string dtype;           // as safetensors and GGUF spell it: "F32", "BF16", "I64", "Q4_K", ...; see stored_type.h
  std::vector<int64_t> shape;  // outermost first, in GGUF too
  std::span<const std::byte> bytes;  // little endian; may start at any address, so copy rather than cast
};

using ByteSink = FunctionRef<void(std::span<const std::byte>)>;

// A tensor to be written. Its bytes are asked for once, when their turn comes, and given in pieces of any size.
struct OutgoingTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::function<void(ByteSink)> give;
};

OutgoingTensor outgoing(const StoredTensor& entry);  // the entry's bytes must stay until they are written

// Asks for the bytes and writes them; an Error unless they are exactly as many as they should be.
void write_tensor(AtomicFile& out, const OutgoingTensor& tensor, uint64_t bytes);

// The Error for a name a container does not have, with the nearest that it has.
[[noreturn]] void fail_no_such_tensor(const std::string& container, std::string_view wanted,
                                      std::vector<std::string_view> known);

}  // namespace qkv
