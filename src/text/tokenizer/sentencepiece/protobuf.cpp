#include "text/tokenizer/sentencepiece/protobuf.h"

#include <bit>

#include "base/checked.h"
#include "base/error.h"

namespace qkv {
namespace {

constexpr const char* kBadProtobuf = "the file is damaged, cut short, or not a protocol buffer; fetch it again";

const char* name_of(uint64_t wire) {
  constexpr const char* kNames[] = {"a varint",           "8 bytes", "bytes with a length", "a group",
                                    "the end of a group", "4 bytes"};
  return wire < std::size(kNames) ? kNames[wire] : "unknown";
}

}  // namespace

bool ProtobufReader::next() {
  if (rest_.empty()) return false;
  const size_t at = position();
  const uint64_t tag = varint();
  QKV_CHECK(tag >> 3 > 0 && tag >> 3 < (1U << 29), what_, ": field number ", tag >> 3, " at byte ", at,
            " is not one of protocol buffers", Hint(kBadProtobuf));
  field_ = static_cast<uint32_t>(tag >> 3);
  switch (tag & 7) {
    case 0:
      wire_ = Wire::varint;
      varint_ = varint();
      break;
    case 1:
      wire_ = Wire::fixed64;
      bytes_ = take(8);
      break;
    case 2:
      wire_ = Wire::bytes;
      bytes_ = take(varint());
      break;
    case 5:
      wire_ = Wire::fixed32;
      bytes_ = take(4);
      break;
    default:
      QKV_FAIL(what_, ": field ", field_, " at byte ", at, " has wire type ", tag & 7, " (", name_of(tag & 7),
               ") but these messages have 0, 1, 2 and 5 only", Hint(kBadProtobuf));
  }
  return true;
}

uint64_t ProtobufReader::varint() {
  const size_t at = position();
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    QKV_CHECK(!rest_.empty(), what_, ": ends inside the number that starts at byte ", at, Hint(kBadProtobuf));
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    QKV_CHECK(shift < 63 || byte <= 1, what_, ": the number at byte ", at, " does not fit in 64 bits",
              Hint(kBadProtobuf));
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::string_view ProtobufReader::take(uint64_t length) {
  QKV_CHECK(length <= rest_.size(), what_, ": field ", field_, " says it has ", length, " bytes but ", rest_.size(),
            " are left at byte ", position(), Hint(kBadProtobuf));
  const std::string_view out = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return out;
}

void ProtobufReader::expect(Wire wire, std::string_view name) const {
  QKV_CHECK(wire_ == wire, what_, ": '", name, "' (field ", field_, ") is ", name_of(static_cast<uint64_t>(wire_)),
            " on the wire but must be ", name_of(static_cast<uint64_t>(wire)), Hint(kBadProtobuf));
}

std::string_view ProtobufReader::bytes(std::string_view name) const {
  expect(Wire::bytes, name);
  return bytes_;
}

float ProtobufReader::number(std::string_view name) const {
  expect(Wire::fixed32, name);
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; ++i) bits |= uint32_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
  return std::bit_cast<float>(bits);
}

int32_t ProtobufReader::integer(std::string_view name) const {
  expect(Wire::varint, name);
  // Negative numbers are encoded as 64-bit two's complement.
  return narrow<int32_t>(std::bit_cast<int64_t>(varint_), what_ + ": '" + std::string(name) + "'");
}

bool ProtobufReader::boolean(std::string_view name) const {
  expect(Wire::varint, name);
  return varint_ != 0;
}

}  // namespace qkv
