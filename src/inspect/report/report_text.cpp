#include "inspect/report/report_text.h"

#include <cmath>

#include "base/error.h"

namespace qkv {
namespace {

template <class AnyJson>
void check_numbers(const AnyJson& part, const std::string& where) {
  if (part.is_structured()) {
    for (const auto& [key, value] : part.items()) check_numbers(value, where + "/" + key);
  } else if (part.is_number_float()) {
    const double value = part.template get<double>();
    QKV_CHECK(std::isfinite(value), "the report says ", value, " at ", where,
              Hint("the model's weights or what was computed with them are not finite numbers"));
  }
}

template <class AnyJson>
std::string finite_text(const AnyJson& report, int indent) {
  check_numbers(report, "");
  return json_text(report, indent) + "\n";
}

}  // namespace

std::string report_text(const Json& report, int indent) {
  return finite_text(report, indent);
}

std::string report_text(const nlohmann::ordered_json& report, int indent) {
  return finite_text(report, indent);
}

}  // namespace qkv
