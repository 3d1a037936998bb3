#include "core/param.h"

#include <gtest/gtest.h>

#include "core/says.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

int copies = 0, laid = 0;

// The ref table, counting its copies and the weights it lays as tiles.
const Kernels& counting_kernels() {
  static const Kernels table = [] {
    Kernels k = kernels::ref::table();
    k.pack_tiles = [](const Exec& exec, const PackTilesArgs& args) noexcept {
      ++laid;
      kernels::ref::table().pack_tiles(exec, args);
    };
    k.copy = [](const Exec& exec, const CopyArgs& args) noexcept {
      ++copies;
      kernels::ref::table().copy(exec, args);
    };
    return k;
  }();
  return table;
}

class ParamIn : public ::testing::Test {
 protected:
  ParamIn() { copies = laid = 0; }
};

TEST_F(ParamIn, ItsOwnDtypeIsTheMasterItself) {
  Pass p({.kernels = &counting_kernels()});
  const Param& w = p.param("w", Numbers{1, 2, 3}, {3});
  EXPECT_EQ(w.value(p.cx).data(), w.master().data());
  EXPECT_EQ(w.name(), "w");
  EXPECT_EQ(w.shape(), Shape({3}));
  EXPECT_EQ(copies, 0);
}

TEST_F(ParamIn, Bf16IsACopyMadeOnceAndAgainAfterAnUpdate) {
  Pass p({.kernels = &counting_kernels(), .precision = Precision::bf16()});
  Param& w = p.param("w", Numbers{1, 1 + 0x1p-9, 3}, {3});
  EXPECT_EQ(copies, 0) << "nothing is made before the first use";

  const Tensor value = w.value(p.cx);
  EXPECT_EQ(value.dtype(), DType::bf16);
  EXPECT_EQ(to_host(value), Numbers({1, 1, 3}));
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(w.value(p.cx).data(), value.data());
  EXPECT_EQ(copies, 1) << "the copy is kept";

  to_device(w.master(), Numbers{4, 5, 6});
  EXPECT_EQ(to_host(w.value(p.cx)), Numbers({1, 1, 3})) << "nobody has said that the master changed";
  w.updated();
  EXPECT_EQ(copies, 1) << "an update alone copies nothing";
  EXPECT_EQ(to_host(w.value(p.cx)), Numbers({4, 5, 6}));
  std::ignore = w.value(p.cx);
  EXPECT_EQ(copies, 2);
  EXPECT_EQ(to_host(w.master()), Numbers({4, 5, 6}));
}

// Element (o, k) of tiles, as core/kernels.h has them: [E, O / 32, K / 32, 2, 16, 16, 2].
double in_tiles(const Tensor& tiles, const Shape& weight, const std::array<int64_t, 3>& at) {
  const auto [e, o, k] = at;
  const int64_t panels = (weight[-2] + 31) / 32, steps = (weight[-1] + 31) / 32;
  const int64_t block = (e * panels + o / 32) * steps + k / 32;
  const int64_t inside = o % 32 / 16 * 512 + k % 32 / 2 * 32 + o % 16 * 2 + k % 2;
  return double{to_float(tiles.as<Bf16>()[block * 1024 + inside])};
}

TEST_F(ParamIn, TilesAreLaidOnceAndAgainAfterAnUpdate) {
  Kernels kernels = counting_kernels();
  Pass without({.kernels = &kernels, .precision = Precision::bf16()});
  EXPECT_FALSE(without.param("w", Numbers(6, 1), {2, 3}).tiles(without.cx).defined()) << "nobody wants them";

  kernels.wants_tiles = true;
  Pass p({.kernels = &kernels, .precision = Precision::bf16()});
  EXPECT_FALSE(p.param("b", Numbers(3, 1), {3}).tiles(p.cx).defined()) << "a vector has none";
  for (const Shape& shape : {Shape{35, 70}, Shape{2, 5, 33}}) {
    laid = 0;
    Numbers numbers(static_cast<size_t>(shape.count()));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 251);  // exact in bf16
    Param& w = p.param("w" + std::to_string(shape.rank()), numbers, shape);
    const auto expect_all = [&] {
      const Tensor tiles = w.tiles(p.cx);
      ASSERT_EQ(tiles.shape(), tiles_shape(shape));
      for (int64_t i = 0; i < shape.count(); ++i) {
        const int64_t row = i / shape[-1], per_weight = shape[-2];
        ASSERT_EQ(in_tiles(tiles, shape, {row / per_weight, row % per_weight, i % shape[-1]}),
                  numbers[static_cast<size_t>(i)]);
      }
    };
    expect_all();
    expect_all();
    EXPECT_EQ(laid, 1);
    for (double& x : numbers) x += 1;
    to_device(w.master(), numbers);
    w.updated();
    expect_all();
    EXPECT_EQ(laid, 2);
    EXPECT_EQ(to_host(w.value(p.cx)), numbers) << "the copy beside them is made again as well";
  }
}

