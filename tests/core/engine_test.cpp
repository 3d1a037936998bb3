#include "core/engine.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/says.h"
#include "kernels/tables.h"
#include "support/guarded_device.h"

namespace qkv::test {
namespace {

TEST(Engine, HasTheThreadsItIsTold) {
  for (const int threads : {1, 2, 3}) {
    const Engine engine(kernels::ref::table(), {.threads = threads});
    EXPECT_EQ(engine.threads(), threads);
    EXPECT_EQ(engine.exec().pool->threads(), threads);
  }
  EXPECT_GE(Engine(kernels::ref::table()).threads(), 1);
}

TEST(Engine, RefusesAnImpossibleNumberOfThreads) {
  expect_says([] { Engine(kernels::ref::table(), {.threads = -1}); }, {"threads", "-1"});
}

TEST(Engine, GivesEveryThreadItsScratch) {
  const Engine engine(kernels::ref::table(), {.threads = 3});
  const Tensor scratch = engine.exec().scratch;
  EXPECT_EQ(scratch.dtype(), DType::i8);
  EXPECT_EQ(scratch.rank(), 2);
  EXPECT_EQ(scratch.dim(0), 3);
  EXPECT_GE(scratch.dim(1), 1 << 20);
  std::memset(scratch.data(), 1, static_cast<size_t>(scratch.count()));
}

TEST(Engine, PutsScratchOnItsDevice) {
  GuardedDevice device;
  const Engine engine(guarded_kernels(), {.threads = 1, .device = &device});
  EXPECT_EQ(&engine.device(), &device);
  EXPECT_EQ(&engine.exec().scratch.device(), &device);
  EXPECT_EQ(&Engine(kernels::ref::table(), {.threads = 1}).device(), &cpu_device());
}

TEST(Engine, MakesContextsThatCarryItsTable) {
  const Engine engine(kernels::ref::table(), {.threads = 1});
  Arena arena(engine.device());
  const Context cx = engine.context(arena, Precision::bf16());
  EXPECT_EQ(&cx.kernels, &kernels::ref::table());
  EXPECT_EQ(&cx.exec, &engine.exec());
  EXPECT_EQ(&cx.arena, &arena);
  EXPECT_EQ(cx.precision.compute, DType::bf16);
  EXPECT_EQ(cx.precision.exact, DType::f32);
  EXPECT_EQ(cx.tape, nullptr);
  EXPECT_EQ(cx.probe, nullptr);
  EXPECT_FALSE(cx.training);
}

TEST(Engine, EveryTableIsComplete) {
  for (const Kernels* table : {&Kernels::none(), &guarded_kernels(), &kernels::ref::table(), &kernels::cpu::table()}) {
#define QKV_KERNEL(kernel, Args) EXPECT_NE(table->kernel, nullptr) << table->name << " has no " #kernel;
    QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
  }
}

}  // namespace
}  // namespace qkv::test
