#include "io/gguf.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "io/gguf_layout.h"

namespace qkv {
namespace {

using Bytes = std::span<const std::byte>;
using gguf::load;
using gguf::name_in;

struct Kind {
  const char* name;
  uint64_t size;  // the fewest bytes a value takes
};

// In the order of enum GgufKind.
constexpr std::array<Kind, gguf::kKindCount> kKinds{{{"u8", 1},
                                                     {"i8", 1},
                                                     {"u16", 2},
                                                     {"i16", 2},
                                                     {"u32", 4},
                                                     {"i32", 4},
                                                     {"f32", 4},
                                                     {"bool", 1},
                                                     {"text", 8},
                                                     {"array", 12},
                                                     {"u64", 8},
                                                     {"i64", 8},
                                                     {"f64", 8}}};

bool is_integer(GgufKind kind) {
  switch (kind) {
    case GgufKind::f32:
    case GgufKind::f64:
    case GgufKind::boolean:
    case GgufKind::text:
    case GgufKind::array:
      return false;
    default:
      return true;
  }
}

int64_t integer_at(GgufKind kind, Bytes at, const std::string& what) {
  switch (kind) {
    case GgufKind::u8:
      return load<uint8_t>(at);
    case GgufKind::i8:
      return load<int8_t>(at);
    case GgufKind::u16:
      return load<uint16_t>(at);
    case GgufKind::i16:
      return load<int16_t>(at);
    case GgufKind::u32:
      return load<uint32_t>(at);
    case GgufKind::i32:
      return load<int32_t>(at);
    case GgufKind::u64:
      return narrow<int64_t>(load<uint64_t>(at), what);
    case GgufKind::i64:
      return load<int64_t>(at);
    default:
      QKV_ASSERT(false, what, ": a ", name_of(kind), " is no integer");
  }
  return 0;
}

struct Array {
  GgufKind kind;
  uint64_t count;
  Bytes values;
};

Array array_of(const Gguf::Field& field) {
  return {static_cast<GgufKind>(load<uint32_t>(field.value)), load<uint64_t>(field.value.subspan(4)),
          field.value.subspan(12)};
}

// "f32" or "array of f32".
std::string kind_text(const Gguf::Field& field) {
  if (field.kind != GgufKind::array) return name_of(field.kind);
  return std::string("array of ") + name_of(array_of(field).kind);
}

// The next string of an array, validated when the file was read.
std::string_view take_text(Bytes& values) {
  const Bytes text = values.subspan(8, load<uint64_t>(values));
  values = values.subspan(8 + text.size());
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

// Binary search in indices sorted by name.
template <class T>
const T* find_in(const std::vector<T>& all, const std::vector<uint32_t>& positions, std::string_view name) {
  const auto found = std::lower_bound(positions.begin(), positions.end(), name,
                                      [&](uint32_t i, std::string_view wanted) { return name_in(all[i]) < wanted; });
  return found != positions.end() && name_in(all[*found]) == name ? &all[*found] : nullptr;
}

[[noreturn]] void fail_kind(const std::string& name, const Gguf::Field& field, const char* wanted) {
  QKV_FAIL(name, ": key ", printable(field.key), " must be ", wanted, " but is ", kind_text(field),
           Hint("the file was written for another program, or is damaged"));
}

}  // namespace

const char* name_of(GgufKind kind) {
  return kKinds[static_cast<size_t>(kind)].name;
}

uint64_t gguf::least_bytes(GgufKind kind) {
  return kKinds[static_cast<size_t>(kind)].size;
}

const StoredTensor* Gguf::find(std::string_view name) const {
  return find_in(entries_, entries_by_name_, name);
}

const StoredTensor& Gguf::at(std::string_view name) const {
  const StoredTensor* const found = find(name);
  if (found == nullptr) fail_no_such_tensor(name_, name, entries_);
  return *found;
}

void Gguf::release(const StoredTensor& entry) const {
  for (const auto& file : files_) file->release(entry.bytes);  // each ignores bytes of the others
}

const Gguf::Field* Gguf::find_field(std::string_view key) const {
  return find_in(fields_, fields_by_key_, key);
}

const Gguf::Field& Gguf::field(std::string_view key) const {
  const Field* const found = find_field(key);
  if (found != nullptr) return *found;
  std::vector<std::string_view> known;
  for (const Field& field : fields_) known.push_back(field.key);
  const std::string near = nearest_key(key, known);
  QKV_FAIL(name_, ": has no key ", printable(key), " among its ", fields_.size(),
           Hint(near.empty() ? "the file was written for another program" : "did you mean " + printable(near)));
}

std::string_view Gguf::text(std::string_view key) const {
  const Field& f = field(key);
  if (f.kind != GgufKind::text) fail_kind(name_, f, "text");
  return {reinterpret_cast<const char*>(f.value.data()) + 8, f.value.size() - 8};
}

int64_t Gguf::integer(std::string_view key) const {
  const Field& f = field(key);
  if (!is_integer(f.kind)) fail_kind(name_, f, "an integer");
  return integer_at(f.kind, f.value, name_ + ": key " + printable(key));
}

double Gguf::number(std::string_view key) const {
  const Field& f = field(key);
  if (f.kind == GgufKind::f32) return static_cast<double>(load<float>(f.value));
  if (f.kind == GgufKind::f64) return load<double>(f.value);
  fail_kind(name_, f, "f32 or f64");
}

bool Gguf::flag(std::string_view key) const {
  const Field& f = field(key);
  if (f.kind != GgufKind::boolean) fail_kind(name_, f, "bool");
  return load<uint8_t>(f.value) != 0;
}

std::vector<std::string_view> Gguf::texts(std::string_view key) const {
  const Field& f = field(key);
  if (f.kind != GgufKind::array || array_of(f).kind != GgufKind::text) fail_kind(name_, f, "an array of text");
  const Array array = array_of(f);
  Bytes values = array.values;
  std::vector<std::string_view> out;
  out.reserve(array.count);
  for (uint64_t i = 0; i < array.count; ++i) out.push_back(take_text(values));
  return out;
}

std::vector<int64_t> Gguf::integers(std::string_view key) const {
  const Field& f = field(key);
  const bool flags = f.kind == GgufKind::array && array_of(f).kind == GgufKind::boolean;  // as 0 and 1
  if (f.kind != GgufKind::array || !(flags || is_integer(array_of(f).kind)))
    fail_kind(name_, f, "an array of integers");
  Array array = array_of(f);
  if (flags) array.kind = GgufKind::u8;
  const std::string what = name_ + ": key " + printable(key);
  const uint64_t size = gguf::least_bytes(array.kind);
  std::vector<int64_t> out;
  out.reserve(array.count);
  for (uint64_t i = 0; i < array.count; ++i) {
    out.push_back(integer_at(array.kind, array.values.subspan(i * size, size), what));
  }
  return out;
}

std::string Gguf::bytes(std::string_view key) const {
  const Field& f = field(key);
  const GgufKind kind = f.kind == GgufKind::array ? array_of(f).kind : f.kind;
  if (f.kind == GgufKind::array && (kind == GgufKind::u8 || kind == GgufKind::i8)) {
    const Bytes values = array_of(f).values;
    return {reinterpret_cast<const char*>(values.data()), values.size()};
  }
  std::string out;
  for (const int64_t byte : integers(key)) out += static_cast<char>(byte & 0xff);
  return out;
}

std::vector<float> Gguf::floats(std::string_view key) const {
  const Field& f = field(key);
  if (f.kind != GgufKind::array || array_of(f).kind != GgufKind::f32) fail_kind(name_, f, "an array of f32");
  const Array array = array_of(f);
  std::vector<float> out(array.count);
  if (!out.empty()) std::memcpy(out.data(), array.values.data(), array.values.size());
  return out;
}

}  // namespace qkv
