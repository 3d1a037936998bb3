#include "hot_ops.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "bed.h"
#include "ops/ops.h"
#include "peer.h"

namespace qkv::bench {
namespace {

constexpr int64_t kWidth = 768, kHidden = 3072, kHeads = 12, kHeadWidth = 64, kVocabulary = 50304;
constexpr int64_t kFewRows = 32;

// How our result differs from the peer's; empty if within the precision of the dtype.
std::string difference(const Tensor& ours, const std::vector<float>& theirs) {
  double error = 0, power = 0;
  for (size_t i = 0; i < theirs.size(); ++i) {
    const double right = static_cast<double>(theirs[i]);
    const double got =
        static_cast<double>(ours.dtype() == DType::bf16 ? to_float(ours.as<Bf16>()[i]) : ours.as<float>()[i]);
    error += (got - right) * (got - right);
    power += right * right;
  }
  const double nmse = error / power, allowed = ours.dtype() == DType::bf16 ? 1e-4 : 1e-6;
  return nmse <= allowed ? "" : fmt::format("results differ, NMSE {:.1e}", nmse);
}

// --- products --------------------------------------------------------------------------------------------------------

struct LinearSize {
  Product product;
  int64_t inner, outputs;
};

const char* name_of(Product product) {
  constexpr const char* kNames[] = {"linear forward", "linear input gradient", "linear weight gradient"};
  return kNames[static_cast<int>(product)];
}

void add_peers(Work& work, const std::shared_ptr<Bed>& bed, const PeerLinear& linear,
               const std::function<double(const Bed::Look&)>& ours) {
  if (bed->queues()) return;  // they run on the CPU
  for (const Peer* one : peers()) {
    const PeerRun peer = one->make(linear);
    if (!peer.run) continue;
    const auto check = [peer, ours] {
      std::string found;
      ours([&](const Tensor& result) { found = difference(result, peer.result()); });
      return found;
    };
    work.beside.push_back({.name = one->name, .run = [peer, bed] { return seconds_of(peer.run); }, .check = check});
  }
}

Work make_linear(const Engine& engine, const LinearSize& size, DType dtype, int64_t rows) {
  const auto bed = std::make_shared<Bed>(engine, precision_of(dtype));
  const Tensor x = bed->tensor({rows, size.inner}, dtype), dy = bed->tensor({rows, size.outputs}, dtype);
  // Few rows are inference: the weight is stored in the compute dtype, without an f32 master.
  Param& w = bed->param({size.outputs, size.inner}, rows <= kFewRows ? dtype : DType::f32);
  w.trainable = size.product == Product::weight_gradient;

  std::function<double(const Bed::Look&)> ours;
  if (size.product == Product::forward) {
    ours = [=, &w](const Bed::Look& look) { return bed->forward([&] { return ops::linear(bed->cx, x, w); }, look); };
  } else {
    const bool into_x = size.product == Product::input_gradient;
    ours = [=, &w](const Bed::Look& look) {
      return bed->backward([&](const auto& track) { return ops::linear(bed->cx, into_x ? track(x) : x, w); }, dy, look);
    };
  }
  Work work{.size = fmt::format("{} x {} -> {}", rows, size.inner, size.outputs),
            .amount = 2 * number(rows) * number(size.inner) * number(size.outputs),
            .ours = [ours] { return ours({}); }};
  add_peers(work, bed, {.product = size.product, .x = x, .w = w.value(bed->cx), .dy = dy}, ours);
  return work;
}

// Eight experts with uneven numbers of rows.
Work make_experts(const Engine& engine, Product product, DType dtype, int64_t rows) {
  const auto bed = std::make_shared<Bed>(engine, precision_of(dtype));
  constexpr int64_t kExperts = 8, kShare[kExperts] = {1, 3, 2, 1, 4, 2, 2, 1}, kShares = 16;
  const Tensor x = bed->tensor({rows, kWidth}, dtype), dy = bed->tensor({rows, kHidden}, dtype);
  Param& w = bed->param({kExperts, kHidden, kWidth});
  w.trainable = product == Product::weight_gradient;
  std::vector<int32_t> sizes;
  for (const int64_t share : kShare) sizes.push_back(static_cast<int32_t>(rows * share / kShares));
  const auto groups = ops::RowGroups::of_sizes(bed->cx, sizes);
  Work work{.size = fmt::format("{} x {} -> {}, {} experts", rows, kWidth, kHidden, kExperts),
            .amount = 2 * number(rows) * number(kWidth) * number(kHidden)};
  work.ours = [=, &w] {
    const auto run = [&](const Tensor& in) { return ops::linear(bed->cx, in, w, {.groups = groups}); };
    if (product == Product::forward) return bed->forward([&] { return run(x); });
    const bool into_x = product == Product::input_gradient;
    return bed->backward([&](const auto& track) { return run(into_x ? track(x) : x); }, dy);
  };
  return work;
}

// Dispatch to two experts and combine, without the experts: x is read twice and written sorted, read twice and added.
Work make_dispatch(const Engine& engine, bool back, DType dtype, int64_t rows) {
  const auto bed = std::make_shared<Bed>(engine, precision_of(dtype));
  constexpr int64_t kExperts = 8, kChosen = 2;
  const Tensor x = bed->tensor({rows, kWidth}, dtype), dy = bed->tensor(x.shape(), dtype);
  const Tensor ids = bed->cx.constant({rows, kChosen}, DType::i32), weights = bed->tensor({rows, kChosen}, DType::f32);
  bed->put<int32_t>(ids, [](uint64_t i) {
    return static_cast<int32_t>((random_bits(12, i / 2) + i % 2 * (1 + random_bits(13, i / 2) % (kExperts - 1))) %
                                kExperts);
  });
  const ops::Dispatch plan = ops::plan_dispatch(bed->cx, ids, kExperts);
  const double traffic = back ? 3 + 2 + 3 * kChosen : 2 * kChosen + kChosen + 1;  // rows of x's size
  Work work{.size = fmt::format("{} x {}, {} of {} experts", rows, kWidth, kChosen, kExperts),
            .amount = traffic * number(x.count() * size_of(dtype))};
  const auto run = [=](const Tensor& in, const Tensor& by) {
    return ops::combine(bed->cx, ops::dispatch(bed->cx, in, plan), by, plan);
  };
  if (back) {
    work.ours = [=] { return bed->backward([&](const auto& track) { return run(track(x), track(weights)); }, dy); };
  } else {
    work.ours = [=] { return bed->forward([&] { return run(x, weights); }); };
  }
  return work;
}

void add_linear(std::vector<HotOp>& list, const Engine& engine) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Product product : {Product::forward, Product::input_gradient, Product::weight_gradient}) {
      for (const int64_t rows : {4096, 512}) {
        // GPT-2 124 M and its head, and the feed-forward of a Llama 1.1 B
        for (const auto& [inner, outputs] :
             {std::pair{kWidth, kWidth}, std::pair{kWidth, 3 * kWidth}, std::pair{kWidth, kHidden},
              std::pair{kHidden, kWidth}, std::pair{kWidth, kVocabulary}, std::pair{int64_t{2048}, int64_t{5632}},
              std::pair{int64_t{5632}, int64_t{2048}}}) {
          if (rows == 512 && product != Product::forward) continue;
          // The head's weight gradient is measured with the cross-entropy; in f32 it only takes time.
          if (outputs == kVocabulary && (rows == 512 || dtype == DType::f32 || product == Product::weight_gradient)) {
            continue;
          }
          const LinearSize size{product, inner, outputs};
          list.push_back({.name = name_of(product),
                          .dtype = name_of(dtype),
                          .bound = dtype == DType::bf16 ? Bound::bf16_products : Bound::f32_products,
                          .full = rows,
                          .first = 64,
                          .power = 1,
                          .make = [=, &engine](int64_t some) { return make_linear(engine, size, dtype, some); }});
        }
      }
    }
    for (const Product product : {Product::forward, Product::input_gradient, Product::weight_gradient}) {
      list.push_back({.name = std::string(name_of(product)).replace(0, 6, "experts"),
                      .dtype = name_of(dtype),
                      .bound = dtype == DType::bf16 ? Bound::bf16_products : Bound::f32_products,
                      .full = 4096,
                      .first = 64,
                      .power = 1,
                      .make = [=, &engine](int64_t rows) { return make_experts(engine, product, dtype, rows); }});
    }
    for (const bool back : {false, true}) {
      list.push_back({.name = back ? "dispatch + combine back" : "dispatch + combine",
                      .dtype = name_of(dtype),
                      .bound = Bound::memory,
                      .full = 16384,
                      .first = 64,
                      .power = 1,
                      .make = [=, &engine](int64_t rows) { return make_dispatch(engine, back, dtype, rows); }});
    }
    for (const int64_t few : {1, 2, 4, 8, 16, 32}) {
      if (few > 1 && dtype == DType::f32) continue;
      const int64_t weight_bytes = int64_t{plenty_of_memory() ? 1024 : 256} << 20, inner = 4096;
      const LinearSize size{Product::forward, inner, weight_bytes / inner / size_of(dtype)};
      list.push_back({.name = few == 1 ? "linear one row" : "linear few rows",
                      .dtype = name_of(dtype),
                      .bound = Bound::memory,
                      .full = few,
                      .first = few,
                      .power = 1,
                      .make = [=, &engine](int64_t rows) {
                        Work work = make_linear(engine, size, dtype, rows);
                        work.amount = number(weight_bytes);
                        return work;
                      }});
    }
  }
}

