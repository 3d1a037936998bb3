#include "kernels/tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/expect_error.h"
#include "base/scoped_variable.h"

namespace qkv::test {
namespace {

TEST(KernelTables, AreComplete) {
  for (const Kernels* table : kernels::all_tables()) {
#define QKV_KERNEL(kernel, Args) EXPECT_NE(table->kernel, nullptr) << table->name << "." #kernel;
    QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
  }
}

TEST(KernelTables, HaveNamesOfTheirOwn) {
  const auto tables = kernels::all_tables();
  for (size_t i = 0; i < tables.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_STRNE(tables[i]->name, tables[j]->name);
  }
  const bool all = std::getenv("QKV_TABLES") == nullptr;
  EXPECT_STREQ(tables.front()->name, all ? "ref" : std::getenv("QKV_TABLES"));
}

// A GPU that nobody asked for is not taken where it is too small, or where QKV_ISA names a table of the CPU.
TEST(KernelTables, AreChosenByDevice) {
  using kernels::DeviceChoice;
  EXPECT_EQ(&kernels::table_for(DeviceChoice::cpu, 0), &kernels::best_table());
  constexpr int64_t kTooMuch = int64_t{1} << 50;
  EXPECT_EQ(&kernels::table_for(DeviceChoice::automatic, kTooMuch), &kernels::best_table());
  const char* why = nullptr;
  if (kernels::cuda::available(&why)) {
    EXPECT_EQ(&kernels::table_for(DeviceChoice::automatic, 0), &kernels::cuda::table());
    EXPECT_EQ(&kernels::table_for(DeviceChoice::cuda, kTooMuch), &kernels::cuda::table());
    const ScopedVariable isa("QKV_ISA", "plain");
    EXPECT_EQ(&kernels::table_for(DeviceChoice::automatic, 0), &kernels::best_table());
  } else {
    EXPECT_EQ(&kernels::table_for(DeviceChoice::automatic, 0), &kernels::best_table());
    EXPECT_STRNE(why, "");
    expect_error([] { kernels::table_for(DeviceChoice::cuda, 0); }, {"there is no GPU to use", why});
  }
}

// A GPU that is seen but cannot be used ends no program that did not ask for it; why is said once.
TEST(KernelTables, AreTheCpusWhereTheGpuFails) {
  Kernels held = kernels::ref::table();
  held.device = []() -> Device& { QKV_FAIL("another process has the GPU to itself", Hint("this is a test")); };
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(&kernels::usable_table(held, 0), &kernels::best_table());
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("device cpu: another process has the GPU to itself"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  const Kernels& there = kernels::ref::table();
  EXPECT_EQ(&kernels::usable_table(there, 0), &there);
  EXPECT_EQ(&kernels::usable_table(there, int64_t{1} << 50), &kernels::best_table());
}

}  // namespace
}  // namespace qkv::test
