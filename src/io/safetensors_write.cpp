#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "io/safetensors.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

constexpr uint64_t kLengthSize = 8;

struct Planned {
  const OutgoingTensor* tensor;
  int rank;
  uint64_t bytes;
};

std::vector<Planned> plan(std::span<const OutgoingTensor> tensors, const std::string& file) {
  std::vector<Planned> out;
  for (const OutgoingTensor& tensor : tensors) {
    const uint64_t bytes = safetensors_bytes(tensor, file);
    out.push_back({&tensor, find_stored_type(tensor.dtype)->safetensors_rank, bytes});
  }
  std::sort(out.begin(), out.end(), [](const Planned& a, const Planned& b) {
    return std::pair(-a.rank, std::string_view(a.tensor->name)) < std::pair(-b.rank, std::string_view(b.tensor->name));
  });
  return out;
}

// An Error about invalid UTF-8 that says where.
std::string json_text(const Json& value, const std::string& what) {
  try {
    return value.dump();
  } catch (const Error&) {
    QKV_FAIL(what, ": is not UTF-8, which JSON needs", Hint("rename it"));
  }
}

std::string header_text(std::span<const Planned> planned, const std::map<std::string, std::string>& metadata,
                        const std::string& file, uint64_t alignment) {
  std::string out = "{";
  if (!metadata.empty()) out += "\"__metadata__\":" + json_text(Json(metadata), file + ": __metadata__");
  uint64_t end = 0;
  for (const Planned& p : planned) {
    const std::string what = file + ": tensor " + printable(p.tensor->name);
    const uint64_t begin = std::exchange(end, end + p.bytes);
    out += out.size() > 1 ? "," : "";
    out += json_text(Json(p.tensor->name), what) + ":{\"dtype\":\"" + p.tensor->dtype +
           "\",\"shape\":" + Json(p.tensor->shape).dump() + ",\"data_offsets\":" + Json{begin, end}.dump() + "}";
  }
  out += '}';
  out.append((alignment - (kLengthSize + out.size()) % alignment) % alignment, ' ');
  return out;
}

void check_no_name_twice(std::span<const Planned> planned, const std::string& file) {
  std::vector<std::string_view> names;
  for (const Planned& p : planned) names.push_back(p.tensor->name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  QKV_CHECK(twice == names.end(), file, ": tensor ", printable(*twice), " is to be written twice",
            Hint("write tied weights once"));
}

}  // namespace

uint64_t safetensors_bytes(const OutgoingTensor& tensor, const std::string& file) {
  const std::string what = file + ": tensor " + printable(tensor.name);
  const StoredType* const type = find_stored_type(tensor.dtype);
  QKV_CHECK(type != nullptr && type->safetensors_rank >= 0, what, ": safetensors has no dtype ",
            printable(tensor.dtype), Hint("it has ", known_safetensors_types()));
  QKV_CHECK(tensor.name != "__metadata__", what, ": this name is taken by the format itself", Hint("rename it"));
  return stored_bytes(*type, tensor.shape, what);
}

void write_safetensors(const std::filesystem::path& path, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata, uint64_t alignment) {
  const std::string file = path.string();
  const std::vector<Planned> planned = plan(tensors, file);
  check_no_name_twice(planned, file);
  const std::string header = header_text(planned, metadata, file, alignment);

  AtomicFile out(path);
  std::array<std::byte, kLengthSize> length{};
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));
  out.write(length);
  out.write(std::as_bytes(std::span(header)));
  for (const Planned& p : planned) write_tensor(out, *p.tensor, p.bytes);
  out.commit();
}

}  // namespace qkv