// --- attention -------------------------------------------------------------------------------------------------------

class StatsProbe : public Probe {
 public:
  Ask ask(Place, Site site) const override { return site == Site::attn_probs ? Ask::stats : Ask::none; }
  void visit(Context&, const Tap&, Tensor&) override {}
  StatsWanted stats_wanted(Place) const override { return {.offsets = {1}}; }
};

enum class Attending { forward, with_stats, backward };

struct AttentionBed : Bed {
  AttentionBed(const Engine& engine, DType dtype, int64_t batch, int64_t length)
      : Bed(engine, precision_of(dtype)),
        q(tensor({batch * length, kHeads, kHeadWidth}, dtype)),
        k(tensor(q.shape(), dtype)),
        v(tensor(q.shape(), dtype)),
        dz(tensor(q.shape(), dtype)),
        rows(Rows::batch(cx, batch, length)) {}

  double run_forward(Probe* looking) {
    cx.probe = looking;
    return forward([&] { return ops::attention(cx, q, k, v, rows, {.causal = true}).z; });
  }
  double run_backward() {
    return backward(
        [&](const auto& track) { return ops::attention(cx, track(q), track(k), track(v), rows, {.causal = true}).z; },
        dz);
  }

  Tensor q, k, v, dz;
  Rows rows;
  StatsProbe probe;
};

