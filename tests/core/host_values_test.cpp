// Values of tensors on the host: every dtype, any strides, and few downloads, each of which a GPU takes its time for.
#include "core/host_values.h"

#include <gtest/gtest.h>

#include "support/guarded_device.h"
#include "support/pass.h"

namespace qkv {
namespace host_values_test {

class HostValues : public testing::Test {
 protected:
  // 0, 1, 2, ...
  Tensor counted(const Shape& shape, DType dtype) {
    test::Numbers numbers(static_cast<size_t>(shape.count()));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
    return pass_.input(numbers, shape, dtype);
  }
  // The values, and how many downloads they took.
  std::pair<std::vector<float>, int64_t> read(const Tensor& t) {
    device_.lost_after = 1000;
    return {host_floats(t), 1000 - device_.lost_after};
  }

  test::GuardedDevice device_;
  test::Pass pass_{{.kernels = &test::guarded_kernels(), .device = &device_}};
};

TEST_F(HostValues, OfEveryFloatDtypeInOneDownload) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const auto [values, downloads] = read(counted({2, 3}, dtype));
    EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 3, 4, 5})) << name_of(dtype);
    EXPECT_EQ(downloads, 1) << name_of(dtype);
  }
}

TEST_F(HostValues, OfViews) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = counted({3, 4}, dtype);
    EXPECT_EQ(read(x.slice(1, 1, 2)), (std::pair{std::vector<float>{1, 2, 5, 6, 9, 10}, int64_t{1}}));
    EXPECT_EQ(read(x.transposed(0, 1)),
              (std::pair{std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, int64_t{1}}));
    EXPECT_EQ(read(x.slice(0, 2, 1)), (std::pair{std::vector<float>{8, 9, 10, 11}, int64_t{1}}));
    EXPECT_EQ(read(x.slice(0, 0, 1).expanded(0, 2)),
              (std::pair{std::vector<float>{0, 1, 2, 3, 0, 1, 2, 3}, int64_t{1}}));
  }
  EXPECT_TRUE(read(counted({0, 4}, DType::bf16)).first.empty());
}

TEST_F(HostValues, ThatLieFarApartAreNotReadWithAllBetweenThem) {
  const Tensor x = counted({3, 64}, DType::f32);
  EXPECT_EQ(read(x.slice(1, 7, 2)), (std::pair{std::vector<float>{7, 8, 71, 72, 135, 136}, int64_t{3}}));
}

}  // namespace host_values_test
}  // namespace qkv
