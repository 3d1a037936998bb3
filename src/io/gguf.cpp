#include "io/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "io/gguf_layout.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they stand");

using Bytes = std::span<const std::byte>;

constexpr const char* kDamaged = "the file is damaged or cut short; fetch or write it again";
constexpr int kDeepestArray = 4;

struct Kind {
  const char* name;
  uint64_t size;  // the fewest bytes a value takes
};

// In the order of enum GgufKind.
constexpr std::array<Kind, 13> kKinds{{{"u8", 1},
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

uint64_t least_bytes(GgufKind kind) {
  return kKinds[static_cast<size_t>(kind)].size;
}

template <class T>
T load(Bytes bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Walks over the file. `what` says in error texts what is being read.
class Cursor {
 public:
  Cursor(Bytes bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }
  const std::string& name() const { return name_; }
  Bytes since(uint64_t start) const { return bytes_.subspan(start, at_ - start); }

  Bytes take(uint64_t count, std::string_view what) {
    QKV_CHECK(count <= left(), name_, ": ", what, " needs ", count, " bytes at byte ", at_, " but only ", left(),
              " are left", Hint(kDamaged));
    return bytes_.subspan(std::exchange(at_, at_ + count), count);
  }

  template <class T>
  T take(std::string_view what) {
    return load<T>(take(sizeof(T), what));
  }

  std::string_view take_text(uint64_t longest, std::string_view what) {
    const auto length = take<uint64_t>(what);
    QKV_CHECK(length <= longest, name_, ": ", what, " is said to have ", length, " bytes but may have at most ",
              longest, Hint(kDamaged));
    const Bytes bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  Bytes bytes_;
  const std::string& name_;
  uint64_t at_ = 0;
};

GgufKind take_kind(Cursor& in, const std::string& what) {
  const auto id = in.take<uint32_t>(what);
  QKV_CHECK(id < kKinds.size(), in.name(), ": ", what, " is of kind ", id, " but the last known kind is ",
            kKinds.size() - 1, Hint(kDamaged));
  return static_cast<GgufKind>(id);
}

void check_flags(Bytes flags, const Cursor& in, const std::string& what) {
  const auto wrong = std::find_if(flags.begin(), flags.end(), [](std::byte b) { return b > std::byte{1}; });
  QKV_CHECK(wrong == flags.end(), in.name(), ": ", what, " must hold 0 or 1 but holds ", std::to_integer<int>(*wrong),
            Hint(kDamaged));
}

void walk_array(Cursor& in, const std::string& what, int depth);

void walk_value(Cursor& in, GgufKind kind, const std::string& what, int depth) {
  if (kind == GgufKind::array) {
    walk_array(in, what, depth);
  } else if (kind == GgufKind::text) {
    in.take_text(UINT64_MAX, what);
  } else {
    const Bytes value = in.take(least_bytes(kind), what);
    if (kind == GgufKind::boolean) check_flags(value, in, what);
  }
}

void walk_array(Cursor& in, const std::string& what, int depth) {
  QKV_CHECK(depth < kDeepestArray, in.name(), ": ", what, " holds arrays nested more than ", kDeepestArray, " deep",
            Hint(kDamaged));
  const GgufKind kind = take_kind(in, what);
  const auto count = in.take<uint64_t>(what);
  QKV_CHECK(count <= in.left() / least_bytes(kind), in.name(), ": ", what, " is said to hold ", count, " of kind ",
            name_of(kind), " but only ", in.left(), " bytes are left", Hint(kDamaged));
  if (kind == GgufKind::text || kind == GgufKind::array) {
    for (uint64_t i = 0; i < count; ++i) walk_value(in, kind, what, depth + 1);
  } else {
    const Bytes values = in.take(count * least_bytes(kind), what);
    if (kind == GgufKind::boolean) check_flags(values, in, what);
  }
}

Gguf::Field take_field(Cursor& in, uint64_t number) {
  const std::string which = "key " + std::to_string(number);
  const std::string_view key = in.take_text(gguf::kLongestKey, which);
  QKV_CHECK(!key.empty(), in.name(), ": ", which, " is empty", Hint(kDamaged));
  const std::string what = "key " + printable(key);
  const GgufKind kind = take_kind(in, what);
  const uint64_t start = in.at();
  walk_value(in, kind, what, 0);
  return {key, kind, in.since(start)};
}

// A tensor's description; its bytes are found when the data's start is known.
struct Described {
  std::string_view name;
  StoredTensor entry;
  uint64_t offset, bytes;
};

Described take_tensor(Cursor& in, uint64_t number) {
  const std::string which = "tensor " + std::to_string(number);
  Described out;
  out.name = in.take_text(gguf::kLongestName, which);
  QKV_CHECK(!out.name.empty(), in.name(), ": ", which, " has no name", Hint(kDamaged));
  const std::string what = "tensor " + printable(out.name), where = in.name() + ": " + what;
  out.entry.name = out.name;

  const auto dims = in.take<uint32_t>(what);
  QKV_CHECK(dims <= gguf::kMostDims, where, " has ", dims, " dimensions but may have at most ", gguf::kMostDims,
            Hint(kDamaged));
  const std::string what_dim = where + ": a dimension";
  for (uint32_t i = 0; i < dims; ++i) {
    out.entry.shape.push_back(narrow<int64_t>(in.take<uint64_t>(what), what_dim));
  }
  std::reverse(out.entry.shape.begin(), out.entry.shape.end());

  const auto id = in.take<uint32_t>(what);
  const StoredType* const type = find_gguf_type(id);
  QKV_CHECK(type != nullptr, where, " is of type ", id, ", which this reader does not know",
            Hint("it knows ", known_gguf_types(), "; others can be made into one of these with llama-quantize"));
  out.entry.dtype = type->name;
  out.bytes = stored_bytes(*type, out.entry.shape, where);
  out.offset = in.take<uint64_t>(what);
  return out;
}

struct Counts {
  uint64_t tensors, keys;
};

// The smallest key takes 14 bytes and the smallest tensor 25, so absurd counts are seen before anything is kept.
Counts take_head(Cursor& in) {
  const Bytes magic = in.take(gguf::kMagic.size(), "the magic 'GGUF'");
  const std::string_view start(reinterpret_cast<const char*>(magic.data()), magic.size());
  QKV_CHECK(start == gguf::kMagic, in.name(), ": must start with 'GGUF' but starts with ", printable(start),
            Hint("this is probably not a GGUF file"));
  const auto version = in.take<uint32_t>("the version");
  QKV_CHECK((version & 0xFFFFU) != 0 || version == 0, in.name(), ": is big endian, which this reader does not know",
            Hint("convert it with llama.cpp's gguf_convert_endian.py"));
  QKV_CHECK(version >= gguf::kOldestVersion && version <= gguf::kVersion, in.name(), ": is GGUF version ", version,
            " but this reader knows ", gguf::kOldestVersion, " and ", gguf::kVersion,
            Hint("convert the model again with a current llama.cpp"));

  Counts out{};
  out.tensors = in.take<uint64_t>("the number of tensors");
  out.keys = in.take<uint64_t>("the number of keys");
  QKV_CHECK(out.tensors <= gguf::kMostTensors && out.tensors <= in.left() / 25, in.name(), ": is said to hold ",
            out.tensors, " tensors but may hold at most ", std::min(gguf::kMostTensors, in.left() / 25), " in its ",
            in.left(), " bytes", Hint(kDamaged));
  QKV_CHECK(out.keys <= gguf::kMostKeys && out.keys <= in.left() / 14, in.name(), ": is said to hold ", out.keys,
            " keys but may hold at most ", std::min(gguf::kMostKeys, in.left() / 14), " in its ", in.left(), " bytes",
            Hint(kDamaged));
  return out;
}

uint64_t read_alignment(const Gguf::Field& field, const std::string& name) {
  QKV_CHECK(field.kind == GgufKind::u32, name, ": ", gguf::kAlignmentKey, " must be u32 but is ", name_of(field.kind),
            Hint(kDamaged));
  const auto alignment = load<uint32_t>(field.value);
  QKV_CHECK(std::has_single_bit(alignment) && alignment >= gguf::kLeastAlignment && alignment <= gguf::kMostAlignment,
            name, ": ", gguf::kAlignmentKey, " is ", alignment, " but must be a power of two from ",
            gguf::kLeastAlignment, " to ", gguf::kMostAlignment, Hint(kDamaged));
  return alignment;
}

// Finds each tensor's bytes: back to back in the order of the descriptions, and nothing behind them.
void place(std::vector<Described>& tensors, Bytes file, uint64_t head, uint64_t alignment, const std::string& name) {
  const std::string what = name + ": the end of the tensors";
  const CheckedU64 start = align_up(CheckedU64(head, what), alignment);
  CheckedU64 end(0, what);
  for (Described& t : tensors) {
    QKV_CHECK(t.offset == end.value(), name, ": tensor ", printable(t.name), " begins at byte ", t.offset,
              " of the data but the one before it ends at ", end.value(), Hint(kDamaged));
    const CheckedU64 last = start + t.offset + t.bytes;
    QKV_CHECK(last.value() <= file.size(), name, ": tensor ", printable(t.name), ", ", t.entry.dtype, " ",
              shape_text(t.entry.shape), ", ends at byte ", last.value(), " but the file has ", file.size(),
              Hint(kDamaged));
    t.entry.bytes = file.subspan(last.value() - t.bytes, t.bytes);
    end = align_up(end + t.bytes, alignment);
  }
  const uint64_t most = (start + end).value();
  QKV_CHECK(file.size() <= most, name, ": the tensors end at byte ", most, " but the file has ", file.size(),
            Hint("bytes after the last tensor belong to nothing; the file is damaged or hides something"));
}

template <class Wide>
Wide widened(GgufKind kind, Bytes at) {
  switch (kind) {
    case GgufKind::u8:
      return static_cast<Wide>(load<uint8_t>(at));
    case GgufKind::i8:
      return static_cast<Wide>(load<int8_t>(at));
    case GgufKind::u16:
      return static_cast<Wide>(load<uint16_t>(at));
    case GgufKind::i16:
      return static_cast<Wide>(load<int16_t>(at));
    case GgufKind::u32:
      return static_cast<Wide>(load<uint32_t>(at));
    case GgufKind::i32:
      return static_cast<Wide>(load<int32_t>(at));
    case GgufKind::i64:
      return static_cast<Wide>(load<int64_t>(at));
    default:
      QKV_ASSERT(false, "a ", name_of(kind), " is no integer of at most 64 bits with a sign");
  }
  return {};
}

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
  if (kind == GgufKind::u64) return narrow<int64_t>(load<uint64_t>(at), what);
  return widened<int64_t>(kind, at);
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

[[noreturn]] void fail_kind(const std::string& name, const Gguf::Field& field, const char* wanted) {
  QKV_FAIL(name, ": key ", printable(field.key), " must be ", wanted, " but is ", kind_text(field),
           Hint("the file was written for another program, or is damaged"));
}

}  // namespace

const char* name_of(GgufKind kind) {
  return kKinds[static_cast<size_t>(kind)].name;
}

Gguf Gguf::open(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  Gguf out = parse(file->bytes(), file->name());
  out.file_ = std::move(file);
  return out;
}

Gguf Gguf::parse(Bytes file, std::string name) {
  Gguf out;
  Cursor in(file, name);
  const Counts counts = take_head(in);
  for (uint64_t i = 0; i < counts.keys; ++i) {
    out.fields_.push_back(take_field(in, i));
    const Field& field = out.fields_.back();
    QKV_CHECK(out.fields_by_key_.emplace(field.key, i).second, name, ": key ", printable(field.key), " appears twice",
              Hint(kDamaged));
    if (field.key == gguf::kAlignmentKey) out.alignment_ = read_alignment(field, name);
  }
  std::vector<Described> tensors;
  for (uint64_t i = 0; i < counts.tensors; ++i) {
    tensors.push_back(take_tensor(in, i));
    QKV_CHECK(out.entries_by_name_.emplace(tensors.back().name, i).second, name, ": tensor ",
              printable(tensors.back().name), " appears twice", Hint(kDamaged));
  }
  if (!tensors.empty() || in.left() > 0) place(tensors, file, in.at(), out.alignment_, name);
  for (Described& t : tensors) out.entries_.push_back(std::move(t.entry));
  out.name_ = std::move(name);
  return out;
}

const StoredTensor* Gguf::find(std::string_view name) const {
  const auto found = entries_by_name_.find(name);
  return found != entries_by_name_.end() ? &entries_[found->second] : nullptr;
}

const StoredTensor& Gguf::at(std::string_view name) const {
  const StoredTensor* const found = find(name);
  if (found != nullptr) return *found;
  std::vector<std::string_view> known;
  for (const StoredTensor& entry : entries_) known.push_back(entry.name);
  fail_no_such_tensor(name_, name, std::move(known));
}

void Gguf::release(const StoredTensor& entry) const {
  if (file_) file_->release(entry.bytes);
}

const Gguf::Field& Gguf::field(std::string_view key) const {
  const auto found = fields_by_key_.find(key);
  if (found != fields_by_key_.end()) return fields_[found->second];
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
  std::vector<std::string_view> out;
  out.reserve(array.count);
  Cursor in(array.values, name_);
  for (uint64_t i = 0; i < array.count; ++i) out.push_back(in.take_text(UINT64_MAX, key));
  return out;
}

std::vector<int64_t> Gguf::integers(std::string_view key) const {
  const Field& f = field(key);
  if (f.kind != GgufKind::array || !is_integer(array_of(f).kind)) fail_kind(name_, f, "an array of integers");
  const Array array = array_of(f);
  const std::string what = name_ + ": key " + printable(key);
  const uint64_t size = least_bytes(array.kind);
  std::vector<int64_t> out;
  out.reserve(array.count);
  for (uint64_t i = 0; i < array.count; ++i) {
    out.push_back(integer_at(array.kind, array.values.subspan(i * size, size), what));
  }
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