Work make_attention(const Engine& engine, Attending what, DType dtype, int64_t batch, int64_t length) {
  const auto bed = std::make_shared<AttentionBed>(engine, dtype, batch, length);
  const double pairs = number(batch * kHeads) * number(length) * number(length + 1) / 2;
  const int products = what == Attending::backward ? 5 : 2;
  Work work{.size = fmt::format("{} x {}, {} heads of {}", batch, length, kHeads, kHeadWidth),
            .amount = 2 * products * pairs * number(kHeadWidth)};
  const int64_t inputs = bed->arena.used(), all_scores = batch * kHeads * length * length * size_of(DType::f32);
  work.note = [=] {  // memory besides q, k, v and dz, without the scratch all ops share
    const int64_t took = bed->arena.peak() - inputs + bed->gradients.peak();
    constexpr double kMiB = 1 << 20;
    return fmt::format("took {:.1f} MiB, all scores would be {:.0f}", number(took) / kMiB, number(all_scores) / kMiB);
  };
  switch (what) {
    case Attending::forward:
      work.ours = [bed] { return bed->run_forward(nullptr); };
      break;
    case Attending::with_stats:
      work.ours = [bed] { return bed->run_forward(&bed->probe); };
      work.beside.push_back({.name = "without", .run = [bed] { return bed->run_forward(nullptr); }});
      break;
    case Attending::backward:
      work.ours = [bed] { return bed->run_backward(); };
      break;
  }
  return work;
}

void add_attention(std::vector<HotOp>& list, const Engine& engine) {
  constexpr const char* kNames[] = {"attention forward", "attention statistics", "attention backward"};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Attending what : {Attending::forward, Attending::with_stats, Attending::backward}) {
      for (const int64_t batch : {1, 4}) {
        list.push_back(
            {.name = kNames[static_cast<int>(what)],
             .dtype = name_of(dtype),
             .bound = dtype == DType::bf16 ? Bound::bf16_products : Bound::f32_products,
             .full = 1024,
             .first = 64,
             .power = 2,
             .make = [=, &engine](int64_t length) { return make_attention(engine, what, dtype, batch, length); }});
      }
    }
  }
}

