#include "core/storage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "core/says.h"

#if defined(__SANITIZE_ADDRESS__)
// An allocation that cannot be made returns null, as it does without the sanitizer.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
#endif

namespace qkv::test {
namespace {

TEST(Storage, IsAlignedAndAsLargeAsAsked) {
  for (const int64_t elements : {1, 3, 17, 1000}) {
    const Storage s(cpu_device(), DType::f32, elements);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s.data()) % 64, 0U);
    EXPECT_EQ(s.bytes(), 4 * elements);
    std::memset(s.data(), 0xab, static_cast<size_t>(s.bytes()));
  }
}

TEST(Storage, OfBlocksHoldsWholeBlocks) {
  const Storage s(cpu_device(), Format(Block::q4_k), 512);
  EXPECT_EQ(s.bytes(), 2 * 144);
  EXPECT_EQ(s.format(), Format(Block::q4_k));
}

TEST(Storage, OfNothingIsDefinedAndEmpty) {
  const Storage s(cpu_device(), DType::f64, 0);
  EXPECT_TRUE(s.defined());
  EXPECT_NE(s.data(), nullptr);
  EXPECT_EQ(s.bytes(), 0);
}

TEST(Storage, StartsUndefined) {
  EXPECT_FALSE(Storage().defined());
}

TEST(Storage, MovesItsBytes) {
  Storage a(cpu_device(), DType::f32, 4);
  std::byte* const data = a.data();
  Storage b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.bytes(), 16);
  EXPECT_FALSE(a.defined());  // NOLINT: what is left of a moved storage is the point

  Storage c(cpu_device(), DType::f64, 1);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.format(), Format(DType::f32));
}

// Counts what is allocated and not given back.
class CountingDevice final : public Device {
 public:
  const char* name() const override { return "counting"; }
  std::byte* allocate(int64_t bytes) override {
    live += bytes;
    ++allocations;
    return cpu_device().allocate(bytes);
  }
  void release(std::byte* data, int64_t bytes) noexcept override {
    live -= bytes;
    cpu_device().release(data, bytes);
  }
  void upload(std::byte* to, const void* from, int64_t bytes) override { cpu_device().upload(to, from, bytes); }
  void download(void* to, const std::byte* from, int64_t bytes) override { cpu_device().download(to, from, bytes); }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override { cpu_device().copy(to, from, bytes); }

  int64_t live = 0, allocations = 0;
};

TEST(Storage, GivesBackExactlyWhatItTook) {
  CountingDevice device;
  {
    Storage a(device, DType::f32, 10);
    Storage b(device, DType::i8, 0);
    EXPECT_EQ(&a.device(), &device);
    EXPECT_GE(device.live, 40);
    b = std::move(a);
    const Storage c(std::move(b));
    EXPECT_EQ(device.allocations, 2);
  }
  EXPECT_EQ(device.live, 0);
}

TEST(Storage, ThatIsImpossibleIsAnErrorWithNeedAndHave) {
  const int64_t need = int64_t{1} << 60;
  const int64_t have = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  expect_error([&] { Storage(cpu_device(), DType::i8, need); }, {std::to_string(need), std::to_string(have)});
}

TEST(Storage, OfTheLargestByteCountIsAnErrorToo) {
  const int64_t need = std::numeric_limits<int64_t>::max();
  expect_error([&] { Storage(cpu_device(), DType::i8, need); }, {std::to_string(need)});
}

TEST(CpuDevice, CopiesBothWays) {
  Device& cpu = cpu_device();
  EXPECT_STREQ(cpu.name(), "cpu");
  const Storage s(cpu, DType::i32, 3);
  const std::array<int32_t, 3> numbers{1, -2, 3};
  cpu.upload(s.data(), numbers.data(), sizeof(numbers));
  std::array<int32_t, 3> back{};
  cpu.download(back.data(), s.data(), sizeof(back));
  EXPECT_EQ(back, numbers);
  cpu.upload(s.data(), nullptr, 0);
  cpu.download(nullptr, s.data(), 0);
}

}  // namespace
}  // namespace qkv::test
