// The op table: one row per op and variant, with everything a check needs to run it.
//
// Each row is checked: (a) every kernel table against `ref` in double, (b) the tape against finite differences in
// double, (c) its speed with `./qkv test --bench`, (d) row independence. See tests/ops/op_table_test.cpp.
#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "support/pass.h"

namespace qkv::test {

struct OpInput {
  enum class Kind {
    rows,    // [rows, shape...]: one entry per row of the pass
    fixed,   // [shape...]: the same for all rows
    weight,  // a Param [shape...]
    ids,     // i32 [rows, shape...], in [0, limit)
  };
  std::string name;
  Kind kind = Kind::rows;
  Shape shape;
  double deviation = 1;
  double mean = 0;
  double away_from_zero = 0;  // for functions with a kink there: |x| is at least this
  int32_t limit = 0;          // ids
  bool exact = false;         // kept in precision.exact in a bf16 pass
};

// Values of all inputs of one run. A row's values depend on its global index only.
using OpValues = std::map<std::string, Numbers>;

// What a row's function sees: its inputs on the device.
class OpIo {
 public:
  OpIo(Pass& p, int64_t rows_now, int64_t first) : pass(p), cx(p.cx), rows(rows_now), first_row(first) {}
  Pass& pass;
  Context& cx;
  int64_t rows, first_row;

  const Tensor& operator[](const std::string& name) const { return tensors.at(name); }
  const Param& weight(const std::string& name) const { return *weights.at(name); }

  std::map<std::string, Tensor> tensors;
  std::map<std::string, Param*> weights;
};

struct OpCase {
  std::string name;
  std::vector<OpInput> inputs;
  std::function<std::vector<Tensor>(OpIo&)> run;  // the outputs gradients start from
  bool row_wise = true;                           // row i of every output depends on row i of the `rows` inputs alone
  int64_t small_rows = 5;                         // for finite differences
  int64_t bench_rows = 512;
  double bf16_roundings = 2;  // bf16 roundings one output or gradient passes through, at most
};

const std::vector<OpCase>& op_cases();
inline void PrintTo(const OpCase& op, std::ostream* out) {
  *out << op.name;
}  // for GoogleTest

struct OpRun {
  const Kernels* kernels = &kernels::ref::table();
  Precision precision = Precision::f64();
  int threads = 1;
  int64_t rows = 1, first_row = 0;
  bool backward = true;
};

struct OpResult {
  std::vector<Numbers> outputs;
  std::map<std::string, Numbers> gradients;  // by input name
};

// An op with its inputs on the device, ready to run as often as wanted.
class OpRunner {
 public:
  OpRunner(const OpCase& op, const OpValues& values, const OpRun& how);

  std::vector<Tensor> forward() { return op_.run(io_); }
  void seed(const std::vector<Tensor>& outputs);  // gradients that reach the outputs
  void backward() { pass_.tape.backward(pass_.cx); }
  Numbers gradient(const OpInput& in);
  Pass& pass() { return pass_; }

 private:
  const OpCase& op_;
  OpRun how_;
  Pass pass_;
  OpIo io_;
};

OpValues op_values(const OpCase& op, int64_t rows, int64_t first_row, DType rounded_to);
OpResult run_op(const OpCase& op, const OpValues& values, const OpRun& how);
Numbers output_seed(size_t output, int64_t first_element, size_t count, DType rounded_to);  // d loss / d output

}  // namespace qkv::test
