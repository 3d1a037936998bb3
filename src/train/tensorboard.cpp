#include "train/tensorboard.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>

namespace qkv {
namespace {

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(value); ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7F) | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string key(uint32_t field, Wire wire) {
  return varint(field << 3 | static_cast<uint32_t>(wire));
}
std::string bytes_field(uint32_t field, std::string_view value) {
  return key(field, Wire::bytes) + varint(value.size()) + std::string(value);
}

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
    table[i] = crc;
  }
  return table;
}();

// CRC-32C, rotated and offset as the format requires, so that a CRC over data containing CRCs is not degenerate.
uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ crc >> 8;
  return std::rotr(~crc, 15) + 0xA282EAD8;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Two runs may start in the same second.
std::filesystem::path free_name(const std::filesystem::path& folder) {
  const auto seconds = static_cast<int64_t>(seconds_now());
  for (int n = 0;; ++n) {
    std::filesystem::path name = folder / fmt::format("events.out.tfevents.{:010}.qkv.{}", seconds, n);
    if (!std::filesystem::exists(name)) return name;
  }
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder) : file_(free_name(folder)) {
  write(0, bytes_field(3, "brain.Event:2"));
}

void EventFile::write(int64_t step, std::string_view what) {
  const std::string event = key(1, Wire::fixed64) + little_endian(std::bit_cast<uint64_t>(seconds_now())) +
                            key(2, Wire::varint) + varint(static_cast<uint64_t>(step)) + std::string(what);
  const std::string length = little_endian(uint64_t{event.size()});
  file_.append(length + little_endian(masked_crc(length)) + event + little_endian(masked_crc(event)));
}

void EventFile::scalars(int64_t step, const std::map<std::string, double>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    summary += bytes_field(1, bytes_field(1, tag) + key(2, Wire::fixed32) + little_endian(bits));
  }
  write(step, bytes_field(5, summary));
}

void EventFile::restarted(int64_t step) {
  constexpr uint64_t kStart = 1;
  write(step, bytes_field(7, key(1, Wire::varint) + varint(kStart)));
}

}  // namespace qkv
