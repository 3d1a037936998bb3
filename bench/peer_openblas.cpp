// f32 only. OPENBLAS_CORETYPE, read when the library loads, forces the kernels of a CPU.
#include <cblas.h>

#include <memory>

#include "peer.h"

namespace qkv::bench {
namespace {

std::string about() {
  return std::string(openblas_get_config()) + " for " + openblas_get_corename();
}

// c [M, N] = a b; `transposed` says which operand is stored transposed.
struct Sgemm {
  const Tensor &a, &b;
  CBLAS_TRANSPOSE a_turned, b_turned;
  int rows, cols, inner;
};

PeerRun run_of(const Sgemm& call) {
  const auto c = std::make_shared<std::vector<float>>(static_cast<size_t>(call.rows) * static_cast<size_t>(call.cols));
  const Tensor a = call.a, b = call.b;
  const auto width = [](const Tensor& t) { return static_cast<int>(t.cols()); };
  return {.run =
              [=] {
                cblas_sgemm(CblasRowMajor, call.a_turned, call.b_turned, call.rows, call.cols, call.inner, 1,
                            a.as<float>(), width(a), b.as<float>(), width(b), 0, c->data(), call.cols);
              },
          .result = [c] { return *c; }};
}

PeerRun make(const PeerLinear& l) {
  if (l.x.dtype() != DType::f32) return {};
  const auto m = static_cast<int>(l.x.rows()), k = static_cast<int>(l.x.cols()), o = static_cast<int>(l.w.rows());
  switch (l.product) {
    case Product::forward:
      return run_of({l.x, l.w, CblasNoTrans, CblasTrans, m, o, k});
    case Product::input_gradient:
      return run_of({l.dy, l.w, CblasNoTrans, CblasNoTrans, m, k, o});
    case Product::weight_gradient:
      return run_of({l.dy, l.x, CblasTrans, CblasNoTrans, o, k, m});
  }
  return {};
}

}  // namespace

const Peer openblas_peer{"OpenBLAS", about, openblas_set_num_threads, make};

}  // namespace qkv::bench
