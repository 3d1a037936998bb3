#include "timed_kernels.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>

namespace qkv::bench {
namespace {

enum class Which : size_t {
#define QKV_KERNEL(kernel, Args) kernel,
  QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
      count
};

constexpr std::array kNames{
#define QKV_KERNEL(kernel, Args) #kernel,
    QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
};

struct Sum {
  std::chrono::steady_clock::duration time{};
  int64_t calls = 0;
};

const Kernels* under = nullptr;
bool timing = true, queues = false;

// Until the device has done what was queued. What went wrong there is kept for the next download.
void wait(const Exec& exec) noexcept {
  try {
    exec.device->download(nullptr, nullptr, 0);
  } catch (const std::exception&) {
    return;
  }
}
std::array<Sum, static_cast<size_t>(Which::count)> sums;

template <Which W, auto Member, class Args>
void timed(const Exec& exec, const Args& a) noexcept {
  if (!timing) return (under->*Member)(exec, a);
  const auto start = std::chrono::steady_clock::now();
  (under->*Member)(exec, a);
  if (queues) wait(exec);
  Sum& sum = sums[static_cast<size_t>(W)];
  sum.time += std::chrono::steady_clock::now() - start;
  ++sum.calls;
}

}  // namespace

const Kernels& timed_kernels(const Kernels& table) {
  static Kernels made;
  under = &table;
  made = table;
  queues = &table.device() != &cpu_device();
#define QKV_KERNEL(kernel, Args) made.kernel = timed<Which::kernel, &Kernels::kernel, Args>;
  QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
  return made;
}

void time_kernels(bool on) {
  timing = on;
}

std::vector<KernelTime> take_kernel_times() {
  std::vector<KernelTime> times;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].calls == 0) continue;
    times.push_back({kNames[i], std::chrono::duration<double>(sums[i].time).count(), sums[i].calls});
  }
  sums.fill({});
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return times;
}

}  // namespace qkv::bench
