// What ops say to invalid arguments: REFUSES(Suite, {name, call, parts of the message}...), as many as there are.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <limits>

#include "base/expect_error.h"
#include "ops/ops.h"
#include "ops/optim.h"
#include "support/guarded_device.h"
#include "support/pass.h"

namespace qkv::test {
namespace errors_test {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr auto kNanF = std::numeric_limits<float>::quiet_NaN();
inline constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// A pass and things to give to ops.
struct Bench {
  Pass pass;
  Context& cx = pass.cx;

  Tensor floats(const Shape& shape, DType dtype = DType::f32) {
    return pass.input(normals(1, shape.count()), shape, dtype);
  }
  Tensor bytes(const Shape& shape) { return pass.zeros(shape, DType::i8); }
  Tensor ids(const Shape& shape, int32_t value = 0) {
    return pass.indices(std::vector<int32_t>(static_cast<size_t>(shape.count()), value), shape);
  }
  Tensor list(const std::vector<int32_t>& values) { return cx.upload(values); }
  ops::RowGroups groups(const std::vector<int32_t>& sizes) { return ops::RowGroups::of_sizes(cx, sizes); }
  Tensor columns(const Shape& shape) { return floats(shape).transposed(-1, -2); }  // the last axis is not contiguous
  Tensor elsewhere(const Shape& shape, DType dtype = DType::f32) {
    return stores_.emplace_back(far_, dtype, shape.count()), Tensor(stores_.back(), shape);
  }
  Param& weight(const Shape& shape) { return pass.param("w", normals(2, shape.count()), shape); }
  Param& weight_of(Format format, const Shape& shape) { return params_.emplace_back("w", cpu_device(), format, shape); }
  Param& far_weight(const Shape& shape) { return params_.emplace_back("w", far_, DType::f32, shape); }
  Param& trained(const Shape& shape, double gradient = 1) {
    Param& w = weight(shape);
    to_device(w.use_gradient(DType::f32).tensor, Numbers(static_cast<size_t>(shape.count()), gradient));
    return w;
  }
  ops::AdamState adam(const Shape& shape) {
    return {.m = pass.zeros(shape, DType::f32), .v = pass.zeros(shape, DType::f32)};
  }
  void tape() { cx.tape = &pass.tape; }

  // 2 rows with 2 heads of 4 on 2 keys with 2 heads.
  Rows rows() { return Rows::batch(cx, 1, 2); }
  Rows paged() { return Rows::make(cx, {{.rows = 2, .keys = 2}}, 2, Rows::kPaged); }
  Tensor q() { return floats({2, 2, 4}); }
  void attend(const ops::AttentionOptions& options) { ops::attention(cx, q(), q(), q(), rows(), options); }
  ops::Dispatch plan() { return ops::plan_dispatch(cx, ids({3, 2}), 4); }

 private:
  GuardedDevice far_;
  std::deque<Storage> stores_;
  std::deque<Param> params_;
};

// Plain pointers: hundreds of rows of strings and std::functions take minutes to compile under the sanitizers.
struct Mistake {
  const char* name;
  void (*call)(Bench&);
  const char* parts[6];  // of the message
  friend void PrintTo(const Mistake& one, std::ostream* out) { *out << one.name; }
};

class Refuses : public ::testing::TestWithParam<Mistake> {};

inline std::string name_of_case(const ::testing::TestParamInfo<Mistake>& one) {
  return one.param.name;
}

#define REFUSES(suite, ...) \
  INSTANTIATE_TEST_SUITE_P(suite, Refuses, ::testing::ValuesIn(std::vector<Mistake>{__VA_ARGS__}), name_of_case)

using B = Bench;

}  // namespace errors_test
}  // namespace qkv::test
