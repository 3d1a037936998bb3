#include "io/npz.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace qkv {
namespace {

constexpr uint64_t kLargest = 0xffffffff;  // a zip counts in 32 bits

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320U ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  crc = ~crc;
  for (const std::byte b : bytes) crc = kTable[(crc ^ static_cast<uint32_t>(b)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

// Little-endian numbers of a zip.
class Record {
 public:
  Record& u16(uint32_t value) { return put(value, 2); }
  Record& u32(uint32_t value) { return put(value, 4); }
  Record& text(const std::string& value) {
    bytes_ += value;
    return *this;
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  Record& put(uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  std::string bytes_;
};

// The .npy header: type, order and shape as a Python dict, padded to a multiple of 64 bytes.
std::string npy_header(const std::string& type, const std::vector<int64_t>& shape) {
  std::string dict = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (const int64_t size : shape) dict += std::to_string(size) + ",";
  dict += "), }";
  constexpr size_t kBefore = 10, kLine = 64;  // magic, version and length
  dict.append(kLine - 1 - (kBefore + dict.size()) % kLine, ' ');
  dict += '\n';
  std::string head = "\x93NUMPY";
  head += '\1';
  head += '\0';
  head += static_cast<char>(dict.size() & 0xff);
  head += static_cast<char>(dict.size() >> 8);
  return head + dict;
}

// Version, flags, method (stored), and the earliest date of a zip, so that equal arrays give equal bytes.
Record& common(Record& record) {
  return record.u16(20).u16(0).u16(0).u16(0).u16(33);
}

}  // namespace

NpzWriter::NpzWriter(const std::filesystem::path& path) : file_(path), path_(path.string()) {}

void NpzWriter::add(const std::string& name, std::span<const float> numbers, const std::vector<int64_t>& shape) {
  add_array(name, "<f4", std::as_bytes(numbers), shape);
}

void NpzWriter::add(const std::string& name, std::span<const int32_t> numbers, const std::vector<int64_t>& shape) {
  add_array(name, "<i4", std::as_bytes(numbers), shape);
}

void NpzWriter::add(const std::string& name, std::span<const std::string> utf8) {
  // As UTF-8 bytes of type S, which the reader decodes; NumPy's own text type has a fixed width in code points.
  size_t width = 1;
  for (const std::string& text : utf8) width = std::max(width, text.size());
  std::string all;
  for (const std::string& text : utf8) {
    all += text;
    all.append(width - text.size(), '\0');
  }
  add_array(name, "|S" + std::to_string(width), std::as_bytes(std::span(all)), {std::ssize(utf8)});
}

void NpzWriter::add_array(const std::string& name, const std::string& type, std::span<const std::byte> data,
                          const std::vector<int64_t>& shape) {
  const std::string file = name + ".npy", head = npy_header(type, shape);
  const std::span<const std::byte> head_bytes = std::as_bytes(std::span(head));
  const uint64_t bytes = head.size() + data.size();
  QKV_CHECK(file_.size() + bytes + (uint64_t{1} << 20) < kLargest, path_, " would be larger than 4 GB with ", name,
            Hint("write fewer arrays: look at a shorter text"));
  const Entry entry{.name = file,
                    .crc = crc32(crc32(0, head_bytes), data),
                    .bytes = static_cast<uint32_t>(bytes),
                    .at = static_cast<uint32_t>(file_.size())};
  Record local;
  common(local.u32(0x04034b50)).u32(entry.crc).u32(entry.bytes).u32(entry.bytes);
  local.u16(static_cast<uint32_t>(file.size())).u16(0).text(file);
  file_.write(local.bytes());
  file_.write(head_bytes);
  file_.write(data);
  entries_.push_back(entry);
}

void NpzWriter::commit() {
  const auto begin = static_cast<uint32_t>(file_.size());
  for (const Entry& entry : entries_) {
    Record central;
    common(central.u32(0x02014b50).u16(20)).u32(entry.crc).u32(entry.bytes).u32(entry.bytes);
    central.u16(static_cast<uint32_t>(entry.name.size())).u16(0).u16(0).u16(0).u16(0).u32(0).u32(entry.at);
    file_.write(central.text(entry.name).bytes());
  }
  const auto size = static_cast<uint32_t>(file_.size()) - begin, count = static_cast<uint32_t>(entries_.size());
  Record end;
  end.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count).u32(size).u32(begin).u16(0);
  file_.write(end.bytes());
  file_.commit();
}

}  // namespace qkv
