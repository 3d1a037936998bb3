// SHA-256 (FIPS 180-4), to check that a file is unchanged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace qkv {

class Sha256 {
 public:
  using Form = void (*)(std::array<uint32_t, 8>& state, const std::byte* data, size_t blocks);

  Sha256();               // with the CPU's SHA instructions if it has them
  static Sha256 plain();  // without them
  void update(std::span<const std::byte> bytes);
  std::string hex();  // of all bytes so far, 64 digits; the object is used up

 private:
  static constexpr size_t kBlock = 64;

  Form add_blocks_;
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> pending_{};  // a partial block
  uint64_t size_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace qkv
