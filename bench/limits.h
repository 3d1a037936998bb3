// The limits of this machine: products with operands in L1, and memory reads; of a GPU, products with operands in shared
// memory, and copies. They are measured repeatedly during a run, next to what is compared with them, because the machine
// may be shared and AMX has a slow mode.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "core/storage.h"
#include "loops/loops.h"

namespace qkv::bench {

std::string cpu_name();
std::string device_name(const Device& device);  // the CPU or the GPU

enum class Limit {
  f32_plain,
  f32_avx2,
  f32_avx512,
  bf16_avx512,
  int8_avx512,
  bf16_amx,
  int8_amx,
  read_one,
  read_eight,
  f32_gpu,
  bf16_gpu,
  copy_gpu,
};
constexpr int kLimits = static_cast<int>(Limit::copy_gpu) + 1;

struct LimitText {
  const char* name;
  const char* label;  // short
  const char* unit;
  double scale;  // operations or bytes per second of one unit
};
const LimitText& text_of(Limit limit);

double best_of(const std::vector<double>& rates);
double lowest_of(const std::vector<double>& rates);
double median_of(std::vector<double> values);

class Limits {
 public:
  static constexpr int64_t kReadBytes = int64_t{1} << 30;

  enum class Of { cpu, gpu };
  Limits(ThreadPool& pool, Of of);

  bool usable(Limit limit) const { return usable_[index(limit)]; }
  int threads() const { return pool_.threads(); }
  Of of() const { return of_; }

  // One reading on 1 thread or on all, in operations or bytes per second: the best of a few windows, because another
  // process may have interrupted a window.
  enum class On { one, all };
  double read(Limit limit, On on);
  const std::vector<double>& readings(Limit limit, On on) const { return readings_[index(limit)][index(on)]; }

  // By the readings so far: the fastest instructions for products of f32, bf16 and int8 (f32 arithmetic may be).
  Limit fastest_f32() const;
  Limit fastest_bf16() const;
  Limit fastest_int8() const;
  Limit memory() const { return of_ == Of::gpu ? Limit::copy_gpu : Limit::read_eight; }

  // One line for each AMX limit that was read in its slow mode. On a busy machine that may not be the cause.
  std::vector<std::string> notes(bool busy) const;

 private:
  template <class Enum>
  static size_t index(Enum value) {
    return static_cast<size_t>(value);
  }
  Limit fastest(std::initializer_list<Limit> limits) const;
  double window(Limit limit, int threads);
  template <class Body>
  double spinning_window(int threads, const Body& body);
  double read_window(int streams, int threads);
  double product_window(Limit limit, int threads);

  ThreadPool& pool_;
  Of of_;
  std::array<bool, kLimits> usable_{};
  std::array<int64_t, kLimits> rounds_{};  // per window; grows until a window is long enough
  std::array<std::array<std::vector<double>, 2>, kLimits> readings_;
  ReadLoop read_loop_;
  int64_t share_;  // bytes each thread reads when all do
  Storage memory_, panels_, sinks_;
};

inline Limits::Of of(Limit limit) {
  return limit >= Limit::f32_gpu ? Limits::Of::gpu : Limits::Of::cpu;
}

}  // namespace qkv::bench
