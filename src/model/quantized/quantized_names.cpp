#include "model/quantized/quantized_names.h"

#include <sstream>

#include "base/error.h"
#include "base/printable.h"
#include "core/panels.h"

namespace qkv {
namespace {

constexpr const char *kMethod = "quant_method", *kOurs = "qkv", *kWeights = "weights";
constexpr int32_t kGroups[] = {0, 32, 64, 128, 256};

}  // namespace

bool is_quantized(const Json& config) {
  const auto found = config.find(kQuantizationKey);
  return found != config.end() && found->is_object() && found->value(kMethod, Json()) == kOurs;
}

std::string format_text(Format format) {
  std::ostringstream out;
  out << format;
  return out.str();
}

Format parse_panels(const std::string& text, const std::string& what) {
  for (const Block block : {Block::q8, Block::q4}) {
    for (const int32_t group : kGroups) {
      const Format format(block, group);
      if (text == format_text(format)) return format;
    }
  }
  QKV_FAIL(what, ": ", printable(text), " is no format of quantised weights",
           Hint("q8 or q4, alone or with a group: q4/32, q4/64, q4/128, q4/256"));
}

bool holds_rows(Format panels, int64_t width) {
  const int64_t group = panels.group > 0 ? panels.group : 32;
  return width > 0 && width % 32 == 0 && width % group == 0 && width <= PanelLayout::kWidest;
}

Json quantization_config(const std::map<std::string, Format>& formats) {
  Json weights = Json::object();
  for (const auto& [name, format] : formats) weights[name] = format_text(format);
  return {{kMethod, kOurs}, {kWeights, std::move(weights)}};
}

TensorNames quantized_names(const ModelSpec& spec, const Json& config, const std::string& what) {
  const Json& ours = config.at(kQuantizationKey);
  QKV_CHECK(ours.contains(kWeights) && ours.at(kWeights).is_object(), what, ": ", kQuantizationKey, " has no object ",
            kWeights, Hint("it names each quantised weight and its format; make the folder again with  qkv quantize"));
  TensorNames names(spec);
  std::map<std::string, Format> formats;
  for (const auto& [weight, format] : ours.at(kWeights).items()) {
    const std::string of_weight = what + ": " + kQuantizationKey + " of " + printable(weight);
    QKV_CHECK(names.has(weight) && read_by_products(names.weight(weight)), of_weight,
              ": the model has no such weight that could be quantised", Hint("the config belongs to another model"));
    QKV_CHECK(format.is_string(), of_weight, ": must be text but is ", format.dump(), Hint("\"q4/64\" for instance"));
    formats[weight] = parse_panels(format.get<std::string>(), of_weight);
  }
  for (const WeightSpec& weight : weight_list(spec)) {
    NamedTensor tensor{.name = weight.name, .parts = {{weight.name}}};
    if (const auto found = formats.find(weight.name); found != formats.end()) {
      tensor.panels = found->second;
      const int64_t width = weight.shape[-1];
      QKV_CHECK(holds_rows(tensor.panels, width), what, ": ", kQuantizationKey, " of ", printable(weight.name),
                " says ", tensor.panels, " but its rows have ", width, " numbers",
                Hint("rows are whole groups and a multiple of 32; the config belongs to another model"));
      tensor.shape = {tensor.panels.bytes_for(weight.shape)};
    }
    names.tensor_as(std::move(tensor));
  }
  names.ignore(kPaddingTensor);
  names.check_complete();
  return names;
}

}  // namespace qkv
