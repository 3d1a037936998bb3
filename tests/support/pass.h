// Passes for tests: an engine with an arena and a tape, values to and from any device, comparisons.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine.h"
#include "kernels/tables.h"

namespace qkv::test {

using Numbers = std::vector<double>;

// One engine, arena and context. Params made here live as long as it does.
class Pass {
 public:
  struct Options {
    const Kernels* kernels = &kernels::ref::table();
    Precision precision = Precision::f32();
    int threads = 1;
    Device* device = nullptr;
    bool tape = false;
    Arena::Mode mode = Arena::Mode::real;
  };

  explicit Pass(const Options& options);
  Pass() : Pass(Options{}) {}

  Engine engine;
  Arena arena, gradients;
  Tape tape;
  Context cx;

  // A constant input; under a tape a leaf whose gradient is kept. Default dtype: precision.exact.
  Tensor input(std::span<const double> values, const Shape& shape, std::optional<DType> dtype = {});
  Tensor indices(std::span<const int32_t> values, const Shape& shape);
  Param& param(const std::string& name, std::span<const double> values, const Shape& shape);
  Tensor zeros(const Shape& shape, DType dtype);

 private:
  std::deque<Param> params_;
};

Numbers to_host(const Tensor& t);                                 // any plain dtype, any strides, any device
void to_device(const Tensor& t, std::span<const double> values);  // contiguous t; rounds to its dtype
double round_to(DType dtype, double value);

// The CPU's best table, and a GPU's if there is one.
std::vector<const Kernels*> fastest_tables();

// Numbers that depend only on (seed, index): normal with this deviation.
Numbers normals(uint64_t seed, int64_t count, double deviation = 1);

// sum (a - b)^2 / sum b^2 of what we got against what is right; 0 / 0 is 0.
double nmse(std::span<const double> got, std::span<const double> right);
// max |a - b| in units of the standard deviation of what is right.
double worst_in_deviations(std::span<const double> got, std::span<const double> right);

// ../shared/<name> beside the repository, or the committed tests/golden/<name>.
std::optional<std::filesystem::path> shared(const std::string& name);
std::filesystem::path golden(const std::string& name);

}  // namespace qkv::test

// Skips with a clear line where the shared material is absent: a user's machine has none of it.
#define QKV_NEED_SHARED(variable, name)                                                         \
  const auto variable##_or_none = ::qkv::test::shared(name);                                    \
  if (!variable##_or_none) GTEST_SKIP() << "../shared/" << (name) << " is not on this machine"; \
  const std::filesystem::path variable = *variable##_or_none
