#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"

namespace qkv {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;
constexpr const char* kDamaged = "the file is damaged or cut short; fetch or write it again";

struct Dtype {
  std::string_view name;
  uint64_t bits;
};

constexpr std::array kDtypes{
    Dtype{"F64", 64},    Dtype{"F32", 32},    Dtype{"F16", 16},    Dtype{"BF16", 16},   Dtype{"F8_E4M3", 8},
    Dtype{"F8_E5M2", 8}, Dtype{"F8_E8M0", 8}, Dtype{"F6_E2M3", 6}, Dtype{"F6_E3M2", 6}, Dtype{"F4", 4},
    Dtype{"I64", 64},    Dtype{"I32", 32},    Dtype{"I16", 16},    Dtype{"I8", 8},      Dtype{"U64", 64},
    Dtype{"U32", 32},    Dtype{"U16", 16},    Dtype{"U8", 8},      Dtype{"BOOL", 8},    Dtype{"C64", 64},
};

// An entry and where its bytes stand in the data. All its error texts start with `what`: the file and the tensor.
struct Placed {
  Safetensors::Entry entry;
  uint64_t begin;
  uint64_t end;
};

std::string known_dtypes() {
  std::string out;
  for (const Dtype& dtype : kDtypes) out.append(out.empty() ? "" : " ").append(dtype.name);
  return out;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  constexpr size_t kShown = 8;
  std::ostringstream out;
  out << '[';
  for (size_t i = 0; i < std::min(shape.size(), kShown); ++i) out << (i > 0 ? ", " : "") << shape[i];
  out << (shape.size() > kShown ? ", ...]" : "]");
  return std::move(out).str();
}

// The JSON text without its padding, and the data behind it.
std::pair<std::string_view, Bytes> split(Bytes file, const std::string& name) {
  QKV_CHECK(file.size() >= kLengthBytes, name, ": has ", file.size(), " bytes but a safetensors file starts with ",
            kLengthBytes, " that give the length of its header", Hint(kDamaged));
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  QKV_CHECK(length <= kLongestHeader, name, ": the header is said to have ", length, " bytes but may have at most ",
            kLongestHeader, Hint("this is probably not a safetensors file"));
  QKV_CHECK(length <= file.size() - kLengthBytes, name, ": the header is said to have ", length, " bytes but only ",
            file.size() - kLengthBytes, " follow", Hint(kDamaged));

  const Bytes header = file.subspan(kLengthBytes, length);
  std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  QKV_CHECK(text.starts_with('{'), name, ": the header must start with '{' but ",
            text.empty() ? "is empty" : "starts with " + printable(text.substr(0, 1)),
            Hint("this is probably not a safetensors file"));
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  QKV_CHECK(text.ends_with('}'), name, ": the header must end with '}' and spaces but ends with ",
            printable(text.substr(text.size() - 1)), Hint(kDamaged));
  return {text, file.subspan(kLengthBytes + length)};
}

// One field of a tensor's description, of the right kind.
const Json& field(const Json& info, const char* key, Json::value_t kind, const std::string& what) {
  const auto found = info.find(key);
  QKV_CHECK(found != info.end(), what, " has no ", key, Hint("every tensor has a dtype, a shape and data_offsets"));
  QKV_CHECK(found->type() == kind, what, ": ", key, " must be ", kind == Json::value_t::array ? "an array" : "a string",
            " but its type is ", found->type_name(), Hint(kDamaged));
  return *found;
}

uint64_t whole_number(const Json& value, const std::string& what, const char* key) {
  QKV_CHECK(value.is_number_unsigned(), what, ": ", key, " must hold whole numbers from 0 but holds ",
            value.is_number() ? value.dump() : value.type_name(), Hint(kDamaged));
  return value.get<uint64_t>();
}

uint64_t bits_of(const std::string& dtype, const std::string& what) {
  for (const Dtype& known : kDtypes) {
    if (known.name == dtype) return known.bits;
  }
  QKV_FAIL(what, ": the dtype ", printable(dtype), " is not known", Hint("the known ones are ", known_dtypes()));
}

uint64_t byte_count(const Safetensors::Entry& entry, const std::string& what) {
  CheckedU64 bits(1, what);
  for (const int64_t dim : entry.shape) bits = bits * dim;
  bits = bits * bits_of(entry.dtype, what);
  QKV_CHECK(bits.value() % 8 == 0, what, ": ", entry.dtype, " ", shape_text(entry.shape), " has ", bits.value(),
            " bits, which is not a whole number of bytes", Hint(kDamaged));
  return bits.value() / 8;
}

Placed read_entry(const std::string& name, const Json& info, const std::string& what, Bytes data) {
  QKV_CHECK(info.is_object(), what, " must be described by an object but its type is ", info.type_name(),
            Hint(kDamaged));
  Placed out;
  out.entry.name = name;
  out.entry.dtype = field(info, "dtype", Json::value_t::string, what).get_ref<const std::string&>();
  const std::string what_dim = what + ": a dimension";
  for (const Json& dim : field(info, "shape", Json::value_t::array, what)) {
    out.entry.shape.push_back(narrow<int64_t>(whole_number(dim, what, "shape"), what_dim));
  }
  const Json& offsets = field(info, "data_offsets", Json::value_t::array, what);
  QKV_CHECK(offsets.size() == 2, what, ": data_offsets must hold 2 numbers, begin and end, but holds ", offsets.size(),
            Hint(kDamaged));
  out.begin = whole_number(offsets[0], what, "data_offsets");
  out.end = whole_number(offsets[1], what, "data_offsets");
  for (const auto& [key, value] : info.items()) {
    QKV_CHECK(key == "dtype" || key == "shape" || key == "data_offsets", what, " has a field ", printable(key),
              " that this reader does not know",
              Hint("every tensor has a dtype, a shape and data_offsets, and no more"));
  }

  QKV_CHECK(out.begin <= out.end, what, ": begins at byte ", out.begin, " but ends at ", out.end, Hint(kDamaged));
  QKV_CHECK(out.end <= data.size(), what, ": ends at byte ", out.end, " but the data has ", data.size(),
            Hint(kDamaged));
  const uint64_t needed = byte_count(out.entry, what);
  QKV_CHECK(out.end - out.begin == needed, what, ": ", out.entry.dtype, " ", shape_text(out.entry.shape), " needs ",
            needed, " bytes but data_offsets give it ", out.end - out.begin, Hint(kDamaged));
  out.entry.bytes = data.subspan(out.begin, needed);
  return out;
}

// The tensors, in the order of their offsets, must cover the data without holes or overlap.
void check_cover(std::vector<Placed>& placed, uint64_t data_size, const std::string& name) {
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t end = 0;
  for (const Placed& p : placed) {
    QKV_CHECK(p.begin == end, name, ": tensor ", printable(p.entry.name), " begins at byte ", p.begin,
              " but the one before it ends at ", end, p.begin > end ? ": a hole" : ": they overlap", Hint(kDamaged));
    end = p.end;
  }
  QKV_CHECK(end == data_size, name, ": the tensors end at byte ", end, " but the data has ", data_size,
            Hint("bytes after the last tensor belong to nothing; the file is damaged or hides something"));
}

std::map<std::string, std::string> read_metadata(const Json& info, const std::string& name) {
  QKV_CHECK(info.is_object(), name, ": __metadata__ must be an object but its type is ", info.type_name(),
            Hint(kDamaged));
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : info.items()) {
    QKV_CHECK(value.is_string(), name, ": __metadata__ maps names to text but the type of ", printable(key), " is ",
              value.type_name(), Hint("write the value as a string"));
    out.emplace(key, value.get_ref<const std::string&>());
  }
  return out;
}

}  // namespace

