#include "inspect/report/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/tokenizer/files/base64.h"

namespace qkv {

Json brief(double value) {
  if (value == -INFINITY) return nullptr;
  if (!std::isfinite(value)) return value;  // report_text() refuses it
  const std::string text = fmt::format("{:.5g}", value);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

Json brief(std::span<const float> values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(brief(static_cast<double>(value)));
  return list;
}

char map_byte(double weight) {
  return static_cast<char>(std::lround(255 * std::sqrt(std::clamp(weight, 0.0, 1.0))));
}

Json thumb_json(std::span<const double> cells, const PooledShape& shape) {
  std::string bytes;
  for (const double cell : cells) bytes += map_byte(cell);
  return {{"rows", shape.rows}, {"columns", shape.columns}, {"pooled", shape.pooled}, {"data", encode_base64(bytes)}};
}

}  // namespace qkv