TEST_F(ParamIn, TwoOtherDtypesInOneRunIsOurMistake) {
  Pass p({.precision = Precision::bf16()});
  const Param& w = p.param("w", Numbers{1}, {1});
  std::ignore = w.value(p.cx);
  expect_says([&] { std::ignore = w.value(p.cx, DType::f16); }, {"'w'", "bf16", "f16"}, Error::Kind::internal);
  EXPECT_EQ(w.value(p.cx, DType::f32).data(), w.master().data());
}

TEST_F(ParamIn, GradientsStartWithAWriteAndGoOnWithAdds) {
  Pass p;
  Param& w = p.param("w", Numbers{1, 2}, {2});
  EXPECT_FALSE(w.gradient().defined());

  const Grad first = w.use_gradient(DType::f32);
  EXPECT_TRUE(first);
  EXPECT_FALSE(first.add);
  EXPECT_EQ(first.tensor.shape(), Shape({2}));
  to_device(first.tensor, Numbers{3, 4});

  const Grad second = w.use_gradient(DType::f32);
  EXPECT_TRUE(second.add);
  EXPECT_EQ(second.tensor.data(), first.tensor.data());
  EXPECT_EQ(to_host(w.gradient()), Numbers({3, 4}));

  w.clear_gradient();
  EXPECT_FALSE(w.gradient().defined());
  const Grad again = w.use_gradient(DType::f32);
  EXPECT_FALSE(again.add);
  EXPECT_EQ(again.tensor.data(), first.tensor.data()) << "the memory is kept";
}

TEST_F(ParamIn, AGradientIsInTheExactDtype) {
  Pass p;
  const Param w("w", cpu_device(), DType::bf16, {4});
  EXPECT_EQ(w.use_gradient(DType::f32).tensor.dtype(), DType::f32);
  const Grad wider = w.use_gradient(DType::f64);
  EXPECT_EQ(wider.tensor.dtype(), DType::f64);
  EXPECT_FALSE(wider.add) << "a new buffer holds nothing yet";
}

TEST_F(ParamIn, AFrozenWeightHasNoGradient) {
  Param w("w", cpu_device(), DType::f32, {4});
  w.trainable = false;
  EXPECT_FALSE(w.use_gradient(DType::f32));
  EXPECT_FALSE(w.gradient().defined());
}

TEST_F(ParamIn, BlocksCannotBeTrainedButCanBeFrozen) {
  Pass p;
  Param w("layers.0.q", cpu_device(), Format(Block::q4_0), {2, 32});
  EXPECT_EQ(w.value(p.cx).data(), w.master().data());
  expect_error([&] { std::ignore = w.use_gradient(DType::f32); }, {"layers.0.q", "q4_0", "cannot be trained"});
  w.trainable = false;
  EXPECT_FALSE(w.use_gradient(DType::f32));
}

TEST_F(ParamIn, BytesInPlaceAreReadThereAndCopiedBeforeTheyChange) {
  std::vector<float> mapped{1, 2, 3};
  int released = 0;
  const auto source = [&] {
    return ParamSource{.in_place = reinterpret_cast<std::byte*>(mapped.data()), .release = [&] { ++released; }};
  };
  Pass half({.precision = Precision::bf16()});
  const Param read("read", cpu_device(), DType::f32, {3}, source());
  EXPECT_EQ(read.master().as<float>(), mapped.data());
  EXPECT_EQ(released, 0);
  EXPECT_EQ(to_host(read.value(half.cx)), Numbers({1, 2, 3}));
  EXPECT_EQ(released, 1) << "the pass has its own form now";

  Pass p;
  Param changed("changed", cpu_device(), DType::f32, {3}, source());
  to_device(changed.writable(p.cx), Numbers{7, 8, 9});
  EXPECT_EQ(released, 2);
  EXPECT_EQ(mapped, std::vector<float>({1, 2, 3})) << "the file stays as it is";
  EXPECT_EQ(to_host(changed.master()), Numbers({7, 8, 9}));
  EXPECT_EQ(to_host(changed.writable(p.cx)), Numbers({7, 8, 9})) << "copied once, not before every change";
}

TEST_F(ParamIn, NumbersToBeFilledInWaitForTheFirstUse) {
  int fills = 0;
  Param w("w", cpu_device(), DType::f32, {2}, {.fill = [&](const Tensor& to) {
            ++fills;
            to_device(to, Numbers{4, 5});
          }});
  Pass plan({.kernels = &Kernels::none(), .mode = Arena::Mode::plan});
  EXPECT_EQ(w.value(plan.cx).shape(), Shape({2}));
  EXPECT_EQ(fills, 0) << "a plan needs no numbers";
  EXPECT_EQ(to_host(w.master()), Numbers({4, 5}));
  EXPECT_EQ(to_host(w.master()), Numbers({4, 5}));
  EXPECT_EQ(fills, 1);
  w.release_master();
  EXPECT_EQ(to_host(w.master()), Numbers({4, 5}));
  EXPECT_EQ(fills, 2);

  Pass p;
  to_device(w.writable(p.cx), Numbers{6, 7});
  w.release_master();
  EXPECT_EQ(to_host(w.master()), Numbers({6, 7})) << "what was changed cannot be had from its source again";
}

}  // namespace
}  // namespace qkv::test