// --- row by row ------------------------------------------------------------------------------------------------------

enum class RowOp { rms_norm, layer_norm, gelu, swiglu, rotary };

struct RowBed : Bed {
  RowBed(const Engine& engine, RowOp which, DType compute, int64_t rows)
      : Bed(engine, precision_of(compute)),
        op(which),
        cols(op == RowOp::swiglu || op == RowOp::gelu ? kHidden : kWidth),
        input(op == RowOp::rms_norm || op == RowOp::layer_norm ? DType::f32
                                                               : compute),  // norms read the residual stream
        a(tensor({rows, cols}, input)),
        dy(tensor({rows, cols}, compute)),
        weight(param({cols})),
        bias(param({cols})) {
    if (op == RowOp::swiglu) b = tensor({rows, cols}, input);
    if (op != RowOp::rotary) return;
    angles = {.cos = tensor({kPositions, kHeadWidth / 2}, DType::f32),
              .sin = tensor({kPositions, kHeadWidth / 2}, DType::f32)};
    positions = cx.constant({rows}, DType::i32);
    put<int32_t>(positions, [](uint64_t i) { return static_cast<int32_t>(i % kPositions); });
  }

  template <class Track>
  Tensor run(const Track& track) {
    if (op == RowOp::swiglu) {
      const Tensor gate = track(a), up = track(b);
      return ops::gated(cx, gate, up, ops::gate::swiglu);
    }
    if (op == RowOp::gelu) return ops::activation(cx, track(a), ops::act::gelu_tanh);
    if (op == RowOp::rotary) {
      return ops::merge_heads(ops::rotary(cx, ops::split_heads(track(a), kHeads), positions, angles));
    }
    if (op == RowOp::rms_norm) return ops::rms_norm(cx, track(a), {.weight = &weight});
    return ops::layer_norm(cx, track(a), {.weight = &weight, .bias = &bias});
  }

  // Every tensor once: inputs and result, in backward also dy; the backward of rotary reads no input.
  double bytes(bool back) const {
    const int64_t inputs = op == RowOp::swiglu ? 2 : 1, times = back && op != RowOp::rotary ? 2 : 1;
    return number(a.count()) * number(times * inputs * size_of(input) + size_of(dy.dtype()));
  }

  RowOp op;
  int64_t cols;
  DType input;
  static constexpr int64_t kPositions = 1024;
  Tensor a, b, dy, positions;
  ops::RotaryOptions angles;
  Param &weight, &bias;
};

Work make_row_op(const Engine& engine, RowOp op, bool back, DType dtype, int64_t rows) {
  const auto bed = std::make_shared<RowBed>(engine, op, dtype, rows);
  Work work{.size = fmt::format("{} x {}", rows, bed->cols), .amount = bed->bytes(back)};
  if (back) {
    work.ours = [bed] { return bed->backward([&](const auto& track) { return bed->run(track); }, bed->dy); };
  } else {
    work.ours = [bed] { return bed->forward([&] { return bed->run([](const Tensor& t) { return t; }); }); };
  }
  return work;
}

void add_row_ops(std::vector<HotOp>& list, const Engine& engine) {
  constexpr const char* kNames[] = {"rms_norm", "layer_norm", "gelu", "swiglu", "rotary"};
  for (const RowOp op : {RowOp::rms_norm, RowOp::layer_norm, RowOp::gelu, RowOp::swiglu, RowOp::rotary}) {
    for (const bool back : {false, true}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        list.push_back({.name = std::string(kNames[static_cast<int>(op)]) + (back ? " backward" : " forward"),
                        .dtype = name_of(dtype),
                        .bound = Bound::memory,
                        .full = op == RowOp::swiglu || op == RowOp::gelu ? 4096 : 16384,  // much larger than the caches
                        .first = 64,
                        .power = 1,
                        .make = [=, &engine](int64_t rows) { return make_row_op(engine, op, back, dtype, rows); }});
      }
    }
  }
}

}  // namespace

std::vector<HotOp> hot_ops(const Engine& engine) {
  std::vector<HotOp> list;
  add_linear(list, engine);
  add_block_ops(list, engine);
  add_attention(list, engine);
  add_row_ops(list, engine);
  add_ends(list, engine);
  return list;
}

}  // namespace qkv::bench
