#include "support/safetensors_numbers.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "io/safetensors.h"

namespace qkv::test {
namespace {

template <class T, class Decode>
Numbers decode_all(std::span<const std::byte> bytes, Decode decode) {
  Numbers out;
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    out.push_back(decode(value));
  }
  return out;
}

Golden decode(const StoredTensor& e) {
  const auto number = [](auto v) { return static_cast<double>(v); };
  const auto half = [](auto v) { return static_cast<double>(to_float(v)); };
  const Shape shape{std::span<const int64_t>(e.shape)};
  if (e.dtype == "F64") return {shape, DType::f64, decode_all<double>(e.bytes, number)};
  if (e.dtype == "F32") return {shape, DType::f32, decode_all<float>(e.bytes, number)};
  if (e.dtype == "BF16") return {shape, DType::bf16, decode_all<Bf16>(e.bytes, half)};
  if (e.dtype == "F16") return {shape, DType::f16, decode_all<F16>(e.bytes, half)};
  if (e.dtype == "I64") return {shape, DType::i64, decode_all<int64_t>(e.bytes, number)};
  if (e.dtype == "I32") return {shape, DType::i32, decode_all<int32_t>(e.bytes, number)};
  if (e.dtype == "BOOL" || e.dtype == "I8") return {shape, DType::i8, decode_all<int8_t>(e.bytes, number)};
  QKV_FAIL("golden '", e.name, "' has dtype ", e.dtype, " which the tests do not read");
}

}  // namespace

GoldenFile GoldenFile::read(const std::filesystem::path& path) {
  const Safetensors file = Safetensors::open(path);
  GoldenFile golden;
  for (const StoredTensor& entry : file.entries()) golden.tensors[entry.name] = decode(entry);
  golden.metadata = file.metadata();
  return golden;
}

const Golden& GoldenFile::at(const std::string& name) const {
  const auto it = tensors.find(name);
  QKV_CHECK(it != tensors.end(), "golden: no tensor '", name, "'");
  return it->second;
}

std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden(""))) {
    if (std::filesystem::exists(entry.path() / "config.json")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> golden_writers() {
  std::vector<std::string> names = golden_models();
  std::erase_if(
      names, [](const std::string& name) { return !std::filesystem::exists(golden(name) / "generation_config.json"); });
  return names;
}

}  // namespace qkv::test
