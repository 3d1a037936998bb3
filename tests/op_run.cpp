#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "op_cases.h"

namespace qkv::test {
namespace {

uint64_t seed_of(const std::string& name) {
  uint64_t seed = 1469598103934665603ULL;  // FNV-1a
  for (const char c : name) seed = (seed ^ static_cast<uint64_t>(static_cast<unsigned char>(c))) * 1099511628211ULL;
  return seed;
}

bool has_rows(const OpInput& in) {
  return in.kind == OpInput::Kind::rows || in.kind == OpInput::Kind::ids;
}

Shape with_rows(int64_t rows, const Shape& one) {
  std::vector<int64_t> dims{rows};
  dims.insert(dims.end(), one.dims().begin(), one.dims().end());
  return Shape(std::span<const int64_t>(dims));
}

double value_of(const OpInput& in, std::array<uint32_t, 2> key, int64_t row, int64_t column, DType rounded_to) {
  const auto r = static_cast<uint64_t>(row), c = static_cast<uint64_t>(column);
  if (in.kind == OpInput::Kind::ids)
    return static_cast<double>(random_u32(key, r, c) % static_cast<uint32_t>(in.limit));
  double x = in.mean + in.deviation * normal(key, r, c);
  if (std::abs(x) < in.away_from_zero) x += std::copysign(in.away_from_zero, x);
  return in.exact ? round_to(rounded_to == DType::bf16 ? DType::f32 : rounded_to, x) : round_to(rounded_to, x);
}

}  // namespace

OpValues op_values(const OpCase& op, int64_t rows, int64_t first_row, DType rounded_to) {
  OpValues values;
  for (const OpInput& in : op.inputs) {
    const auto key = fold(RngKey{.seed = seed_of(op.name + "/" + in.name)});
    Numbers& numbers = values[in.name];
    const int64_t count = has_rows(in) ? rows : 1, first = has_rows(in) ? first_row : 0;
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t c = 0; c < in.shape.count(); ++c) numbers.push_back(value_of(in, key, first + r, c, rounded_to));
    }
  }
  return values;
}

Numbers output_seed(size_t output, int64_t first_element, size_t count, DType rounded_to) {
  const auto key = fold(RngKey{.seed = 7919 + output});
  Numbers seed;
  for (size_t i = 0; i < count; ++i) {
    seed.push_back(round_to(rounded_to, normal(key, static_cast<uint64_t>(first_element) + i, 0)));
  }
  return seed;
}

OpRunner::OpRunner(const OpCase& op, const OpValues& values, const OpRun& how)
    : op_(op),
      how_(how),
      pass_({.kernels = how.kernels, .precision = how.precision, .threads = how.threads, .tape = how.backward}),
      io_(pass_, how.rows, how.first_row) {
  pass_.cx.training = true;
  pass_.cx.rng = {.seed = 11, .step = 3, .first_row = static_cast<uint64_t>(how.first_row)};
  for (const OpInput& in : op.inputs) {
    const Numbers& numbers = values.at(in.name);
    const DType dtype = in.exact ? how.precision.exact : how.precision.compute;
    switch (in.kind) {
      case OpInput::Kind::rows:
        io_.tensors[in.name] = pass_.input(numbers, with_rows(how.rows, in.shape), dtype);
        break;
      case OpInput::Kind::fixed:
        io_.tensors[in.name] = pass_.input(numbers, in.shape, dtype);
        break;
      case OpInput::Kind::weight:
        io_.weights[in.name] = &pass_.param(in.name, numbers, in.shape);
        break;
      case OpInput::Kind::ids: {
        std::vector<int32_t> ids;
        for (const double v : numbers) ids.push_back(static_cast<int32_t>(v));
        io_.tensors[in.name] = pass_.indices(ids, with_rows(how.rows, in.shape));
      }
    }
  }
}

void OpRunner::seed(const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    const int64_t each = op_.row_wise && how_.rows > 0 ? y.count() / how_.rows : 0;
    const Tensor dy = pass_.cx.constant(y.shape(), y.dtype());
    to_device(dy, output_seed(i, how_.first_row * each, static_cast<size_t>(y.count()), y.dtype()));
    pass_.tape.seed(pass_.cx, y, dy);
  }
}

Numbers OpRunner::gradient(const OpInput& in) {
  const bool weight = in.kind == OpInput::Kind::weight;
  const Tensor g = weight ? io_.weights[in.name]->gradient() : pass_.tape.gradient(io_.tensors[in.name]);
  const Shape shape = weight ? io_.weights[in.name]->shape() : io_.tensors[in.name].shape();
  return g.defined() ? to_host(g) : Numbers(static_cast<size_t>(shape.count()), 0.0);
}

OpResult run_op(const OpCase& op, const OpValues& values, const OpRun& how) {
  OpRunner runner(op, values, how);
  const std::vector<Tensor> outputs = runner.forward();
  OpResult result;
  for (const Tensor& y : outputs) result.outputs.push_back(to_host(y));
  if (!how.backward) return result;
  runner.seed(outputs);
  runner.backward();
  for (const OpInput& in : op.inputs) {
    if (in.kind != OpInput::Kind::ids) result.gradients[in.name] = runner.gradient(in);
  }
  return result;
}

}  // namespace qkv::test
