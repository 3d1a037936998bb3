#include "io/stored_type.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace qkv {
namespace {

constexpr StoredType plain(std::string_view name, uint64_t bits, int safetensors_rank, int gguf_id) {
  return {name, 1, bits, Block::none, safetensors_rank, gguf_id};
}

template <class B>
constexpr StoredType blocks(std::string_view name, Block block, int gguf_id) {
  return {name, B::kElements, 8 * sizeof(B), block, -1, gguf_id};
}

constexpr std::array kTypes{
    plain("F64", 64, 17, 28),
    plain("F32", 32, 15, 0),
    plain("F16", 16, 11, 1),
    plain("BF16", 16, 12, 30),
    plain("F8_E4M3", 8, 7, -1),
    plain("F8_E5M2", 8, 6, -1),
    plain("F8_E8M0", 8, 8, -1),
    plain("F6_E2M3", 6, 2, -1),
    plain("F6_E3M2", 6, 3, -1),
    plain("F4", 4, 1, -1),
    plain("I64", 64, 18, 27),
    plain("I32", 32, 13, 26),
    plain("I16", 16, 9, 25),
    plain("I8", 8, 5, 24),
    plain("U64", 64, 19, -1),
    plain("U32", 32, 14, -1),
    plain("U16", 16, 10, -1),
    plain("U8", 8, 4, -1),
    plain("BOOL", 8, 0, -1),
    plain("C64", 64, 16, -1),
    blocks<BlockQ8_0>("Q8_0", Block::q8_0, 8),
    blocks<BlockQ4_0>("Q4_0", Block::q4_0, 2),
    blocks<BlockQ4_1>("Q4_1", Block::q4_1, 3),
    blocks<BlockQ5_0>("Q5_0", Block::q5_0, 6),
    blocks<BlockQ5_1>("Q5_1", Block::q5_1, 7),
    blocks<BlockQ2K>("Q2_K", Block::q2_k, 10),
    blocks<BlockQ3K>("Q3_K", Block::q3_k, 11),
    blocks<BlockQ4K>("Q4_K", Block::q4_k, 12),
    blocks<BlockQ5K>("Q5_K", Block::q5_k, 13),
    blocks<BlockQ6K>("Q6_K", Block::q6_k, 14),
    blocks<BlockMxfp4>("MXFP4", Block::mxfp4, 39),
    StoredType{"IQ4_NL", 32, 8 * 18, Block::none, -1, 20},  // io/iq4.h
    StoredType{"IQ4_XS", 256, 8 * 136, Block::none, -1, 23},
};

// Types of GGUF that are not read, for error texts.
constexpr std::pair<uint32_t, std::string_view> kOtherGguf[] = {
    {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {21, "IQ3_S"}, {22, "IQ2_S"}, {29, "IQ1_M"},   {34, "TQ1_0"},  {35, "TQ2_0"}};

template <class Wanted>
std::string names_of(const Wanted& wanted) {
  std::string out;
  for (const StoredType& type : kTypes) {
    if (wanted(type)) out.append(out.empty() ? "" : " ").append(type.name);
  }
  return out;
}

}  // namespace

const StoredType* find_stored_type(std::string_view name) {
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return t.name == name; });
  return found != kTypes.end() ? found : nullptr;
}

const StoredType* find_gguf_type(uint32_t id) {
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) {
    return t.gguf_id >= 0 && static_cast<uint32_t>(t.gguf_id) == id;
  });
  return found != kTypes.end() ? found : nullptr;
}

std::string gguf_type_name(uint32_t id) {
  if (const StoredType* const type = find_gguf_type(id)) return std::string(type->name);
  for (const auto& [other, name] : kOtherGguf) {
    if (other == id) return std::string(name);
  }
  return "number " + std::to_string(id);
}

std::string known_safetensors_types() {
  return names_of([](const StoredType& t) { return t.safetensors_rank >= 0; });
}

std::string known_gguf_types() {
  return names_of([](const StoredType& t) { return t.gguf_id >= 0; });
}

uint64_t stored_bytes(const StoredType& type, std::span<const int64_t> shape, const std::string& what) {
  // Zeros are left out, so that any later product of the other dimensions fits too.
  CheckedU64 product(1, what);
  for (const int64_t dim : shape) product = product * (dim == 0 ? 1 : dim);
  const uint64_t elements = std::ranges::find(shape, 0) == shape.end() ? product.value() : 0;
  const uint64_t row = shape.empty() ? 1 : static_cast<uint64_t>(shape.back());
  QKV_CHECK(row % type.elements == 0, what, ": ", type.name, " ", shape_text(shape), " has rows of ", row,
            " elements but the type holds blocks of ", type.elements, Hint("the file is damaged"));
  const CheckedU64 bits = CheckedU64(elements / type.elements, what) * type.bits;
  QKV_CHECK(bits.value() % 8 == 0, what, ": ", type.name, " ", shape_text(shape), " has ", bits.value(),
            " bits, which is not a whole number of bytes", Hint("the file is damaged"));
  return bits.value() / 8;
}

std::string shape_text(std::span<const int64_t> shape) {
  constexpr size_t kShown = 8;
  std::ostringstream out;
  out << '[';
  for (size_t i = 0; i < std::min(shape.size(), kShown); ++i) out << (i > 0 ? ", " : "") << shape[i];
  out << (shape.size() > kShown ? ", ...]" : "]");
  return std::move(out).str();
}

}  // namespace qkv
