#include "base/checked.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/expect_error.h"

namespace qkv {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

constexpr uint64_t kBoundaries[] = {0,          1,           2,          7,         0x7FFFFFFF,     0x80000000,
                                    0xFFFFFFFF, 0x100000000, 1ULL << 63, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};

template <class Call>
void expect_like(Uint128 truth, const Call& call) {
  if (truth <= UINT64_MAX) {
    EXPECT_EQ(call(), static_cast<uint64_t>(truth));
  } else {
    expect_error(call, {"size of tensor 'x'", "does not fit in 64 bits"});
  }
}

TEST(Checked, SumsAndProductsAgreeWith128Bits) {
  for (const uint64_t a : kBoundaries) {
    for (const uint64_t b : kBoundaries) {
      SCOPED_TRACE(testing::Message() << a << " and " << b);
      const CheckedU64 x(a, "size of tensor 'x'");
      expect_like(Uint128{a} + b, [&] { return (x + b).value(); });
      expect_like(Uint128{a} * b, [&] { return (x * b).value(); });
      expect_like(Uint128{a} + b, [&] { return (x + CheckedU64(b, "y")).value(); });
      expect_like(Uint128{a} * b, [&] { return (x * CheckedU64(b, "y")).value(); });
    }
  }
}

TEST(Checked, AlignUpAgreesWith128Bits) {
  for (const uint64_t a : kBoundaries) {
    for (int bit = 0; bit < 64; ++bit) {
      const uint64_t alignment = uint64_t{1} << bit;
      SCOPED_TRACE(testing::Message() << a << " to " << alignment);
      const CheckedU64 x(a, "size of tensor 'x'");
      const Uint128 truth = (Uint128{a} + alignment - 1) / alignment * alignment;
      expect_like(truth, [&] { return align_up(x, alignment).value(); });
    }
  }
}

TEST(Checked, AlignmentMustBeAPowerOfTwo) {
  for (const uint64_t alignment : {0ULL, 3ULL, 24ULL, 0x80000001ULL, ~0ULL}) {
    expect_error([&] { align_up(CheckedU64(8, "tensor data"), alignment); },
                 {"tensor data", std::to_string(alignment), "power of two"});
  }
}

TEST(Checked, NegativeNumbersAreNoSizes) {
  expect_error([] { CheckedU64(-1, "number of rows"); }, {"number of rows", "-1"});
  expect_error([] { CheckedU64(2, "number of rows") + -1; }, {"number of rows", "-1"});
  expect_error([] { CheckedU64(2, "number of rows") * INT64_MIN; }, {"number of rows", "-9223372036854775808"});
}

TEST(Checked, TheNameIsCarriedThroughAnExpression) {
  expect_error([] { (CheckedU64(1, "end of 'wte'") + CheckedU64(2, "rows")) * 4 + UINT64_MAX; },
               {"end of 'wte'", "12 + 18446744073709551615"});
}

template <class T, class From>
void check_narrow(From value) {
  SCOPED_TRACE(testing::Message() << +value);
  const auto call = [&] { return narrow<T>(value, "n_layers"); };
  const Int128 truth = value;
  if (truth >= std::numeric_limits<T>::min() && truth <= std::numeric_limits<T>::max()) {
    EXPECT_EQ(Int128{call()}, truth);
  } else {
    expect_error(call, {"n_layers is " + std::to_string(value), std::to_string(std::numeric_limits<T>::max())});
  }
}

template <class T>
void check_narrow_to() {
  for (const uint64_t value : kBoundaries) {
    check_narrow<T>(value);
    check_narrow<T>(static_cast<int64_t>(value));  // -1, -2, INT64_MIN among them
  }
  for (const int value : {-129, -128, -1, 0, 127, 128, 255, 256}) check_narrow<T>(value);
}

TEST(Checked, NarrowAgreesWith128Bits) {
  check_narrow_to<int8_t>();
  check_narrow_to<uint8_t>();
  check_narrow_to<int32_t>();
  check_narrow_to<uint32_t>();
  check_narrow_to<int64_t>();
  check_narrow_to<uint64_t>();
}

TEST(Checked, ConversionNamesWhatIsComputed) {
  const CheckedU64 size = CheckedU64(1, "size of 'x'") * 0x80000000;
  EXPECT_EQ(size.as<uint32_t>(), 0x80000000U);
  expect_error([&] { size.as<int32_t>(); }, {"size of 'x'", "2147483648", "2147483647"});
}

}  // namespace
}  // namespace qkv
