// Reading the file: every count, length and offset is checked before it is used.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "io/gguf.h"
#include "io/gguf_layout.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

using Bytes = std::span<const std::byte>;
using gguf::least_bytes;
using gguf::load;
using gguf::name_in;

constexpr int kDeepestArray = 4;

// A cursor over the file. `what` names the value being read in error texts.
class Cursor {
 public:
  Cursor(Bytes bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }
  const std::string& name() const { return name_; }
  Bytes since(uint64_t start) const { return bytes_.subspan(start, at_ - start); }

  Bytes take(uint64_t count, std::string_view what) {
    QKV_CHECK(count <= left(), name_, ": ", what, " needs ", count, " bytes at byte ", at_, " but only ", left(),
              " are left", Hint(kDamagedFile));
    return bytes_.subspan(std::exchange(at_, at_ + count), count);
  }

  template <class T>
  T take(std::string_view what) {
    return load<T>(take(sizeof(T), what));
  }

  std::string_view take_text(uint64_t longest, std::string_view what) {
    const auto length = take<uint64_t>(what);
    QKV_CHECK(length <= longest, name_, ": ", what, " is said to have ", length, " bytes but may have at most ",
              longest, Hint(kDamagedFile));
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
  QKV_CHECK(id < gguf::kKindCount, in.name(), ": ", what, " is of kind ", id, " but the last known kind is ",
            gguf::kKindCount - 1, Hint(kDamagedFile));
  return static_cast<GgufKind>(id);
}

void check_flags(Bytes flags, const Cursor& in, const std::string& what) {
  const auto wrong = std::find_if(flags.begin(), flags.end(), [](std::byte b) { return b > std::byte{1}; });
  QKV_CHECK(wrong == flags.end(), in.name(), ": ", what, " must hold 0 or 1 but holds ", std::to_integer<int>(*wrong),
            Hint(kDamagedFile));
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
            Hint(kDamagedFile));
  const GgufKind kind = take_kind(in, what);
  const auto count = in.take<uint64_t>(what);
  QKV_CHECK(count <= in.left() / least_bytes(kind), in.name(), ": ", what, " is said to hold ", count, " of kind ",
            name_of(kind), " but only ", in.left(), " bytes are left", Hint(kDamagedFile));
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
  QKV_CHECK(!key.empty(), in.name(), ": ", which, " is empty", Hint(kDamagedFile));
  const std::string what = "key " + printable(key);
  const GgufKind kind = take_kind(in, what);
  const uint64_t start = in.at();
  walk_value(in, kind, what, 0);
  return {key, kind, in.since(start)};
}

struct Described {
  StoredTensor entry;  // its bytes are set once the start of the data is known
  uint64_t offset, bytes;
};

Described take_tensor(Cursor& in, uint64_t number) {
  const std::string which = "tensor " + std::to_string(number);
  Described out;
  out.entry.name = in.take_text(gguf::kLongestName, which);
  QKV_CHECK(!out.entry.name.empty(), in.name(), ": ", which, " has no name", Hint(kDamagedFile));
  const std::string what = "tensor " + printable(out.entry.name), where = in.name() + ": " + what;

  const auto dims = in.take<uint32_t>(what);
  QKV_CHECK(dims <= gguf::kMostDims, where, " has ", dims, " dimensions but may have at most ", gguf::kMostDims,
            Hint(kDamagedFile));
  const std::string what_dim = where + ": a dimension";
  for (uint32_t i = 0; i < dims; ++i) {
    out.entry.shape.push_back(narrow<int64_t>(in.take<uint64_t>(what), what_dim));
  }
  std::reverse(out.entry.shape.begin(), out.entry.shape.end());

  const auto id = in.take<uint32_t>(what);
  const StoredType* const type = find_gguf_type(id);
  QKV_CHECK(type != nullptr, where, " is of type ", gguf_type_name(id), ", which this reader does not know",
            Hint("it knows ", known_gguf_types(), "; fetch the model in one of these, Q4_K for example"));
  out.entry.dtype = type->name;
  out.bytes = stored_bytes(*type, out.entry.shape, where);
  out.offset = in.take<uint64_t>(what);
  return out;
}

