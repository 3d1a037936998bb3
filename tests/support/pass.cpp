#include "support/pass.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"

namespace qkv::test {

Pass::Pass(const Options& options)
    : engine(*options.kernels, {.threads = options.threads, .device = options.device}),
      arena(engine.device(), 0, options.mode),
      gradients(engine.device(), 0, options.mode),
      tape(gradients),
      cx(engine.context(arena, options.precision)) {
  if (options.tape) cx.tape = &tape;
}

Tensor Pass::input(std::span<const double> values, const Shape& shape, std::optional<DType> dtype) {
  const Tensor t = cx.constant(shape, dtype.value_or(cx.precision.exact));
  to_device(t, values);
  return cx.tape != nullptr ? cx.tape->input(t) : t;
}

Tensor Pass::indices(std::span<const int32_t> values, const Shape& shape) {
  return cx.upload(values).view(shape);
}

Param& Pass::param(const std::string& name, std::span<const double> values, const Shape& shape) {
  Param& p = params_.emplace_back(name, engine.device(), Format(cx.precision.exact), shape);
  to_device(p.master(), values);
  return p;
}

Tensor Pass::zeros(const Shape& shape, DType dtype) {
  const Tensor t = cx.constant(shape, dtype);
  to_device(t, Numbers(static_cast<size_t>(shape.count()), 0.0));
  return t;
}

namespace {

template <class T>
T encode(double value) {
  if constexpr (std::is_same_v<T, Bf16>)
    return to_bf16(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, F16>)
    return to_f16(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <class T>
double decode(T value) {
  if constexpr (std::is_same_v<T, Bf16> || std::is_same_v<T, F16>)
    return static_cast<double>(to_float(value));
  else
    return static_cast<double>(value);
}

// Calls f with a value of the C++ type behind a dtype.
template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(Bf16{});
    case DType::f16:
      return f(F16{});
    case DType::i8:
      return f(int8_t{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
  }
  QKV_FAIL("unknown dtype");
}

}  // namespace

Numbers to_host(const Tensor& t) {
  return with_type(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto size = static_cast<int64_t>(sizeof(T));
    Numbers out;
    if (t.count() == 0) return out;
    // All bytes from the first element to the last at once: a download may cost a GPU's round trip.
    int64_t last = 0;
    for (int64_t i = 0; i < t.count(); ++i) last = std::max(last, t.element_offset(i));
    std::vector<T> bytes(static_cast<size_t>(last + 1));
    t.device().download(bytes.data(), t.data(), (last + 1) * size);
    for (int64_t i = 0; i < t.count(); ++i) out.push_back(decode(bytes[static_cast<size_t>(t.element_offset(i))]));
    return out;
  });
}

void to_device(const Tensor& t, std::span<const double> values) {
  QKV_CHECK(static_cast<int64_t>(values.size()) == t.count() && t.contiguous(), "to_device: ", values.size(),
            " numbers do not fill ", t);
  if (values.empty() || reinterpret_cast<uintptr_t>(t.data()) == 0) return;
  with_type(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> host;
    for (const double v : values) host.push_back(encode<T>(v));
    t.device().upload(t.data(), host.data(), static_cast<int64_t>(host.size() * sizeof(T)));
    return 0;
  });
}

double round_to(DType dtype, double value) {
  return with_type(dtype, [&](auto zero) { return decode(encode<decltype(zero)>(value)); });
}

std::vector<const Kernels*> fastest_tables() {
  std::vector<const Kernels*> tables{&kernels::best_table()};
  if (kernels::cuda::available()) tables.push_back(&kernels::cuda::table());
  return tables;
}

Numbers normals(uint64_t seed, int64_t count, double deviation) {
  const auto key = fold(RngKey{.seed = seed});
  Numbers out;
  for (int64_t i = 0; i < count; ++i) out.push_back(deviation * normal(key, static_cast<uint64_t>(i), 0));
  return out;
}

double nmse(std::span<const double> got, std::span<const double> right) {
  QKV_CHECK(got.size() == right.size(), "nmse: ", got.size(), " numbers against ", right.size());
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == right[i]) {  // also equal infinities
      power += std::isfinite(right[i]) ? right[i] * right[i] : 0;
      continue;
    }
    error += (got[i] - right[i]) * (got[i] - right[i]);
    power += right[i] * right[i];
  }
  if (error == 0) return 0;
  return error / power;
}

double worst_in_deviations(std::span<const double> got, std::span<const double> right) {
  QKV_CHECK(got.size() == right.size(), "worst: ", got.size(), " numbers against ", right.size());
  double mean = 0, variance = 0, worst = 0;
  const auto n = static_cast<double>(right.size());
  for (const double r : right) mean += r / n;
  for (const double r : right) variance += (r - mean) * (r - mean) / n;
  for (size_t i = 0; i < right.size(); ++i) worst = std::max(worst, std::abs(got[i] - right[i]));
  return worst == 0 ? 0 : worst / std::sqrt(variance);
}

std::optional<std::filesystem::path> shared(const std::string& name) {
  const auto path = std::filesystem::path(QKV_SOURCE_DIR).parent_path() / "shared" / name;
  if (std::filesystem::exists(path)) return path;
  return std::nullopt;
}

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(QKV_SOURCE_DIR) / "tests" / "golden" / name;
}

}  // namespace qkv::test
