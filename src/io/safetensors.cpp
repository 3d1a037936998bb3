#include "io/safetensors.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_members.h"
#include "base/json_reader.h"
#include "base/printable.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;
constexpr JsonLimits kSmall{.bytes = 64'000};  // a tensor's description; its tree takes many times its text
constexpr size_t kMostMetadata = 10'000;

// The JSON text without its padding, and the data after it.
std::pair<std::string_view, Bytes> split(Bytes file, const std::string& name) {
  QKV_CHECK(file.size() >= kLengthBytes, name, ": has ", file.size(), " bytes but a safetensors file starts with ",
            kLengthBytes, " that give the length of its header", Hint(kDamagedFile));
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  QKV_CHECK(length <= kLongestHeader, name, ": the header is said to have ", length, " bytes but may have at most ",
            kLongestHeader, Hint("this is probably not a safetensors file"));
  QKV_CHECK(length <= file.size() - kLengthBytes, name, ": the header is said to have ", length, " bytes but only ",
            file.size() - kLengthBytes, " follow", Hint(kDamagedFile));

  const Bytes header = file.subspan(kLengthBytes, length);
  std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  QKV_CHECK(text.starts_with('{'), name, ": the header must start with '{' but ",
            text.empty() ? "is empty" : "starts with " + printable(text.substr(0, 1)),
            Hint("this is probably not a safetensors file"));
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  QKV_CHECK(text.ends_with('}'), name, ": the header must end with '}' and spaces but ends with ",
            printable(text.substr(text.size() - 1)), Hint(kDamagedFile));
  return {text, file.subspan(kLengthBytes + length)};
}

// One field of a tensor's description, of the right kind.
const Json& field(const Json& info, const char* key, Json::value_t kind, const std::string& what) {
  const auto found = info.find(key);
  QKV_CHECK(found != info.end(), what, " has no ", key, Hint("every tensor has a dtype, a shape and data_offsets"));
  QKV_CHECK(found->type() == kind, what, ": ", key, " must be ", kind == Json::value_t::array ? "an array" : "a string",
            " but its type is ", found->type_name(), Hint(kDamagedFile));
  return *found;
}

uint64_t whole_number(const Json& value, const std::string& what, const char* key) {
  QKV_CHECK(value.is_number_unsigned(), what, ": ", key, " must hold whole numbers from 0 but holds ",
            value.is_number() ? value.dump() : value.type_name(), Hint(kDamagedFile));
  return value.get<uint64_t>();
}

const StoredType& type_of(const std::string& dtype, const std::string& what) {
  const StoredType* const type = find_stored_type(dtype);
  QKV_CHECK(type != nullptr && type->safetensors_rank >= 0, what, ": the dtype ", printable(dtype), " is not known",
            Hint("the known ones are ", known_safetensors_types()));
  return *type;
}

// Error texts start with `what`: the file and the tensor.
StoredTensor read_entry(const std::string& name, const Json& info, const std::string& what, Bytes data) {
  QKV_CHECK(info.is_object(), what, " must be described by an object but its type is ", info.type_name(),
            Hint(kDamagedFile));
  StoredTensor out;
  out.name = name;
  out.dtype = field(info, "dtype", Json::value_t::string, what).get_ref<const std::string&>();
  const std::string what_dim = what + ": a dimension";
  for (const Json& dim : field(info, "shape", Json::value_t::array, what)) {
    out.shape.push_back(narrow<int64_t>(whole_number(dim, what, "shape"), what_dim));
  }
  const Json& offsets = field(info, "data_offsets", Json::value_t::array, what);
  QKV_CHECK(offsets.size() == 2, what, ": data_offsets must hold 2 numbers, begin and end, but holds ", offsets.size(),
            Hint(kDamagedFile));
  const uint64_t begin = whole_number(offsets[0], what, "data_offsets");
  const uint64_t end = whole_number(offsets[1], what, "data_offsets");
  for (const auto& [key, value] : info.items()) {
    QKV_CHECK(key == "dtype" || key == "shape" || key == "data_offsets", what, " has a field ", printable(key),
              " that this reader does not know",
              Hint("every tensor has a dtype, a shape and data_offsets, and no more"));
  }

  QKV_CHECK(begin <= end, what, ": begins at byte ", begin, " but ends at ", end, Hint(kDamagedFile));
  QKV_CHECK(end <= data.size(), what, ": ends at byte ", end, " but the data has ", data.size(), Hint(kDamagedFile));
  const uint64_t needed = stored_bytes(type_of(out.dtype, what), out.shape, what);
  QKV_CHECK(end - begin == needed, what, ": ", out.dtype, " ", shape_text(out.shape), " needs ", needed,
            " bytes but data_offsets give it ", end - begin, Hint(kDamagedFile));
  out.bytes = data.subspan(begin, needed);
  return out;
}

// The tensors, in the order of their offsets, must cover the data without holes or overlap.
void check_cover(std::vector<StoredTensor>& entries, Bytes data, const std::string& name) {
  const auto span_of = [](const StoredTensor& e) { return std::pair(e.bytes.data(), e.bytes.size()); };
  std::sort(entries.begin(), entries.end(),
            [&](const StoredTensor& a, const StoredTensor& b) { return span_of(a) < span_of(b); });
  uint64_t end = 0;
  for (const StoredTensor& entry : entries) {
    const auto begin = static_cast<uint64_t>(entry.bytes.data() - data.data());
    QKV_CHECK(begin == end, name, ": tensor ", printable(entry.name), " begins at byte ", begin,
              " but the one before it ends at ", end, begin > end ? ": a hole" : ": they overlap", Hint(kDamagedFile));
    end = begin + entry.bytes.size();
  }
  QKV_CHECK(end == data.size(), name, ": the tensors end at byte ", end, " but the data has ", data.size(),
            Hint("bytes after the last tensor belong to nothing; the file is damaged or hides something"));
}

// A value that is not a string is parsed only for the error text, and only if it is short.
std::map<std::string, std::string> read_metadata(JsonText text, const std::string& name) {
  const std::string what = name + ": __metadata__";
  if (!text.text().starts_with('{')) {
    QKV_FAIL(what, " must be an object but its type is ", parse_json(text, what, kSmall).type_name(),
             Hint(kDamagedFile));
  }
  std::map<std::string, std::string> out;
  const auto take = [&](const std::string& key, JsonText value) {
    const bool is_text = value.text().starts_with('"');
    const Json parsed = parse_json(value, what + ": " + printable(key), is_text ? JsonLimits{} : kSmall);
    QKV_CHECK(parsed.is_string(), what, " maps names to text but the type of ", printable(key), " is ",
              parsed.type_name(), Hint("write the value as a string"));
    out.emplace(key, parsed.get_ref<const std::string&>());
  };
  scan_json_members(text, what, take, {.members = kMostMetadata});
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
  Safetensors out;
  JsonReader header(text, name + ": header", {.bytes = kLongestHeader});
  const JsonText members = header.skip();
  header.end();
  out.entries_.reserve(std::min(members.items(), JsonMemberLimits{}.members));
  const auto take = [&, data = data](const std::string& key, JsonText value) {
    if (key == "__metadata__") {
      out.metadata_ = read_metadata(value, name);
      return;
    }
    const std::string what = name + ": tensor " + printable(key);
    out.entries_.push_back(read_entry(key, parse_json(value, what, kSmall), what, data));
  };
  scan_json_members(text, name + ": header", take);
  check_cover(out.entries_, data, name);
  std::sort(out.entries_.begin(), out.entries_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  out.name_ = std::move(name);
  return out;
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  return find_by_name(entries_, name);
}

const StoredTensor& Safetensors::at(std::string_view name) const {
  const StoredTensor* const found = find(name);
  if (found == nullptr) fail_no_such_tensor(name_, name, entries_);
  return *found;
}

void Safetensors::release(const StoredTensor& entry) const {
  if (file_) file_->release(entry.bytes);
}

}  // namespace qkv
