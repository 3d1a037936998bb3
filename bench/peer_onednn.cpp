#include <omp.h>

#include <dnnl.hpp>
#include <memory>

#include "peer.h"

namespace qkv::bench {
namespace {

using Memory = dnnl::memory;
using Tag = Memory::format_tag;

Memory::data_type type_of(const Tensor& t) {
  return t.dtype() == DType::bf16 ? Memory::data_type::bf16 : Memory::data_type::f32;
}

// One primitive with its arguments, for one shape and dtype.
class Primitive {
 public:
  Primitive() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  // y = a w with a [M, K]; `weights` is w [K, O] in memory.
  void multiply(const Tensor& a, const Tensor& w, Tag weights, const Tensor& y) {
    const Memory::dims inner_outer{a.cols(), y.cols()};
    const dnnl::matmul::primitive_desc plan(
        dnnl::matmul::desc({{a.rows(), a.cols()}, type_of(a), Tag::ab}, {inner_outer, type_of(w), Tag::any},
                           {{y.rows(), y.cols()}, type_of(y), Tag::ab}),
        engine_);
    Memory plain({inner_outer, type_of(w), weights}, engine_, w.data()), packed(plan.weights_desc(), engine_);
    dnnl::reorder(plain, packed).execute(stream_, plain, packed);
    stream_.wait();
    result_ = Memory(plan.dst_desc(), engine_);
    primitive_ = dnnl::matmul(plan);
    arguments_ = {{DNNL_ARG_SRC, Memory(plan.src_desc(), engine_, a.data())},
                  {DNNL_ARG_WEIGHTS, packed},
                  {DNNL_ARG_DST, result_}};
  }

  // dw = dy^T x, in f32 and in whatever order oneDNN prefers
  void weight_gradient(const Tensor& x, const Tensor& dy) {
    using Inner = dnnl::inner_product_forward;
    using InnerBackward = dnnl::inner_product_backward_weights;
    const Memory::desc src({x.rows(), x.cols()}, type_of(x), Tag::ab),
        dst({dy.rows(), dy.cols()}, type_of(dy), Tag::ab);
    const Memory::desc weights({dy.cols(), x.cols()}, type_of(x), Tag::any);
    const Memory::desc gradient({dy.cols(), x.cols()}, Memory::data_type::f32, Tag::any);
    const Inner::primitive_desc hint(Inner::desc(dnnl::prop_kind::forward_training, src, weights, dst), engine_);
    const InnerBackward::primitive_desc plan(InnerBackward::desc(src, gradient, dst), engine_, hint);
    result_ = Memory(plan.diff_weights_desc(), engine_);
    primitive_ = InnerBackward(plan);
    arguments_ = {{DNNL_ARG_SRC, Memory(plan.src_desc(), engine_, x.data())},
                  {DNNL_ARG_DIFF_DST, Memory(plan.diff_dst_desc(), engine_, dy.data())},
                  {DNNL_ARG_DIFF_WEIGHTS, result_}};
  }

  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

  std::vector<float> result() {
    const Memory::dims dims = result_.get_desc().dims();
    std::vector<float> values(static_cast<size_t>(dims[0] * dims[1]));
    Memory plain({dims, Memory::data_type::f32, Tag::ab}, engine_, values.data());
    dnnl::reorder(result_, plain).execute(stream_, result_, plain);
    stream_.wait();
    return values;
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  Memory result_;
  std::unordered_map<int, Memory> arguments_;
};

std::string about() {
  const dnnl::version_t* v = dnnl::version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

void set_threads(int threads) {
  omp_set_num_threads(threads);
}

PeerRun make(const PeerLinear& l) {
  const auto primitive = std::make_shared<Primitive>();
  try {
    switch (l.product) {
      case Product::forward:
        primitive->multiply(l.x, l.w, Tag::ba, l.dy);
        break;
      case Product::input_gradient:
        primitive->multiply(l.dy, l.w, Tag::ab, l.x);
        break;
      case Product::weight_gradient:
        primitive->weight_gradient(l.x, l.dy);
        break;
    }
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return {};  // bf16 on a CPU without it
    throw;
  }
  return {.run = [primitive] { primitive->run(); }, .result = [primitive] { return primitive->result(); }};
}

}  // namespace

const Peer onednn_peer{"oneDNN", about, set_threads, make};

}  // namespace qkv::bench
