// Ranks whose GPUs exchange memory themselves. More than one rank needs more than one GPU.
#include <gtest/gtest.h>

#include <numeric>

#include "dist/comm.h"
#include "kernels/tables.h"

namespace qkv {
namespace {

TEST(NcclComm, OneRankGetsItsOwnBytesOrTheReason) {
  std::string missing;
  for (const Kernels* table : kernels::all_tables()) {
    Device& device = table->device();
    std::string why;
    const std::unique_ptr<Comm> comm = nccl_comm(self_comm(), device, why);
    if (comm == nullptr) {
      EXPECT_NE(why.find(device.stream() == nullptr ? "not on a GPU" : "libnccl.so.2"), std::string::npos) << why;
      if (device.stream() != nullptr) missing = why;
      continue;
    }
    EXPECT_STREQ(comm->name(), "nccl");
    constexpr size_t kBytes = 1 << 20;
    std::vector<std::byte> sent(kBytes), got(kBytes);
    for (size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<std::byte>(i * i % 251);
    const Storage from(device, DType::i8, kBytes), to(device, DType::i8, kBytes);
    device.upload(from.data(), sent.data(), kBytes);
    const std::span<const std::byte> send(from.data(), kBytes);
    const std::span<std::byte> receive(to.data(), kBytes);
    comm->exchange_on(device, {&send, 1}, {&receive, 1});
    device.download(got.data(), to.data(), kBytes);
    EXPECT_EQ(got, sent);
  }
  if (!missing.empty()) GTEST_SKIP() << "there is a GPU, but nothing was sent: " << missing;
}

}  // namespace
}  // namespace qkv
