#include "model/gguf/gguf_rope.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/printable.h"
#include "io/floats.h"
#include "io/stored_type.h"
#include "model/gguf/gguf_facts.h"

namespace qkv {

double as_written(float value) {
  std::array<char, 64> text{};
  const auto [end, wrote] = std::to_chars(text.data(), text.data() + text.size(), value);
  double out = static_cast<double>(value);
  if (wrote == std::errc()) std::from_chars(text.data(), end, out);
  return out;
}

// Wavelengths beyond original context / low_freq are stretched by the factor, those below original context / high_freq
// are not, with interpolation between.
std::vector<float> llama3_factors(const RopeSpec& rope) {
  const ops::RopeScaling& s = rope.scaling;
  std::vector<float> factors;
  for (int64_t i = 0; i < rope.width / 2; ++i) {
    const double turns = std::pow(rope.base, -2.0 * static_cast<double>(i) / static_cast<double>(rope.width));
    const double wavelength = 2 * std::numbers::pi / turns,
                 smooth = (s.original_context / wavelength - s.low_freq) / (s.high_freq - s.low_freq);
    const double part = std::clamp(smooth, 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - part) / s.factor + part)));
  }
  return factors;
}

std::optional<ops::RopeScaling> llama3_from_factors(std::span<const float> factors, const RopeSpec& rope,
                                                    double original) {
  const double most = as_written(*std::max_element(factors.begin(), factors.end()));
  std::vector<double> contexts;
  if (original > 0) contexts.push_back(original);
  for (double power = 16; power <= 1 << 20; power *= 2) contexts.push_back(power);
  // Converters compute in float: a few last bits may differ.
  constexpr float kSlack = 1e-5F;
  for (const double context : contexts) {
    RopeSpec tried = rope;
    tried.scaling = {.kind = ops::RopeScaling::Kind::llama3, .factor = most, .original_context = context};
    const std::vector<float> would = llama3_factors(tried);
    const bool same = std::equal(factors.begin(), factors.end(), would.begin(), would.end(),
                                 [](float a, float b) { return std::abs(a - b) <= kSlack * b; });
    if (same) return tried.scaling;
  }
  return std::nullopt;
}

namespace {

std::vector<float> factors_in(const GgufFacts& f, const std::string& name, int64_t pairs) {
  const StoredTensor* tensor = f.tensor(name);
  if (tensor == nullptr) return {};
  QKV_CHECK(tensor->shape == std::vector<int64_t>{pairs} && tensor->dtype == "F32", f.name(), ": tensor ", name, " is ",
            tensor->dtype, " ", shape_text(tensor->shape), " but must be F32 [", pairs, "]",
            Hint("one factor per pair of columns that turn"));
  std::vector<float> factors(static_cast<size_t>(pairs));
  decode_floats("F32", tensor->bytes, factors);
  for (const float factor : factors) {
    QKV_CHECK(std::isfinite(factor) && factor > 0, f.name(), ": tensor ", name, " holds ", factor,
              " but factors are positive", Hint("the file is damaged"));
  }
  return factors;
}

Json written(std::span<const float> factors) {
  Json list = Json::array();
  for (const float factor : factors) list.push_back(as_written(factor));
  return list;
}

void add_longrope(const GgufFacts& f, Json& rope, std::span<const float> short_factors,
                  std::span<const float> long_factors) {
  const auto longest = static_cast<double>(f.whole("context_length", 1));
  const double original = static_cast<double>(f.whole_or("rope.scaling.original_context_length", 0));
  QKV_CHECK(original > 1, f.name(), ": has rope factors but no key ", f.key("rope.scaling.original_context_length"),
            Hint("it says where the long factors begin"));
  rope["rope_type"] = "longrope";
  rope["short_factor"] = written(short_factors);
  rope["long_factor"] = written(long_factors);
  rope["original_max_position_embeddings"] = original;
  rope["factor"] = longest / original;
  const double formula = longest > original ? std::sqrt(1 + std::log(longest / original) / std::log(original)) : 1;
  const double said = f.number_or("rope.scaling.attn_factor", 1);
  if (std::abs(said - formula) > 1e-6 * formula) rope["attention_factor"] = said;
}

void add_freq_factors(const GgufFacts& f, Json& rope, std::span<const float> factors, int64_t width) {
  if (std::all_of(factors.begin(), factors.end(), [](float x) { return x == 1; })) return;
  const RopeSpec plain{.base = rope.at("rope_theta").get<double>(), .width = width};
  const auto original = static_cast<double>(f.whole_or("rope.scaling.original_context_length", 0));
  if (const auto s = llama3_from_factors(factors, plain, original)) {
    rope["rope_type"] = "llama3";
    rope["factor"] = s->factor;
    rope["low_freq_factor"] = s->low_freq;
    rope["high_freq_factor"] = s->high_freq;
    rope["original_max_position_embeddings"] = static_cast<int64_t>(s->original_context);
    return;
  }
  rope["rope_type"] = "longrope";
  rope["short_factor"] = rope["long_factor"] = written(factors);
  rope["factor"] = rope["attention_factor"] = 1;
  rope["original_max_position_embeddings"] = f.whole("context_length", 1);
}

}  // namespace

