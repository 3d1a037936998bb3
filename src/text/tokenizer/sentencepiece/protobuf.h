// Protocol buffer wire format: iterates over the fields of one message and checks every length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

class ProtobufReader {
 public:
  // Error messages start with `what`. The bytes must outlive the reader.
  ProtobufReader(std::string_view message, std::string_view what)
      : rest_(message), size_(message.size()), what_(what) {}

  // Moves to the next field; false at the end of the message.
  bool next();

  uint32_t field() const { return field_; }

  // The value of the current field; an Error with `name` if it has another wire type. Unread fields are skipped.
  std::string_view bytes(std::string_view name) const;
  float number(std::string_view name) const;
  int32_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;

 private:
  enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  uint64_t varint();
  std::string_view take(uint64_t length);
  void expect(Wire wire, std::string_view name) const;
  size_t position() const { return size_ - rest_.size(); }

  std::string_view rest_;
  size_t size_;
  std::string what_;
  uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
  uint64_t varint_ = 0;
  std::string_view bytes_;
};

}  // namespace qkv
