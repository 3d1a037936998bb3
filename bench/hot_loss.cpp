// The output head with its loss, embedding gradients, and the optimisers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>

#include "bed.h"
#include "hot_ops.h"
#include "ops/ops.h"
#include "ops/optim.h"

namespace qkv::bench {
namespace {

constexpr int64_t kWidth = 768, kHidden = 3072, kVocabulary = 50304;

Work make_cross_entropy(const Engine& engine, bool back, DType dtype, int64_t rows) {
  const auto bed = std::make_shared<Bed>(engine, precision_of(dtype));
  const Tensor x = bed->tensor({rows, kWidth}, dtype), targets = bed->cx.constant({rows}, DType::i32);
  bed->put<int32_t>(targets, [](uint64_t i) { return static_cast<int32_t>(random_bits(9, i) % kVocabulary); });
  const Param& w = bed->param({kVocabulary, kWidth});
  const Tensor one = bed->cx.constant({1}, DType::f32);
  bed->put<float>(one, [](uint64_t) { return 1.0F; });
  const ops::CrossEntropyOptions options{.divisor = number(rows)};
  const int products = back ? 3 : 1;  // backward recomputes the logits
  Work work{.size = fmt::format("{} x {} -> {}", rows, kWidth, kVocabulary),
            .amount = 2 * products * number(rows) * number(kWidth) * number(kVocabulary)};
  if (back) {
    work.ours = [=, &w] {
      return bed->backward(
          [&](const auto& track) { return ops::cross_entropy(bed->cx, track(x), w, targets, options).loss; }, one);
    };
  } else {
    work.ours = [=, &w] {
      return bed->forward([&] { return ops::cross_entropy(bed->cx, x, w, targets, options).loss; });
    };
  }
  return work;
}

// The gradient of the embedding table: dy is read, and a row of the table is read and written for every token.
Work make_embedding_gradient(const Engine& engine, DType dtype, int64_t rows) {
  const auto bed = std::make_shared<Bed>(engine, precision_of(dtype));
  const Tensor dy = bed->tensor({rows, kWidth}, dtype), ids = bed->cx.constant({rows}, DType::i32);
  bed->put<int32_t>(ids, [](uint64_t i) { return static_cast<int32_t>(random_bits(11, i) % kVocabulary); });
  const Tensor dtable = bed->cx.constant({kVocabulary, kWidth}, DType::f32);
  return {.size = fmt::format("{} x {} of {}", rows, kWidth, kVocabulary),
          .amount = number(rows * kWidth) * number(size_of(dtype) + 8),
          .ours = [=] {
            return bed->timed([&] {
              bed->cx.kernels.embedding_backward(bed->cx.exec, {.dtable = {dtable, true}, .dy = dy, .ids = ids});
            });
          }};
}

struct AdamBed : Bed {
  AdamBed(const Engine& engine, int64_t count)
      : Bed(engine, Precision::f32()),
        w(param({count})),
        state{.m = tensor({count}, DType::f32, 1e-3F), .v = cx.constant({count}, DType::f32)} {
    fill_tensor(w.use_gradient(DType::f32).tensor, 1e-3F);
    put<float>(state.v, [](uint64_t i) { return 1e-6F * std::abs(random_float(10, i)); });
  }
  Param& w;
  ops::AdamState state;
};

Work make_adamw(const Engine& engine, int64_t count) {
  constexpr double kBytes = 28;  // weight, m and v are read and written, the gradient is read
  const auto bed = std::make_shared<AdamBed>(engine, count);
  return {
      .size = fmt::format("{:.0f} M parameters", number(count) / 1e6), .amount = kBytes * number(count), .ours = [bed] {
        return bed->timed([&] { ops::adamw_step(bed->cx, bed->w, bed->state, {.lr = 1e-4, .decay = 0.1}); });
      }};
}

struct MuonBed : Bed {
  MuonBed(const Engine& engine, int64_t rows, int64_t cols)
      : Bed(engine, Precision::f32()), w(param({rows, cols})), buffer(cx.constant({rows, cols}, DType::f32)) {
    fill_tensor(w.use_gradient(DType::f32).tensor, 1);
    fill_tensor(buffer, 1);
  }
  Param& w;
  Tensor buffer;
};

Work make_muon(const Engine& engine, int64_t rows, int64_t cols) {
  const auto bed = std::make_shared<MuonBed>(engine, rows, cols);
  const double small = number(std::min(rows, cols)), large = number(std::max(rows, cols));
  return {.size = fmt::format("{} x {}", rows, cols),
          .amount = 5 * (2 * 2 * small * small * large + 2 * small * small * small),  // five steps of three products
          .ours = [bed] { return bed->timed([&] { ops::muon_step(bed->cx, bed->w, bed->buffer, {.lr = 1e-4}); }); }};
}

Work make_norm(const Engine& engine, int64_t count) {
  const auto bed = std::make_shared<MuonBed>(engine, 1, count);
  return {.size = fmt::format("{:.0f} M parameters", number(count) / 1e6), .amount = 4 * number(count), .ours = [bed] {
            const Param* const all[] = {&bed->w};
            return bed->timed([&] { ops::global_norm(bed->cx, all); });
          }};
}

}  // namespace

bool plenty_of_memory() {
  constexpr int64_t kPlenty = 6 << 20;  // KiB
  std::ifstream info("/proc/meminfo");
  for (std::string name, unit; info >> name;) {
    int64_t size = 0;
    info >> size >> unit;
    if (name == "MemAvailable:") return size >= kPlenty;
  }
  return false;
}

void add_ends(std::vector<HotOp>& list, const Engine& engine) {
  for (const bool back : {false, true}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      list.push_back({.name = back ? "cross_entropy backward" : "cross_entropy forward",
                      .dtype = name_of(dtype),
                      .bound = dtype == DType::bf16 ? Bound::bf16_products : Bound::f32_products,
                      .full = 256,
                      .first = 4,
                      .power = 1,
                      .make = [=, &engine](int64_t rows) { return make_cross_entropy(engine, back, dtype, rows); }});
    }
  }
  for (const DType dtype : {DType::f32, DType::bf16}) {
    list.push_back({.name = "embedding gradient",
                    .dtype = name_of(dtype),
                    .bound = Bound::memory,
                    .full = 16384,
                    .first = 256,
                    .power = 1,
                    .make = [=, &engine](int64_t rows) { return make_embedding_gradient(engine, dtype, rows); }});
  }
  list.push_back({.name = "adamw",
                  .dtype = name_of(DType::f32),
                  .bound = Bound::memory,
                  .full = plenty_of_memory() ? 124'000'000 : 32'000'000,
                  .first = 1'000'000,
                  .power = 1,
                  .make = [&engine](int64_t count) { return make_adamw(engine, count); }});
  list.push_back({.name = "global_norm",
                  .dtype = name_of(DType::f32),
                  .bound = Bound::memory,
                  .full = plenty_of_memory() ? 124'000'000 : 32'000'000,
                  .first = 1'000'000,
                  .power = 1,
                  .make = [&engine](int64_t count) { return make_norm(engine, count); }});
  for (const bool tall : {false, true}) {
    list.push_back({.name = "muon",
                    .dtype = name_of(DType::f32),
                    .bound = Bound::f32_products,
                    .full = kHidden,
                    .first = kWidth,
                    .power = 1,
                    .make = [=, &engine](int64_t size) {
                      return tall ? make_muon(engine, size, kWidth) : make_muon(engine, kWidth, size);
                    }});
  }
}

}  // namespace qkv::bench
