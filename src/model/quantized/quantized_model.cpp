#include "model/quantized/quantized_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "core/host_values.h"
#include "core/panels.h"
#include "model/quantized/quantized_names.h"
#include "model/quantized/quantized_search.h"
#include "ops/ops.h"

namespace qkv {
namespace {

constexpr int64_t kQuantizedPiece = 1 << 22;  // numbers quantised at a time

// Sums of squared error and of squares of a weight.
struct Errors {
  double lost = 0, all = 0;
  double relative() const { return all > 0 ? std::sqrt(lost / all) : 0; }
};

class Quantizer {
 public:
  Quantizer(const Engine& engine, const Param& weight, Format to) : engine_(engine), weight_(weight), to_(to) {}

  // Quantises some rows of a matrix at a time: panels are independent.
  Errors give(ByteSink sink) const {
    const Shape& shape = weight_.shape();
    const int64_t rows = shape[-2], width = shape[-1], matrices = shape.count() / (rows * width);
    const int64_t some = std::max<int64_t>(kQuantizedPiece / width / kPanelRows, 1) * kPanelRows;
    const Tensor all = weight_.master().view({matrices * rows, width});
    Errors errors;
    for (int64_t m = 0; m < matrices; ++m) {
      for (int64_t first = 0; first < rows; first += some) {
        piece(all.slice(0, m * rows + first, std::min(some, rows - first)), sink, errors);
      }
    }
    weight_.release_master();
    return errors;
  }

 private:
  void piece(const Tensor& x, ByteSink sink, Errors& errors) const {
    Arena arena(engine_.device());
    Context cx = engine_.context(arena, Precision::f32());
    Param panels(weight_.name(), engine_.device(), to_, x.shape());
    ops::quantize(cx, panels, x);
    const std::vector<float> was = floats(cx, ops::cast(cx, x, DType::f32));
    if (to_.block == Block::q4) search_scales(engine_.exec(), panels.master(), was);
    std::vector<std::byte> host(static_cast<size_t>(to_.bytes_for(x.shape())));
    engine_.device().download(host.data(), panels.master().data(), static_cast<int64_t>(host.size()));
    sink(host);
    const std::vector<float> is = floats(cx, ops::dequantize(cx, panels, DType::f32));
    for (size_t i = 0; i < was.size(); ++i) {
      const double a = static_cast<double>(was[i]), b = static_cast<double>(is[i]);
      errors.lost += (a - b) * (a - b);
      errors.all += a * a;
    }
  }
  static std::vector<float> floats(Context& cx, const Tensor& t) {
    std::vector<float> host(static_cast<size_t>(t.count()));
    cx.exec.device->download(host.data(), t.data(), t.count() * size_of(DType::f32));
    return host;
  }

