#include "model/checkpoint/stored_weight.h"

#include "base/error.h"
#include "base/printable.h"
#include "io/floats.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

std::vector<float> floats_of(const StoredTensor& tensor) {
  const StoredType* type = find_stored_type(tensor.dtype);
  QKV_ASSERT(type != nullptr, "tensor '", tensor.name, "' has an unknown type ", tensor.dtype);
  int64_t count = 1;
  for (const int64_t d : tensor.shape) count *= d;
  std::vector<float> values(static_cast<size_t>(count));
  decode_floats(tensor.dtype, tensor.bytes, values);
  return values;
}

void fail_shape(const TensorFile& file, const StoredTensor& tensor, const std::vector<int64_t>& wanted) {
  QKV_FAIL(file.name(), ": tensor ", printable(tensor.name), " is ", shape_text(tensor.shape), " but the config says ",
           shape_text(wanted), Hint("the config belongs to another model, or the file mixes two"));
}

}  // namespace

StoredWeight find_stored_weight(const TensorFile& file, const std::string& name) {
  if (const StoredTensor* tensor = file.find(name)) {
    const bool eight = tensor->dtype.starts_with("F8_");
    return {.tensor = tensor, .scales = eight ? file.find(name + "_scale_inv") : nullptr};
  }
  const StoredTensor *blocks = file.find(name + "_blocks"), *scales = file.find(name + "_scales");
  if (blocks != nullptr && scales != nullptr) return {.tensor = blocks, .scales = scales, .pairs = true};
  return {};
}

std::optional<DType> StoredWeight::plain() const {
  if (tensor->dtype == "F32") return DType::f32;
  if (tensor->dtype == "BF16") return DType::bf16;
  if (tensor->dtype == "F16") return DType::f16;
  return std::nullopt;
}

Block StoredWeight::block() const {
  const StoredType* type = find_stored_type(tensor->dtype);
  return type != nullptr ? type->block : Block::none;
}

std::vector<float> StoredWeight::floats() const {
  if (scales == nullptr) return floats_of(*tensor);
  if (pairs) {
    std::vector<float> values(tensor->bytes.size() * 2);
    decode_mxfp4_pairs(tensor->bytes, scales->bytes, values);
    return values;
  }
  const int64_t rows = tensor->shape[0], columns = tensor->shape[1];
  std::vector<float> values(static_cast<size_t>(rows * columns));
  const std::vector<float> scale = floats_of(*scales);
  decode_tiled_float8(
      {.dtype = tensor->dtype, .weight = tensor->bytes, .scale = scale, .rows = rows, .columns = columns}, values);
  return values;
}

void check_stored_weight(const TensorFile& file, const NamedTensor& named, const StoredWeight& s) {
  if (!named.panels.plain()) {
    QKV_CHECK(s.tensor->dtype == "U8", file.name(), ": tensor ", printable(s.tensor->name), " is ", s.tensor->dtype,
              " but the config says ", named.panels, ", which is stored as U8",
              Hint("the config belongs to another model; make the folder again with  qkv quantize"));
    if (s.tensor->shape != named.shape) fail_shape(file, *s.tensor, named.shape);
    return;
  }
  if (s.pairs) {
    // [.., O, K] in blocks of 32 along K, 16 bytes each
    std::vector<int64_t> wanted = named.shape;
    std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
    QKV_CHECK(wanted.back() % 32 == 0, file.name(), ": tensor ", printable(s.tensor->name),
              " holds blocks of 32 but a row has ", wanted.back(), " numbers",
              Hint("the config belongs to another model"));
    wanted.back() /= 32;
    if (s.scales->shape != wanted) fail_shape(file, *s.scales, wanted);
    wanted.push_back(16);
    if (s.tensor->shape != wanted) fail_shape(file, *s.tensor, wanted);
    for (const StoredTensor* t : {s.tensor, s.scales}) {
      QKV_CHECK(t->dtype == "U8", file.name(), ": tensor ", printable(t->name), " is ", t->dtype,
                " but 4-bit weights are U8", Hint("the file is damaged or of another format"));
    }
    return;
  }
  QKV_CHECK(decodes_to_floats(s.tensor->dtype), file.name(), ": tensor ", printable(s.tensor->name), " is ",
            s.tensor->dtype, " but weights are floats: F32, F16, BF16, 8-bit floats or blocks",
            Hint("this is no weight, or the file is of a format that is not known"));
  if (s.tensor->shape != named.shape) fail_shape(file, *s.tensor, named.shape);
  if (s.scales != nullptr) {
    const auto tiles = [](int64_t n) { return (n + 127) / 128; };
    QKV_CHECK(named.shape.size() == 2 && named.layout == NamedTensor::Layout::plain, file.name(), ": tensor ",
              printable(s.tensor->name), " is in 8-bit floats with scales, which only plain matrices can be",
              Hint("the file is of a format that is not known"));
    const std::vector<int64_t> wanted{tiles(named.shape[0]), tiles(named.shape[1])};
    if (s.scales->shape != wanted) fail_shape(file, *s.scales, wanted);
  }
}

}  // namespace qkv
