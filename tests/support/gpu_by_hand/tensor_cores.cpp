#include "tensor_cores.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <vector>

#include "block.h"

namespace gpu_by_hand {
namespace {

// Compiled for several CPUs; the one at hand is chosen when the program starts.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define QKV_FOR_THIS_CPU __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define QKV_FOR_THIS_CPU
#endif

constexpr int kFractionBits = 25, kNone = -100000, kWarpRows = 16;

struct Groups {  // of a thread; the last one is open
  std::deque<std::vector<Product>> all;
};
std::array<Groups, kMostThreads> groups;

struct Wait {
  Groups* mine;
  size_t but_the_last;
  int warp;
};

using Sixteen = int32_t __attribute__((vector_size(4 * kStep)));

#define QKV_ALWAYS_INLINE __attribute__((always_inline)) inline
QKV_ALWAYS_INLINE Sixteen numbers(const int32_t (&from)[kStep]) {
  Sixteen v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
QKV_ALWAYS_INLINE Sixteen turned(Sixteen v, int by) {
  const Sixteen lanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return __builtin_shuffle(v, (lanes + by) & 15);
}
QKV_ALWAYS_INLINE int32_t largest(Sixteen v) {
  for (const int by : {8, 4, 2, 1}) {
    const Sixteen other = turned(v, by);
    v = v > other ? v : other;
  }
  return v[0];
}
QKV_ALWAYS_INLINE int32_t sum(Sixteen v) {
  for (const int by : {8, 4, 2, 1}) v += turned(v, by);
  return v[0];
}

uint16_t number_at(uint32_t address) {
  address ^= (address >> 7 & 7U) << 4;  // the 128-byte swizzle
  if (address + 2 > dynamic_shared_bytes()) fault("a product reads past the shared memory of its block");
  uint16_t bits = 0;
  std::memcpy(&bits, shared_at(address), sizeof(bits));
  return bits;
}

// Row r of a tile: sixteen numbers along k.
void row_of_tile(Operand& made, uint64_t descriptor, bool along_rows, size_t r) {
  const auto field = [&](int from) { return static_cast<uint32_t>(descriptor >> from & 0x3FFFU) << 4; };
  const uint32_t start = field(0), leading = field(16), stride = field(32);
  uint16_t bits[kStep];
  const auto row = static_cast<uint32_t>(r);
  for (uint32_t k = 0; k < kStep; ++k) {
    bits[k] = along_rows ? number_at(start + row / 64 * leading + k / 8 * stride + k % 8 * 128 + row % 64 * 2)
                         : number_at(start + row / 8 * stride + row % 8 * 128 + 2 * k);
  }
  make_operand(made, bits);
}

void row_of_registers(Operand& made, const std::array<const Product*, kWarpSize>& lanes, size_t r) {
  uint16_t bits[kStep];
  for (size_t k = 0; k < kStep; ++k) {
    const size_t lane = r % 8 * 4 + k % 8 / 2;
    const uint32_t pair = lanes[lane]->registers[(r >= 8 ? 1 : 0) + (k >= 8 ? 2 : 0)];
    bits[k] = static_cast<uint16_t>(pair >> (16 * (k % 2)));
  }
  make_operand(made, bits);
}

void multiply(const std::array<const Product*, kWarpSize>& lanes, int warp) {
  const Product& first = *lanes[0];
  for (const Product* p : lanes) {
    if (p->a != first.a || p->b != first.b || p->add != first.add || p->columns != first.columns) {
      fault("lanes of a warp multiply different tiles");
    }
  }
  std::array<Operand, kWarpRows> a;
  for (size_t r = 0; r < kWarpRows; ++r) {
    if (first.from_registers) {
      row_of_registers(a[r], lanes, r);
    } else {
      row_of_tile(a[r], first.a, first.a_along_rows, static_cast<size_t>(16 * (warp % 4)) + r);
    }
  }
  for (size_t n = 0; n < static_cast<size_t>(first.columns); ++n) {
    Operand b;
    row_of_tile(b, first.b, first.b_along_rows, n);
    std::array<float*, kWarpRows> sums;
    for (size_t r = 0; r < kWarpRows; ++r) {
      sums[r] = &lanes[r % 8 * 4 + n % 8 / 2]->d[n / 8 * 4 + r / 8 * 2 + n % 2];
      if (!first.add) *sums[r] = 0;
    }
    steps(sums.data(), kWarpRows, a.data(), b);
  }
}

// The oldest group of every lane of a warp.
void carry_out(void* const* waits) {
  const auto& first = *static_cast<const Wait*>(waits[0]);
  const size_t count = first.mine->all.front().size();
  for (size_t i = 0; i < count; ++i) {
    std::array<const Product*, kWarpSize> lanes{};
    for (size_t lane = 0; lane < kWarpSize; ++lane) {
      const auto& group = static_cast<const Wait*>(waits[lane])->mine->all.front();
      if (group.size() != count) fault("lanes of a warp have different numbers of products");
      lanes[lane] = &group[i];
    }
    multiply(lanes, first.warp);
  }
  for (size_t lane = 0; lane < kWarpSize; ++lane) static_cast<Wait*>(waits[lane])->mine->all.pop_front();
}

// c + a b
QKV_ALWAYS_INLINE float step(float c, const Operand& a, const Operand& b) {
  const auto bits = std::bit_cast<uint32_t>(c);
  const int e = static_cast<int>(bits >> 23 & 255U);
  if ((a.finite & b.finite) == 0 || e == 255) {
    double sum = c;
    for (int i = 0; i < kStep; ++i) sum += static_cast<double>(a.number[i]) * static_cast<double>(b.number[i]);
    return static_cast<float>(sum);
  }
  const auto size_of_c = static_cast<int32_t>(e == 0 ? bits & 0x7fffffU : (bits & 0x7fffffU) | 0x800000U);
  const int exponent_of_c = size_of_c == 0 ? 2 * kNone : std::max(e, 1) - 127;

  const Sixteen exponents = numbers(a.exponent) + numbers(b.exponent);
  const int top = std::max(largest(exponents), exponent_of_c);
  if (top <= kNone / 2) return 0;
  const Sixteen products = numbers(a.significand) * numbers(b.significand), sign = products >> 31,
                sizes = (products ^ sign) - sign, far = top - exponents, near = far < 31 ? far : Sixteen{} + 31,
                kept = (sizes << (kFractionBits - 14)) >> near;
  const int32_t some = sum((kept ^ sign) - sign);
  const int down = std::min(top - exponent_of_c, 31);
  const int32_t kept_of_c = (size_of_c << (kFractionBits - 23)) >> down;
  const int64_t total = int64_t{some} + ((bits >> 31) != 0 ? -kept_of_c : kept_of_c);
  if (total == 0) return 0;

  const auto magnitude = static_cast<uint64_t>(total < 0 ? -total : total);
  const int lsb = top - kFractionBits, width = 64 - std::countl_zero(magnitude), exponent = width - 1 + lsb;
  const int keeps = exponent >= -126 ? 24 : std::max(24 - (-126 - exponent), 0), cut = std::max(width - keeps, 0);
  const auto scale = std::bit_cast<double>(static_cast<uint64_t>(1023 + lsb + cut) << 52);
  const double value = static_cast<double>(magnitude >> cut) * scale;
  return static_cast<float>(total < 0 ? -value : value);
}

}  // namespace

QKV_FOR_THIS_CPU void make_operand(Operand& made, const uint16_t (&bf16)[kStep]) {
  int32_t finite = 1;
  for (int i = 0; i < kStep; ++i) {
    const int32_t e = bf16[i] >> 7 & 255, m = bf16[i] & 127, size = e == 0 ? m : m | 128;
    made.significand[i] = (bf16[i] & 0x8000U) != 0 ? -size : size;
    made.exponent[i] = size == 0 ? kNone : (e > 1 ? e : 1) - 127;
    made.number[i] = std::bit_cast<float>(static_cast<uint32_t>(bf16[i]) << 16);
    finite &= e != 255 ? 1 : 0;
  }
  made.finite = finite;
}

QKV_FOR_THIS_CPU void steps(float* const* sums, int count, const Operand* rows, const Operand& column) {
  for (int i = 0; i < count; ++i) *sums[i] = step(*sums[i], rows[i], column);
}

void add_product(const Product& product) {
  auto& mine = groups[static_cast<size_t>(thread_index())].all;
  if (mine.empty()) mine.emplace_back();
  mine.back().push_back(product);
}

void end_products() {
  auto& mine = groups[static_cast<size_t>(thread_index())].all;
  if (mine.empty()) mine.emplace_back();
  mine.emplace_back();
}

void wait_products(size_t but_the_last) {
  const int warpgroup = thread_index() / (4 * kWarpSize);
  meet_warpgroup(warpgroup);
  auto& mine = groups[static_cast<size_t>(thread_index())];
  Wait wait{&mine, but_the_last, thread_index() / kWarpSize};
  meet_lanes(kAllLanes, &wait, [](void* const* waits, unsigned lanes) {
    if (lanes != kAllLanes) fault("not all lanes of a warp wait for products");
    const auto& first = *static_cast<const Wait*>(waits[0]);
    while (first.mine->all.size() > first.but_the_last + 1) carry_out(waits);
  });
  if (mine.all.size() == 1 && mine.all.front().empty()) mine.all.clear();
  meet_warpgroup(warpgroup);  // what one thread then gives back, no other warp reads any more
}

void products_are_done() {
  auto& mine = groups[static_cast<size_t>(thread_index())].all;
  if (!mine.empty() && !(mine.size() == 1 && mine.front().empty())) fault("a thread ends before its products");
  mine.clear();
}

}  // namespace gpu_by_hand
