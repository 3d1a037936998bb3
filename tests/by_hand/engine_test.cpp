// The GPU in software (support/gpu_by_hand): its tensor cores are those of support/tensor_core.h, and what a kernel forgets shows.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/wgmma.h"
#include "kernels/cuda/wgmma_layout.h"
#include "support/tensor_core.h"

namespace qkv::test {
namespace {

using namespace kernels::cuda;

constexpr unsigned kThreadsHere = 128;

cudaStream_t stream() {
  static cudaStream_t made = nullptr;
  if (made == nullptr) cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
  return made;
}
cudaError_t launch_here(std::function<void()> body, dim3 grid, unsigned threads, size_t shared_bytes = 0,
                        bool early = false) {
  cudaLaunchAttribute may_be_early{cudaLaunchAttributeProgrammaticStreamSerialization, {early ? 1 : 0}};
  const cudaLaunchConfig_t config{grid, dim3(threads), shared_bytes, stream(), &may_be_early, 1};
  return gpu_by_hand::launch(config, nullptr, "a test's kernel", std::move(body));
}

// Runs a kernel of one block.
template <class F>
cudaError_t run_block(F body, unsigned threads = kThreadsHere, size_t shared_bytes = 4096) {
  const cudaError_t launched = launch_here(body, dim3(), threads, shared_bytes);
  return launched == cudaSuccess ? cudaStreamSynchronize(stream()) : launched;
}

// Sixteen bf16 whose exponents lie in a range; some are zero.
std::array<uint16_t, gpu_by_hand::kStep> some_numbers(std::mt19937& random, uint32_t lowest, uint32_t range) {
  std::array<uint16_t, gpu_by_hand::kStep> made{};
  for (uint16_t& bits : made) {
    const auto r = static_cast<uint32_t>(random());
    if (r % 20 != 0)
      bits = static_cast<uint16_t>((r >> 16 & 0x8000U) | (lowest + r / 32 % range) << 7 | (r >> 9 & 127U));
  }
  return made;
}

TEST(GpuByHand, StepsOfItsTensorCoresAreThoseOfTheModel) {
  std::mt19937 random(1);
  int64_t wrong = 0;
  for (const auto& [lowest, range] : {std::pair{120U, 16U}, {0U, 255U}, {0U, 60U}, {60U, 140U}}) {
    for (int i = 0; i < 20'000; ++i) {
      const auto x = some_numbers(random, lowest, range), y = some_numbers(random, lowest, range);
      std::array<Bf16, kTensorCoreStep> a, b;
      std::array<uint16_t, gpu_by_hand::kStep> bits_a = x, bits_b = y;
      for (size_t k = 0; k < a.size(); ++k) {
        a[k].bits = bits_a[k];
        b[k].bits = bits_b[k];
      }
      gpu_by_hand::Operand row, column;
      gpu_by_hand::make_operand(row, reinterpret_cast<const uint16_t(&)[gpu_by_hand::kStep]>(*bits_a.data()));
      gpu_by_hand::make_operand(column, reinterpret_cast<const uint16_t(&)[gpu_by_hand::kStep]>(*bits_b.data()));
      const float c = to_float(Bf16{some_numbers(random, lowest, range)[3]});
      float sum = c, *sums[1] = {&sum};
      gpu_by_hand::steps(sums, 1, &row, column);
      wrong += std::bit_cast<uint32_t>(sum) != std::bit_cast<uint32_t>(tensor_core_step(c, a, b)) ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(GpuByHand, NoNumbersPassThroughItsTensorCores) {
  uint16_t bits[gpu_by_hand::kStep] = {};
  gpu_by_hand::Operand row, column;
  for (uint16_t& b : bits) b = 0x3f80;  // 1
  gpu_by_hand::make_operand(column, bits);
  const auto added = [&](uint16_t odd, float c) {
    bits[5] = odd;
    gpu_by_hand::make_operand(row, bits);
    float* sums[1] = {&c};
    gpu_by_hand::steps(sums, 1, &row, column);
    return c;
  };
  EXPECT_TRUE(std::isnan(added(0x7fc0, 0)));
  EXPECT_EQ(added(0xff80, 0), -INFINITY);
  EXPECT_TRUE(std::isnan(added(0xff80, INFINITY)));
  EXPECT_TRUE(std::isnan(added(0x3f80, NAN)));
  EXPECT_EQ(added(0x3f80, 2), 18);
}

// Each thread leaves its number where the last one reads.
std::array<int, kThreadsHere> turned_around(bool meets) {
  std::array<int, kThreadsHere> got{};
  EXPECT_EQ(run_block([&] {
              auto* const numbers = reinterpret_cast<int*>(dynamic_shared<16>());
              const unsigned i = threadIdx.x;
              numbers[i] = static_cast<int>(i);
              if (meets) __syncthreads();
              got[i] = numbers[kThreadsHere - 1 - i];
            }),
            cudaSuccess);
  return got;
}

TEST(GpuByHand, ThreadsThatDoNotMeetReadWhatIsNotThere) {
  std::array<int, kThreadsHere> right{};
  for (unsigned i = 0; i < kThreadsHere; ++i) right[i] = static_cast<int>(kThreadsHere - 1 - i);
  EXPECT_EQ(turned_around(true), right);
  EXPECT_NE(turned_around(false), right);
}

// Sums of a block one after the other use the same memory.
TEST(GpuByHand, SumsOfABlockDoNotMeetTheNext) {
  constexpr int kSums = 6;
  std::array<std::array<int, kSums>, kThreads> got{};
  run_block(
      [&] {
        for (int i = 0; i < kSums; ++i) got[threadIdx.x][static_cast<size_t>(i)] = block_sum(1 << i);
      },
      kThreads);
  for (const auto& sums : got) {
    for (int i = 0; i < kSums; ++i) ASSERT_EQ(sums[static_cast<size_t>(i)], kThreads << i);
  }
}

// The copy engine's copies are seen by who waits, and by no one else.
TEST(GpuByHand, CopiesAreThereOnceSomebodyWaits) {
  alignas(16) const std::array<float, 64> from = [] {
    std::array<float, 64> made{};
    for (size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>(i);
    return made;
  }();
  for (const bool waits : {true, false}) {
    if (!waits && std::getenv("QKV_GPU_ORDER") != nullptr) GTEST_SKIP() << "there they may come at once";
    std::array<float, 64> got{};
    EXPECT_EQ(run_block(
                  [&] {
                    const uint32_t here = shared_address(dynamic_shared<16>()), barrier = here + 1024;
                    if (threadIdx.x == 0) {
                      barrier_init(barrier, 1);
                      barrier_expect(barrier, sizeof(from));
                      load_bytes(here, from.data(), sizeof(from), barrier);
                    }
                    __syncthreads();
                    if (waits) barrier_wait(barrier, 0);
                    got[threadIdx.x] = shared_value<float>(here + 4 * threadIdx.x);
                  },
                  64),
              cudaSuccess);
    EXPECT_EQ(got == from, waits);
  }
}

// The same of a thread's own copies, by groups.
TEST(GpuByHand, ChunksAreThereInTheOrderOfTheirGroups) {
  alignas(16) const std::array<uint32_t, 8> from{1, 2, 3, 4, 5, 6, 7, 8};
  std::array<uint32_t, 2> early{}, late{};
  run_block(
      [&] {
        const uint32_t here = shared_address(dynamic_shared<16>());
        for (uint32_t i = 0; i < 2; ++i) {
          fetch_chunk<16>(here + 16 * i, from.data() + 4 * i);
          end_of_chunks();
        }
        wait_for_chunks<1>();
        early = {shared_uint(here + 12), shared_uint(here + 28)};
        wait_for_chunks<0>();
        late = {shared_uint(here + 12), shared_uint(here + 28)};
      },
      1);
  EXPECT_EQ(early, (std::array<uint32_t, 2>{4, 0xffffffff}));
  EXPECT_EQ(late, (std::array<uint32_t, 2>{4, 8}));
}

// A warpgroup's product of tiles that lie as the copy engine leaves them, with k together and with rows together.
template <int kMajor>
void expect_products() {
  constexpr uint32_t kRows = 64, kColumns = 64;
  std::mt19937 random(3);
  std::vector<uint16_t> a(kRows * 16), b(kColumns * 16);
  for (auto* const numbers : {&a, &b}) {
    for (uint16_t& bits : *numbers) bits = static_cast<uint16_t>(0x3f00U + random() % 256);
  }
  std::vector<float> got(kRows * kColumns), unwaited(kRows * kColumns);
  run_block(
      [&] {
        const uint32_t here = shared_address(dynamic_shared<1024>()), there = here + kPanel;
        const auto put = [](uint32_t tile, uint32_t row, uint32_t k, uint16_t bits) {
          const uint32_t at = tile + (kMajor == 0 ? 128 * row + 2 * k : 128 * k + 2 * row);
          std::memcpy(gpu_by_hand::shared_at(at ^ (at >> 7 & 7U) << 4), &bits, 2);
        };
        const unsigned i = threadIdx.x;
        if (i < kRows) {
          for (uint32_t k = 0; k < 16; ++k) {
            put(here, i, k, a[i * 16 + k]);
            put(there, i, k, b[i * 16 + k]);
          }
        }
        fence_for_copies();
        __syncthreads();
        float d[kColumns / 2] = {};
        multiply_shared<kMajor, kMajor>(d, tile_descriptor(here, 1024, 1024), tile_descriptor(there, 1024, 1024), 0);
        wgmma_commit();
        const auto keep_in = [&](std::vector<float>& to) {
          for (uint32_t j = 0; j < kColumns / 2; ++j) {
            const uint32_t row = i / 32 * 16 + i % 32 / 4 + j % 4 / 2 * 8, column = j / 4 * 8 + 2 * (i % 4) + j % 2;
            to[row * kColumns + column] = d[j];
          }
        };
        keep_in(unwaited);
        wgmma_wait<0>();
        keep_in(got);
      },
      kThreadsHere, 2 * kPanel);
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t n = 0; n < kColumns; ++n) {
      std::array<Bf16, kTensorCoreStep> x, y;
      for (size_t k = 0; k < x.size(); ++k) {
        x[k].bits = a[r * 16 + k];
        y[k].bits = b[n * 16 + k];
      }
      ASSERT_EQ(got[r * kColumns + n], tensor_core_step(0, x, y)) << r << ", " << n;
      ASSERT_EQ(unwaited[r * kColumns + n], 0) << "nobody has waited yet";
    }
  }
}

TEST(GpuByHand, ProductsOfAWarpgroup) {
  expect_products<0>();
  expect_products<1>();
}

TEST(GpuByHand, LanesExchangeAndVote) {
  std::array<int, 32> with{}, up{};
  std::array<unsigned, 32> odd{}, equal{};
  run_block(
      [&] {
        const auto i = static_cast<int>(threadIdx.x);
        if (i >= 24) return;  // who has ended is not waited for
        const unsigned mask = i < 16 ? 0x0000ffffU : 0x00ff0000U;
        with[threadIdx.x] = __shfl_xor_sync(mask, 10 * i, 2, 16);
        up[threadIdx.x] = __shfl_up_sync(mask, i, 1U, 4);
        odd[threadIdx.x] = __ballot_sync(mask, i % 2);
        equal[threadIdx.x] = __match_any_sync(mask, i / 4);
      },
      32);
  EXPECT_EQ(with[5], 70);
  EXPECT_EQ(up[4], 4);
  EXPECT_EQ(up[6], 5);
  EXPECT_EQ(odd[3], 0x0000aaaaU);
  EXPECT_EQ(odd[20], 0x00aa0000U);
  EXPECT_EQ(equal[9], 0x00000f00U);
}

// The host is ahead of the GPU until it waits; of its memory what is pinned is read only then.
TEST(GpuByHand, WorkIsDoneWhenTheHostWaits) {
  int *pinned = nullptr, *device = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 2 * sizeof(int)), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(reinterpret_cast<void**>(&device), 3 * sizeof(int), stream()), cudaSuccess);
  int plain = 1, got[3] = {};
  pinned[0] = 1;
  cudaMemcpyAsync(device, &plain, sizeof(int), cudaMemcpyHostToDevice, stream());
  cudaMemcpyAsync(device + 1, pinned, sizeof(int), cudaMemcpyHostToDevice, stream());
  launch_here([&] { device[2] = plain; }, dim3(), 1);
  cudaMemcpyAsync(pinned + 1, device + 2, sizeof(int), cudaMemcpyDeviceToHost, stream());
  plain = pinned[0] = 2;
  pinned[1] = 7;
  EXPECT_EQ(pinned[1], 7);
  cudaMemcpyAsync(got, device, sizeof(got), cudaMemcpyDeviceToHost,
                  stream());  // waits: what is not pinned is there at once
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], 2);
  EXPECT_EQ(got[2], 2);
  EXPECT_EQ(pinned[1], 2);
  EXPECT_EQ(cudaFreeAsync(device, stream()), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(device, stream()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// Three kernels: what the first writes is seen by the next ones after they waited, and where they may start early not before.
// Where the second lets the third start before it waits itself, that one is as early.
TEST(GpuByHand, KernelsStartAsEarlyAsTheyMay) {
  for (const bool early : {false, true}) {
    for (const bool lets_next_start : {false, true}) {
      int first = 0, second = 0;
      std::array<int, 2> second_saw{-1, -1}, third_saw{-1, -1}, third_saw_second{-1, -1};
      launch_here([&] { first = 1; }, dim3(), 1);
      launch_here(
          [&] {
            if (lets_next_start) let_next_start();
            second_saw[0] = first;
            wait_for_last();
            second_saw[1] = first;
            second = 1;
          },
          dim3(), 1, 0, early);
      launch_here(
          [&] {
            third_saw[0] = first;
            third_saw_second[0] = second;
            wait_for_last();
            third_saw[1] = first;
            third_saw_second[1] = second;
          },
          dim3(), 1, 0, early);
      ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
      const int before = early ? 0 : 1;
      EXPECT_EQ(second_saw, (std::array{before, 1}));
      EXPECT_EQ(third_saw, (std::array{early && lets_next_start ? 0 : 1, 1}));
      EXPECT_EQ(third_saw_second, (std::array{before, 1}));
    }
  }
}

// What a block brought before it waited it has afterwards, whatever others did meanwhile; blocks that are not begun early run too.
TEST(GpuByHand, BlocksThatStartEarlyKeepWhatTheyHave) {
  constexpr unsigned kBlocks = 5;
  alignas(16) const std::array<uint32_t, 4> weights{1, 2, 3, 4};
  std::array<uint32_t, kBlocks> sums{};
  uint32_t scale = 0;
  launch_here(
      [&] {
        reinterpret_cast<uint32_t*>(dynamic_shared<16>())[threadIdx.x] = 77;
        scale = 10;
      },
      dim3(3), 32, 1024);
  launch_here(
      [&] {
        const uint32_t here = shared_address(dynamic_shared<16>());
        if (threadIdx.x == 0) fetch_chunk<16>(here, weights.data());
        end_of_chunks();
        wait_for_last();
        wait_for_chunks<0>();
        __syncthreads();
        if (threadIdx.x == 1) sums[blockIdx.x] = scale * (shared_uint(here) + shared_uint(here + 12)) + blockIdx.x;
      },
      dim3(kBlocks), 64, 1024, true);
  ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
  for (uint32_t i = 0; i < kBlocks; ++i) EXPECT_EQ(sums[i], 50 + i);
}

TEST(GpuByHand, BlocksThatDoNotWaitForTheKernelBeforeAreNamed) {
  const auto run = [](bool all_wait) {
    launch_here([] {}, dim3(), 1);
    launch_here(
        [=] {
          if (all_wait || blockIdx.x != 1) wait_for_last();
        },
        dim3(3), 1, 0, true);
    cudaStreamSynchronize(stream());
  };
  run(true);
  EXPECT_DEATH(run(false), "a block has not waited for the kernel before");
}

TEST(GpuByHand, LaunchesThatDoNotFitAreErrors) {
  EXPECT_EQ(run_block([] {}, 1025), cudaErrorInvalidValue);
  EXPECT_EQ(run_block([] {}, 32, gpu_by_hand::kSharedWithoutAsking + 1), cudaErrorInvalidValue);
  EXPECT_EQ(launch_here([] {}, dim3(1, 65536), 32), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(GpuByHandDeathTest, KernelsThatStandStillAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_block([] {
                 if (threadIdx.x < 64) meet<1, 128>();
               }),
               "a test's kernel stands still.*wait for other threads");
  EXPECT_DEATH(run_block([] {
                 const uint32_t barrier = shared_address(dynamic_shared<16>());
                 if (threadIdx.x == 0) barrier_init(barrier, 2);
                 __syncthreads();
                 barrier_wait(barrier, 0);
               }),
               "wait for a barrier in shared memory");
  EXPECT_DEATH(run_block(
                   [] {
                     const uint32_t at = shared_address(dynamic_shared<16>());
                     barrier_init(at, 1);
                     load_bytes(at + 4096, nullptr, 16, at);
                   },
                   1),
               "past the shared memory of its block");
  EXPECT_DEATH(run_block([] {
                 if (threadIdx.x % 2 == 0) {
                   __syncwarp();
                 } else {
                   transpose(1);
                 }
               }),
               "different instructions");
}

}  // namespace
}  // namespace qkv::test
