#include "io/gguf_write.h"

#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "io/gguf_layout.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_text(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out.append(text);
}

template <class T>
void put_all(std::string& out, std::span<const T> values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Appends the description of a tensor at this offset to `out`; returns the size of its data.
uint64_t put_tensor(std::string& out, const OutgoingTensor& tensor, uint64_t offset, const std::string& file) {
  const std::string what = file + ": tensor " + printable(tensor.name);
  // One less than the reader accepts: llama.cpp keeps names in 64 bytes including the final zero.
  QKV_CHECK(!tensor.name.empty() && tensor.name.size() < gguf::kLongestName, what, " has a name of ",
            tensor.name.size(), " bytes but GGUF takes 1 to ", gguf::kLongestName - 1, Hint("shorten it"));
  QKV_CHECK(tensor.shape.size() <= gguf::kMostDims, what, " has ", tensor.shape.size(), " dimensions but GGUF takes ",
            gguf::kMostDims, Hint("reshape it"));
  const StoredType* const type = find_stored_type(tensor.dtype);
  QKV_CHECK(type != nullptr && type->gguf_id >= 0, what, ": GGUF has no type ", printable(tensor.dtype),
            Hint("it has ", known_gguf_types()));
  put_text(out, tensor.name);
  put(out, static_cast<uint32_t>(tensor.shape.size()));
  for (size_t i = tensor.shape.size(); i-- > 0;) put(out, narrow<uint64_t>(tensor.shape[i], what + ": a dimension"));
  put(out, static_cast<uint32_t>(type->gguf_id));
  put(out, offset);
  return stored_bytes(*type, tensor.shape, what);
}

void pad(AtomicFile& out, uint64_t alignment) {
  const std::string zeros((alignment - out.size() % alignment) % alignment, '\0');
  out.write(std::as_bytes(std::span(zeros)));
}

}  // namespace

void GgufMetadata::start(std::string_view key, GgufKind kind) {
  QKV_CHECK(!key.empty() && key.size() <= gguf::kLongestKey, "the GGUF key ", printable(key), " has ", key.size(),
            " bytes but may have 1 to ", gguf::kLongestKey, Hint("rename it"));
  QKV_CHECK(keys_.emplace(key).second, "the GGUF key ", printable(key), " is to be written twice",
            Hint("write it once"));
  put_text(bytes_, key);
  put(bytes_, static_cast<uint32_t>(kind));
}

void GgufMetadata::start_array(std::string_view key, GgufKind kind, uint64_t count) {
  start(key, GgufKind::array);
  put(bytes_, static_cast<uint32_t>(kind));
  put(bytes_, count);
}

void GgufMetadata::add_text(std::string_view key, std::string_view value) {
  start(key, GgufKind::text);
  put_text(bytes_, value);
}

void GgufMetadata::add_u32(std::string_view key, uint32_t value) {
  if (key == gguf::kAlignmentKey) {
    QKV_CHECK(std::has_single_bit(value) && value >= gguf::kLeastAlignment && value <= gguf::kMostAlignment, key,
              " is ", value, " but must be a power of two from ", gguf::kLeastAlignment, " to ", gguf::kMostAlignment,
              Hint("leave it out for ", gguf::kDefaultAlignment));
    alignment_ = value;
  }
  start(key, GgufKind::u32);
  put(bytes_, value);
}

void GgufMetadata::add_i32(std::string_view key, int32_t value) {
  start(key, GgufKind::i32);
  put(bytes_, value);
}

void GgufMetadata::add_u64(std::string_view key, uint64_t value) {
  start(key, GgufKind::u64);
  put(bytes_, value);
}

void GgufMetadata::add_f32(std::string_view key, float value) {
  start(key, GgufKind::f32);
  put(bytes_, value);
}

void GgufMetadata::add_flag(std::string_view key, bool value) {
  start(key, GgufKind::boolean);
  put(bytes_, static_cast<uint8_t>(value));
}

void GgufMetadata::add_texts(std::string_view key, std::span<const std::string> values) {
  start_array(key, GgufKind::text, values.size());
  for (const std::string& value : values) put_text(bytes_, value);
}

void GgufMetadata::add_u32s(std::string_view key, std::span<const uint32_t> values) {
  start_array(key, GgufKind::u32, values.size());
  put_all(bytes_, values);
}

void GgufMetadata::add_i32s(std::string_view key, std::span<const int32_t> values) {
  start_array(key, GgufKind::i32, values.size());
  put_all(bytes_, values);
}

void GgufMetadata::add_bytes(std::string_view key, std::string_view bytes) {
  start_array(key, GgufKind::u8, bytes.size());
  bytes_.append(bytes);
}

void GgufMetadata::add_f32s(std::string_view key, std::span<const float> values) {
  start_array(key, GgufKind::f32, values.size());
  put_all(bytes_, values);
}

void GgufMetadata::add(const Gguf::Field& field) {
  if (field.key == gguf::kAlignmentKey && field.kind == GgufKind::u32) {
    return add_u32(field.key, gguf::load<uint32_t>(field.value));
  }
  start(field.key, field.kind);
  put_all(bytes_, field.value);
}

void write_gguf(const std::filesystem::path& path, const GgufMetadata& metadata,
                std::span<const OutgoingTensor> tensors) {
  const std::string file = path.string(), what = file + ": the end of the tensors";
  std::string descriptions;
  std::vector<uint64_t> sizes;
  std::set<std::string_view> names;
  CheckedU64 end(0, what);
  for (const OutgoingTensor& tensor : tensors) {
    QKV_CHECK(names.insert(tensor.name).second, file, ": tensor ", printable(tensor.name), " is to be written twice",
              Hint("write tied weights once"));
    sizes.push_back(put_tensor(descriptions, tensor, end.value(), file));
    end = align_up(end + sizes.back(), metadata.alignment());
  }

  std::string head(gguf::kMagic);
  put(head, gguf::kVersion);
  put<uint64_t>(head, tensors.size());
  put<uint64_t>(head, metadata.count());

  AtomicFile out(path);
  for (const std::string_view part :
       {std::string_view(head), std::string_view(metadata.bytes()), std::string_view(descriptions)})
    out.write(std::as_bytes(std::span(part)));
  if (!tensors.empty()) pad(out, metadata.alignment());  // start of the data; a vocabulary-only file has none
  for (size_t i = 0; i < tensors.size(); ++i) {
    write_tensor(out, tensors[i], sizes[i]);
    pad(out, metadata.alignment());
  }
  out.commit();
}

}  // namespace qkv