Safetensors Safetensors::open(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  Safetensors out = parse(file->bytes(), file->name());
  out.file_ = std::move(file);
  return out;
}

Safetensors Safetensors::parse(Bytes file, std::string name) {
  const auto [text, data] = split(file, name);
  const Json header = parse_json(text, name + ": header", {.depth = 64, .bytes = kLongestHeader});

  Safetensors out;
  std::vector<Placed> placed;
  for (const auto& [key, info] : header.items()) {
    if (key == "__metadata__") {
      out.metadata_ = read_metadata(info, name);
    } else {
      placed.push_back(read_entry(key, info, name + ": tensor " + printable(key), data));
    }
  }
  check_cover(placed, data.size(), name);

  for (Placed& p : placed) out.entries_.push_back(std::move(p.entry));
  std::sort(out.entries_.begin(), out.entries_.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  out.name_ = std::move(name);
  return out;
}

const Safetensors::Entry* Safetensors::find(std::string_view name) const {
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), name,
                                      [](const Entry& entry, std::string_view wanted) { return entry.name < wanted; });
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

const Safetensors::Entry& Safetensors::at(std::string_view name) const {
  const Entry* found = find(name);
  if (found != nullptr) return *found;

  constexpr int kNamesShown = 3;
  std::vector<std::string_view> known;
  for (const Entry& entry : entries_) known.push_back(entry.name);
  std::string near;
  for (int i = 0; i < kNamesShown; ++i) {
    const std::string next = nearest_key(name, known);
    if (next.empty()) break;
    near += (near.empty() ? "did you mean " : " or ") + printable(next);
    std::erase(known, next);
  }
  if (near.empty() && !entries_.empty()) near = "its first tensor is " + printable(entries_.front().name);
  QKV_FAIL(name_, ": has no tensor ", printable(name), " among its ", entries_.size(),
           Hint(near.empty() ? "the file holds no tensors at all" : near));
}

}  // namespace qkv