struct Counts {
  uint64_t tensors, keys;
};

// The smallest key takes 14 bytes and the smallest tensor 25, so impossible counts fail before memory is allocated.
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
            in.left(), " bytes", Hint(kDamagedFile));
  QKV_CHECK(out.keys <= gguf::kMostKeys && out.keys <= in.left() / 14, in.name(), ": is said to hold ", out.keys,
            " keys but may hold at most ", std::min(gguf::kMostKeys, in.left() / 14), " in its ", in.left(), " bytes",
            Hint(kDamagedFile));
  return out;
}

uint64_t read_alignment(const Gguf::Field& field, const std::string& name) {
  QKV_CHECK(field.kind == GgufKind::u32, name, ": ", gguf::kAlignmentKey, " must be u32 but is ", name_of(field.kind),
            Hint(kDamagedFile));
  const auto alignment = load<uint32_t>(field.value);
  QKV_CHECK(std::has_single_bit(alignment) && alignment >= gguf::kLeastAlignment && alignment <= gguf::kMostAlignment,
            name, ": ", gguf::kAlignmentKey, " is ", alignment, " but must be a power of two from ",
            gguf::kLeastAlignment, " to ", gguf::kMostAlignment, Hint(kDamagedFile));
  return alignment;
}

// Sets the bytes of each tensor: back to back in the order of the descriptions, and nothing after them.
void place(std::vector<Described>& tensors, Bytes file, uint64_t head, uint64_t alignment, const std::string& name) {
  const std::string what = name + ": the end of the tensors";
  const CheckedU64 start = align_up(CheckedU64(head, what), alignment);
  CheckedU64 end(0, what);
  for (Described& t : tensors) {
    QKV_CHECK(t.offset == end.value(), name, ": tensor ", printable(t.entry.name), " begins at byte ", t.offset,
              " of the data but the one before it ends at ", end.value(), Hint(kDamagedFile));
    const CheckedU64 last = start + t.offset + t.bytes;
    QKV_CHECK(last.value() <= file.size(), name, ": tensor ", printable(t.entry.name), ", ", t.entry.dtype, " ",
              shape_text(t.entry.shape), ", ends at byte ", last.value(), " but the file has ", file.size(),
              Hint(kDamagedFile));
    t.entry.bytes = file.subspan(last.value() - t.bytes, t.bytes);
    end = align_up(end + t.bytes, alignment);
  }
  const uint64_t most = (start + end).value();
  QKV_CHECK(file.size() <= most, name, ": the tensors end at byte ", most, " but the file has ", file.size(),
            Hint("bytes after the last tensor belong to nothing; the file is damaged or hides something"));
}

// Indices sorted by name; an Error for a duplicate.
template <class T>
std::vector<uint32_t> sorted_positions(const std::vector<T>& all, const std::string& name, const char* what) {
  std::vector<uint32_t> out(all.size());
  std::iota(out.begin(), out.end(), 0U);
  std::sort(out.begin(), out.end(), [&](uint32_t a, uint32_t b) { return name_in(all[a]) < name_in(all[b]); });
  const auto twice = std::adjacent_find(out.begin(), out.end(),
                                        [&](uint32_t a, uint32_t b) { return name_in(all[a]) == name_in(all[b]); });
  QKV_CHECK(twice == out.end(), name, ": ", what, " ", printable(name_in(all[*twice])), " appears twice",
            Hint(kDamagedFile));
  return out;
}

constexpr const char* kSplitCount = "split.count";
constexpr const char* kSplitNumber = "split.no";
constexpr const char* kSplitTensors = "split.tensors.count";