  const Engine& engine_;
  const Param& weight_;
  Format to_;
};

OutgoingTensor as_it_is(const Param& weight) {
  OutgoingTensor tensor{.name = weight.name(), .dtype = stored_name(weight.format().dtype), .shape = {}, .give = {}};
  for (const int64_t size : weight.shape().dims()) tensor.shape.push_back(size);
  tensor.give = [&weight](ByteSink sink) {
    const Tensor master = weight.master();
    const std::vector<float> values = host_floats(master);
    const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    QKV_CHECK(bad == values.end(), "the weight '", weight.name(), "' holds ", *bad, " as number ", bad - values.begin(),
              Hint("the model is broken: make it again, or download it again"));
    std::vector<std::byte> host(static_cast<size_t>(weight.format().bytes_for(weight.shape())));
    master.device().download(host.data(), master.data(), static_cast<int64_t>(host.size()));
    sink(host);
    weight.release_master();
  };
  return tensor;
}

OutgoingTensor padding(int64_t bytes) {
  return {.name = kPaddingTensor, .dtype = "U8", .shape = {bytes}, .give = [bytes](ByteSink sink) {
            sink(std::vector<std::byte>(static_cast<size_t>(bytes)));
          }};
}

int64_t bytes_in(const TensorFile& file) {
  int64_t bytes = 0;
  for (const StoredTensor& entry : file.entries()) bytes += static_cast<int64_t>(entry.bytes.size());
  return bytes;
}

std::string without_layer(const WeightSpec& weight) {
  const std::string layer = "layers." + std::to_string(weight.place.layer) + ".";
  const size_t at = weight.in_layer ? weight.name.find(layer) : std::string::npos;
  return at == std::string::npos ? weight.name : weight.name.substr(0, at) + weight.name.substr(at + layer.size());
}

QuantizeReport::Kind& kind_of(QuantizeReport& report, Part part, Format format) {
  for (QuantizeReport::Kind& kind : report.kinds) {
    if (kind.part == part && kind.format == format) return kind;
  }
  return report.kinds.emplace_back(QuantizeReport::Kind{.part = part, .format = format});
}

}  // namespace

std::optional<Format> quantized_format(const WeightSpec& weight, Format to) {
  if (!read_by_products(weight)) return std::nullopt;
  const bool table = weight.part == Part::embedding;
  if (table && !weight.name.ends_with("embed")) return std::nullopt;  // positions and types are small
  const Format format = table || weight.part == Part::head ? Format(Block::q8, to.group) : to;
  return holds_rows(format, weight.shape[-1]) ? std::optional(format) : std::nullopt;
}

QuantizeReport quantize_model(const Checkpoint& source, const std::filesystem::path& folder, const Engine& engine,
                              const QuantizeOptions& options) {
  QKV_CHECK(options.to.panels(), "a model cannot be quantised to ", options.to, Hint("q8 and q4 are possible"));
  QKV_CHECK(!is_quantized(source.config), source.file->name(), ": is quantised already",
            Hint("quantise the model it was made from: what was lost does not come back"));
  QKV_ASSERT(&engine.device() == &cpu_device(), "quantize_model on ", engine.device().name());
  const Weights weights = source.weights(engine.device());
  QuantizeReport report{.bytes_before = bytes_in(*source.file)};
  std::map<std::string, Format> formats;
  std::vector<OutgoingTensor> tensors;
  int64_t plain_bytes = 0;
  std::map<std::string, int> odd;  // weights that stay plain, with the number of layers
  for (const WeightSpec& weight : weight_list(source.spec)) {
    const Param& param = weights.at(weight.name);
    report.numbers += weight.shape.count();
    const std::optional<Format> format = quantized_format(weight, options.to);
    if (!format) {
      plain_bytes += param.format().bytes_for(weight.shape);
      tensors.push_back(as_it_is(param));
      if (read_by_products(weight) && weight.part != Part::embedding) {
        odd[fmt::format("{}: rows of {} are not whole groups of {}", without_layer(weight), weight.shape[-1],
                        options.to.group > 0 ? options.to.group : 32)] += 1;
      }
      continue;
    }
    formats[weight.name] = *format;
    const int64_t bytes = format->bytes_for(weight.shape);
    report.bytes_after += bytes;
    tensors.push_back({.name = weight.name,
                       .dtype = "U8",
                       .shape = {bytes},
                       .give = [&report, &engine, &param, part = weight.part, to = *format, bytes](ByteSink sink) {
                         const double error = Quantizer(engine, param, to).give(sink).relative();
                         QuantizeReport::Kind& kind = kind_of(report, part, to);
                         kind.weights += 1;
                         kind.numbers += param.shape().count();
                         kind.bytes += bytes;
                         kind.worst = std::max(kind.worst, error);
                         kind.mean += (error - kind.mean) / static_cast<double>(kind.weights);
                       }});
  }
  QKV_CHECK(!formats.empty(), source.file->name(), ": no matrix of this model can be ", options.to,
            Hint("rows must be whole groups and a multiple of 32; choose a smaller --group"));
  for (const auto& [what, count] : odd) {
    report.notes.push_back((count > 1 ? std::to_string(count) + " times " : "") + what + ", so they stay as they are");
  }
  report.bytes_after += plain_bytes;
  if (const int64_t over = plain_bytes % kPanelLine; over > 0) tensors.push_back(padding(kPanelLine - over));
  Json config = source.config;
  config[kQuantizationKey] = quantization_config(formats);
  write_model_folder(folder, {.config = std::move(config),
                              .tensors = std::move(tensors),
                              .copied = options.copied,
                              .progress = options.progress,
                              .cache_aligned = true});
  std::ranges::sort(report.kinds, {}, [](const QuantizeReport::Kind& kind) { return kind.part; });
  return report;
}

}  // namespace qkv
