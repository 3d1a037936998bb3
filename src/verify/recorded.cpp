#include "verify/recorded.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "io/floats.h"
#include "io/stored_type.h"

namespace qkv {

std::vector<float> recorded_floats(const StoredTensor& tensor) {
  int64_t count = 1;
  for (const int64_t d : tensor.shape) count *= d;
  QKV_CHECK(decodes_to_floats(tensor.dtype), "recorded tensor '", tensor.name, "' is ", tensor.dtype,
            " but must be floats", Hint("the recording is of another format"));
  std::vector<float> values(static_cast<size_t>(count));
  decode_floats(tensor.dtype, tensor.bytes, values);
  return values;
}

std::vector<double> recorded_doubles(const StoredTensor& tensor) {
  if (tensor.dtype != "F64") {
    const std::vector<float> values = recorded_floats(tensor);
    return {values.begin(), values.end()};
  }
  std::vector<double> values(tensor.bytes.size() / sizeof(double));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(double));
  return values;
}

std::vector<int32_t> recorded_ids(const StoredTensor& tensor) {
  const bool wide = tensor.dtype == "I64";
  QKV_CHECK(wide || tensor.dtype == "I32", "recorded tensor '", tensor.name, "' is ", tensor.dtype,
            " but token ids are I64 or I32", Hint("the recording is of another format"));
  const size_t size = wide ? 8 : 4;
  std::vector<int32_t> ids(tensor.bytes.size() / size);
  for (size_t i = 0; i < ids.size(); ++i) {
    int64_t id = 0;
    if (wide) {
      std::memcpy(&id, tensor.bytes.data() + i * size, size);
    } else {
      int32_t narrow = 0;
      std::memcpy(&narrow, tensor.bytes.data() + i * size, size);
      id = narrow;
    }
    QKV_CHECK(id >= 0 && id <= INT32_MAX, "recorded tensor '", tensor.name, "' holds ", id,
              " but a token id is 0 or more", Hint("the recording is damaged"));
    ids[i] = static_cast<int32_t>(id);
  }
  return ids;
}

std::span<const int32_t> RecordedBatch::row(int64_t b) const {
  return std::span(ids).subspan(static_cast<size_t>(b * length), static_cast<size_t>(lengths[static_cast<size_t>(b)]));
}

RecordedBatch recorded_batch(const Safetensors& io, const std::string& name) {
  const StoredTensor& tensor = io.at(name);
  QKV_CHECK(tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0, io.name(), ": '", name, "' is ",
            shape_text(tensor.shape), " but must be [B, T] with at least one token",
            Hint("the recording is of another format"));
  RecordedBatch batch{.batch = tensor.shape[0], .length = tensor.shape[1], .ids = recorded_ids(tensor)};
  batch.ignore_padding();
  const StoredTensor* mask = name == "input_ids" ? io.find("attention_mask") : nullptr;
  if (mask == nullptr) return batch;
  QKV_CHECK(mask->shape == tensor.shape, io.name(), ": 'attention_mask' is ", shape_text(mask->shape),
            " but 'input_ids' is ", shape_text(tensor.shape), Hint("the recording is damaged"));
  const std::vector<int32_t> kept = recorded_ids(*mask);
  for (int64_t b = 0; b < batch.batch; ++b) {
    const auto row = std::span(kept).subspan(static_cast<size_t>(b * batch.length), static_cast<size_t>(batch.length));
    const auto ones = std::count(row.begin(), row.end(), 1);
    QKV_CHECK(std::all_of(row.begin(), row.begin() + ones, [](int32_t k) { return k == 1; }), io.name(),
              ": 'attention_mask' of row ", b, " has holes", Hint("only padding at the end is known"));
    batch.lengths[static_cast<size_t>(b)] = static_cast<int32_t>(ones);
  }
  return batch;
}

bool is_recorded_text(const StoredTensor& tensor) {
  return tensor.name.starts_with("generate_");
}

Distance distance(std::span<const float> got, std::span<const float> right) {
  QKV_ASSERT(got.size() == right.size(), "comparing ", got.size(), " numbers with ", right.size());
  double wrong = 0, power = 0, sum = 0, worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const auto a = static_cast<double>(got[i]), b = static_cast<double>(right[i]);
    wrong += (a - b) * (a - b);
    power += b * b;
    sum += b;
    worst = std::isnan(a) != std::isnan(b) ? INFINITY : std::max(worst, std::abs(a - b));
  }
  const auto n = static_cast<double>(std::max<size_t>(got.size(), 1));
  const double deviation = std::sqrt(std::max(power / n - (sum / n) * (sum / n), 0.0));
  const auto ratio = [](double a, double b) { return a == 0 ? 0 : b == 0 ? INFINITY : a / b; };
  return {.nmse = ratio(wrong, power), .worst = ratio(worst, deviation)};
}

}  // namespace qkv