// rope_parameters of heads `width` wide.
Json gguf_rope_parameters(const GgufFacts& f, int64_t width) {
  const int64_t turned = f.has("rope.dimension_count") ? f.whole("rope.dimension_count", 1) : width;
  QKV_CHECK(turned <= width && turned % 2 == 0, f.name(), ": ", f.key("rope.dimension_count"), " is ", turned,
            " but heads are ", width, " wide", Hint("an even number of a head's columns turns"));
  QKV_CHECK(turned == width || f.arch() != "llama", f.name(), ": ", f.key("rope.dimension_count"), " is ", turned,
            " but heads are ", width, " wide, and a Llama turns them whole", Hint("the model is of another family"));
  Json rope{{"rope_theta", f.number_or("rope.freq_base", 10000)}, {"rope_type", "default"}};
  // Their configs have another part where they are silent.
  constexpr std::array<std::string_view, 6> kPartial{"glm4", "glm4moe", "gptneox", "nemotron", "phi2", "stablelm"};
  if (turned != width || std::find(kPartial.begin(), kPartial.end(), f.arch()) != kPartial.end()) {
    double part = static_cast<double>(turned) / static_cast<double>(width);
    if (static_cast<int64_t>(static_cast<double>(width) * part) != turned) part = std::nextafter(part, 2);
    rope["partial_rotary_factor"] = part;
  }
  const std::vector<float> longer = factors_in(f, "rope_factors_long.weight", turned / 2),
                           shorter = factors_in(f, "rope_factors_short.weight", turned / 2),
                           factors = factors_in(f, "rope_freqs.weight", turned / 2);
  QKV_CHECK(longer.empty() == shorter.empty(), f.name(), ": has only one of rope_factors_long and rope_factors_short",
            Hint("the file is damaged"));
  const std::string type = f.text_or("rope.scaling.type", f.has("rope.scale_linear") ? "linear" : "none");
  if (!longer.empty()) {
    add_longrope(f, rope, shorter, longer);
  } else if (type == "linear") {
    rope["rope_type"] = "linear";
    rope["factor"] = f.has("rope.scale_linear") ? f.number("rope.scale_linear") : f.number("rope.scaling.factor");
  } else if (type == "yarn") {
    rope["rope_type"] = "yarn";
    rope["factor"] = f.number("rope.scaling.factor");
    rope["original_max_position_embeddings"] = f.whole("rope.scaling.original_context_length", 1);
    for (const char* key : {"beta_fast", "beta_slow"}) {
      const std::string suffix = std::string("rope.scaling.yarn_") + key;
      if (f.has(suffix)) rope[key] = f.number(suffix);
    }
    if (f.has("rope.scaling.yarn_attn_factor")) rope["attention_factor"] = f.number("rope.scaling.yarn_attn_factor");
  } else {
    QKV_CHECK(type == "none", f.name(), ": key ", f.key("rope.scaling.type"), " is ", printable(type),
              ", which is not known", Hint("known are none, linear and yarn, and longrope with its two tensors"));
    if (!factors.empty()) add_freq_factors(f, rope, factors, turned);
  }
  return rope;
}

}  // namespace qkv
