#include "kernels/tables.h"

#include <gtest/gtest.h>

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
  EXPECT_STREQ(tables.front()->name, "ref");
}

}  // namespace
}  // namespace qkv::test