// The files of a split model, of which `path` is the first.
std::vector<std::filesystem::path> parts_of(const std::filesystem::path& path, const Gguf& first) {
  constexpr int64_t kMostParts = 99'999;
  const int64_t count = first.integer(kSplitCount);
  QKV_CHECK(count >= 1 && count <= kMostParts, first.name(), ": key ", kSplitCount, " is ", count,
            " but must lie in [1, ", kMostParts, "]", Hint(kDamagedFile));
  const auto ending = [&](int64_t number) { return fmt::format("-{:05}-of-{:05}.gguf", number, count); };
  const int64_t number = first.has(kSplitNumber) ? first.integer(kSplitNumber) : 0;
  const std::string name = path.filename().string(), own = ending(number + 1);
  QKV_CHECK(name.ends_with(own), first.name(), ": is part ", number + 1, " of a model in ", count,
            " files, so its name must end in ", own, Hint("give the parts the names they were fetched with"));
  const std::string stem = name.substr(0, name.size() - own.size());
  QKV_CHECK(number == 0, first.name(), ": is part ", number + 1, " of a model in ", count, " files",
            Hint("open the first, which has the rest opened with it: ", stem, ending(1)));
  std::vector<std::filesystem::path> parts;
  std::string missing;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(path.parent_path() / (stem + ending(i + 1)));
    std::error_code ignored;
    if (!std::filesystem::exists(parts.back(), ignored) && missing.size() < 500) {
      missing += (missing.empty() ? "" : ", ") + parts.back().filename().string();
    }
  }
  QKV_CHECK(missing.empty(), first.name(), ": is the first of ", count,
            " files of a model, and these are missing: ", missing, Hint("fetch them into the same folder"));
  return parts;
}

}  // namespace

// The parts of a split model are NAME-00001-of-00003.gguf and so on. The first has the metadata, each has its tensors.
Gguf Gguf::open(const std::filesystem::path& path) {
  Gguf out = open_one(path);
  if (!out.has(kSplitCount) || out.integer(kSplitCount) == 1) return out;
  const std::vector<std::filesystem::path> parts = parts_of(path, out);
  std::vector<StoredTensor>& all = out.entries_;
  for (size_t i = 1; i < parts.size(); ++i) {
    Gguf part = open_one(parts[i]);
    QKV_CHECK(part.has(kSplitNumber) && part.integer(kSplitNumber) == static_cast<int64_t>(i) &&
                  part.has(kSplitCount) && part.integer(kSplitCount) == out.integer(kSplitCount),
              part.name(), ": is not part ", i + 1, " of the ", parts.size(), " that ", out.name(), " names",
              Hint("the folder mixes two models; fetch it again"));
    all.insert(all.end(), std::move_iterator(part.entries_.begin()), std::move_iterator(part.entries_.end()));
    out.files_.push_back(part.files_.front());
  }
  if (out.has(kSplitTensors)) {
    QKV_CHECK(out.integer(kSplitTensors) == static_cast<int64_t>(all.size()), out.name(), ": says its parts hold ",
              out.integer(kSplitTensors), " tensors but they hold ", all.size(), Hint(kDamagedFile));
  }
  out.entries_by_name_ = sorted_positions(all, out.name_, "tensor");
  return out;
}

Gguf Gguf::open_one(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  Gguf out = parse(file->bytes(), file->name());
  out.files_.push_back(std::move(file));
  return out;
}

Gguf Gguf::parse(Bytes file, std::string name) {
  Gguf out;
  Cursor in(file, name);
  const Counts counts = take_head(in);
  out.fields_.reserve(counts.keys);
  for (uint64_t i = 0; i < counts.keys; ++i) {
    out.fields_.push_back(take_field(in, i));
    if (out.fields_.back().key == gguf::kAlignmentKey) out.alignment_ = read_alignment(out.fields_.back(), name);
  }
  out.fields_by_key_ = sorted_positions(out.fields_, name, "key");

  std::vector<Described> tensors;
  tensors.reserve(counts.tensors);
  for (uint64_t i = 0; i < counts.tensors; ++i) tensors.push_back(take_tensor(in, i));
  if (!tensors.empty() || in.left() > 0) place(tensors, file, in.at(), out.alignment_, name);
  out.entries_.reserve(tensors.size());
  for (Described& t : tensors) out.entries_.push_back(std::move(t.entry));
  out.entries_by_name_ = sorted_positions(out.entries_, name, "tensor");
  out.name_ = std::move(name);
  return out;
}

}  // namespace qkv
