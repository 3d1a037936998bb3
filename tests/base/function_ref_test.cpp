#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>

namespace qkv {
namespace {

int call_twice(FunctionRef<int(int)> f) {
  return f(1) + f(2);
}

TEST(FunctionRef, CallsWhatItRefersTo) {
  int calls = 0;
  EXPECT_EQ(call_twice([&](int x) { return ++calls, 10 * x; }), 30);
  EXPECT_EQ(calls, 2);

  auto counter = [n = 0](int x) mutable { return n += x; };
  EXPECT_EQ(call_twice(counter), 1 + 3);
  EXPECT_EQ(counter(0), 3);  // the callable itself was used, not a copy

  const std::function<int(int)> constant = [](int x) { return -x; };
  EXPECT_EQ(call_twice(constant), -3);

  int (*pointer)(int) = [](int x) { return x + 1; };
  EXPECT_EQ(call_twice(pointer), 5);
}

TEST(FunctionRef, ACopyRefersToTheSame) {
  auto counter = [n = 0]() mutable { return ++n; };
  const FunctionRef<int()> one(counter);
  const FunctionRef<int()> two(one);
  EXPECT_EQ(one(), 1);
  EXPECT_EQ(two(), 2);
}

TEST(FunctionRef, PassesArgumentsThrough) {
  auto take = [](std::unique_ptr<int> p, int& out) { out = *p; };
  const FunctionRef<void(std::unique_ptr<int>, int&)> ref(take);
  int out = 0;
  ref(std::make_unique<int>(7), out);
  EXPECT_EQ(out, 7);
}

static_assert(sizeof(FunctionRef<void()>) == 2 * sizeof(void*));
static_assert(!std::is_constructible_v<FunctionRef<int(int)>, std::function<int(std::string)>>);

}  // namespace
}  // namespace qkv
