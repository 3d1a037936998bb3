// Products with quantised weights: one row over 1 GiB, and many rows at the size of a Llama 1.1 B's feed-forward.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <memory>

#include "base/blocks.h"
#include "bed.h"
#include "hot_ops.h"
#include "ops/ops.h"

namespace qkv::bench {
namespace {

struct Size {
  int64_t rows, inner, outputs;
};

// A random weight. Some rows are generated and repeated: for memory traffic that is as good.
Param& random_weight(Bed& bed, Format format, const Shape& shape) {
  constexpr int64_t kMade = 64;
  Param& w = bed.params.emplace_back("w", bed.arena.device(), format, shape);
  Param& some = bed.params.emplace_back("some", bed.arena.device(), format, Shape{kMade, shape[-1]});
  const int64_t bytes = format.bytes_for(some.shape()), all = format.bytes_for(shape);
  if (format.panels()) {
    const auto before = bed.arena.mark();
    ops::quantize(bed.cx, some, bed.tensor(some.shape(), DType::f32));
    bed.arena.rewind(before);
  } else {
    // Any bits are valid, but no scale may be infinite: the upper bits of every byte are kept small.
    std::vector<std::byte> made(static_cast<size_t>(bytes));
    fill(bed.pool(), made.data(), bytes, [](uint64_t i) { return static_cast<std::byte>(random_bits(3, i) & 0x2fU); });
    some.device().upload(some.master().data(), made.data(), bytes);
  }
  for (int64_t at = 0; at < all; at += bytes) {
    w.device().copy(w.master().data() + at, some.master().data(), std::min(bytes, all - at));
  }
  return w;
}

Work make_product(const Engine& engine, Format format, const Size& size) {
  const auto bed = std::make_shared<Bed>(engine, Precision::f32());
  const Tensor x = bed->tensor({size.rows, size.inner}, DType::f32);
  const Param& w = random_weight(*bed, format, {size.outputs, size.inner});
  return {.size = fmt::format("{} x {} -> {}", size.rows, size.inner, size.outputs),
          .amount = size.rows == 1 ? number(format.bytes_for(w.shape()))
                                   : 2 * number(size.rows) * number(size.inner) * number(size.outputs),
          .ours = [=, &w] { return bed->forward([&] { return ops::linear(bed->cx, x, w); }); }};
}

void add_product(std::vector<HotOp>& list, const Engine& engine, Format format, const Size& size) {
  const bool one = size.rows == 1;
  list.push_back({.name = one ? "linear one row" : "linear many rows",
                  .dtype = fmt::format("{}", fmt::streamed(format)),
                  .bound = one ? Bound::memory : Bound::int8_products,
                  .full = size.rows,
                  .first = one ? 1 : 32,
                  .power = 1,
                  .make = [=, &engine](int64_t rows) {
                    return make_product(engine, format, {rows, size.inner, size.outputs});
                  }});
}

}  // namespace

void add_block_ops(std::vector<HotOp>& list, const Engine& engine) {
  constexpr int64_t kWeightBytes = int64_t{1} << 30, kInner = 4096;
  const Format own[] = {Format(Block::q8, 32), Format(Block::q8, 128), Format(Block::q8, 0),
                        Format(Block::q4, 32), Format(Block::q4, 128), Format(Block::q4, 0)};
  const Format gguf[] = {Format(Block::q8_0), Format(Block::q4_0), Format(Block::q4_k), Format(Block::q5_k),
                         Format(Block::q6_k)};
  for (const bool one : {true, false}) {
    const auto add = [&](Format format) {
      const int64_t sixteen_rows = format.bytes_for(Shape{16, kInner});
      const int64_t outputs = (kWeightBytes / sixteen_rows + 1) * 16;
      add_product(list, engine, format, one ? Size{1, kInner, outputs} : Size{512, 2048, 5632});
    };
    for (const Format format : own) add(format);
    for (const Format format : gguf) add(format);
  }
}

}  // namespace qkv::bench
