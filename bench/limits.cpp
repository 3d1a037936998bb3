#include "limits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "kernels/cpu/isa.h"
#if defined(QKV_WITH_CUDA)
#include "kernels/cuda/limits.h"
#endif
#include "random.h"

namespace qkv::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kShortestWindow = 0.4e-3, kWantedWindow = 1.5e-3;  // seconds
constexpr int kWindows = 3;                                         // of one reading

constexpr std::array<LimitText, kLimits> kTexts{{
    {"f32, no FMA, SSE2", "SSE2", "TFLOP/s", 1e12},
    {"f32 FMA, AVX2", "AVX2", "TFLOP/s", 1e12},
    {"f32 FMA, AVX-512", "AVX-512", "TFLOP/s", 1e12},
    {"bf16, AVX-512 vdpbf16ps", "vdpbf16ps", "TFLOP/s", 1e12},
    {"int8, AVX-512 VNNI", "VNNI", "TOP/s", 1e12},
    {"bf16, AMX", "AMX", "TFLOP/s", 1e12},
    {"int8, AMX", "AMX int8", "TOP/s", 1e12},
    {"read, one stream", "one stream", "GB/s", 1e9},
    {"read, eight streams", "eight streams", "GB/s", 1e9},
    {"f32 FMA, GPU", "FMA", "TFLOP/s", 1e12},
    {"bf16, tensor cores", "tensor cores", "TFLOP/s", 1e12},
    {"copy, GPU memory", "copy", "GB/s", 1e9},
}};

#if defined(__x86_64__)
constexpr std::array<const ProductLoop*, 7> kLoops{&f32_plain_loop,   &f32_avx2_loop,    &f32_avx512_loop,
                                                   &bf16_avx512_loop, &int8_avx512_loop, &bf16_amx_loop,
                                                   &int8_amx_loop};

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

std::array<bool, kLimits> find_usable() {
  const bool avx512 = has_avx512();
  return {true,
          has_avx2(),
          avx512,
          avx512 && __builtin_cpu_supports("avx512bf16"),
          avx512 && __builtin_cpu_supports("avx512vnni"),
          kernels::cpu::has_tiles(),
          kernels::cpu::has_tiles(),
          true,
          true,
          false,
          false,
          false};
}

ReadLoop best_read() {
  return has_avx512() ? read_avx512_loop : has_avx2() ? read_avx2_loop : read_plain_loop;
}

void pause_cpu() {
  _mm_pause();
}
#else
constexpr std::array<const ProductLoop*, 1> kLoops{&f32_plain_loop};

std::array<bool, kLimits> find_usable() {
  std::array<bool, kLimits> usable{};
  for (const Limit limit : {Limit::f32_plain, Limit::read_one, Limit::read_eight}) {
    usable[static_cast<size_t>(limit)] = true;
  }
  return usable;
}

ReadLoop best_read() {
  return read_plain_loop;
}

void pause_cpu() {}
#endif

std::array<bool, kLimits> usable_on(Limits::Of of) {
  if (of == Limits::Of::cpu) return find_usable();
  std::array<bool, kLimits> usable{};
  for (const Limit limit : {Limit::f32_gpu, Limit::bf16_gpu, Limit::copy_gpu})
    usable[static_cast<size_t>(limit)] = true;
  return usable;
}

double gpu_window(Limit limit) {
#if defined(QKV_WITH_CUDA)
  if (limit == Limit::f32_gpu) return kernels::cuda::f32_operations_per_second();
  return limit == Limit::bf16_gpu ? kernels::cuda::bf16_operations_per_second()
                                  : kernels::cuda::copy_bytes_per_second();
#else
  QKV_FAIL("the limit ", text_of(limit).name, " was asked for in a build without kernels for GPUs");
#endif
}

// Random data for each loop: f32, bf16, int8.
enum Panel : int64_t { f32_panel, bf16_panel, int8_panel };
constexpr int64_t kPanels = 3;

Panel panel_of(Limit limit) {
  if (limit == Limit::bf16_avx512 || limit == Limit::bf16_amx) return bf16_panel;
  return limit == Limit::int8_avx512 || limit == Limit::int8_amx ? int8_panel : f32_panel;
}

void fill_panels(ThreadPool& pool, std::byte* to) {
  constexpr auto kCount = [](int64_t size) { return kPanelBytes / size; };
  fill(pool, reinterpret_cast<float*>(to + f32_panel * kPanelBytes), kCount(4),
       [](uint64_t i) { return random_float(1, i); });
  fill(pool, reinterpret_cast<Bf16*>(to + bf16_panel * kPanelBytes), kCount(2),
       [](uint64_t i) { return to_bf16(random_float(2, i)); });
  fill(pool, reinterpret_cast<uint8_t*>(to + int8_panel * kPanelBytes), kCount(1),
       [](uint64_t i) { return static_cast<uint8_t>(random_bits(3, i)); });
}

// The part of each of eight streams is not a power of two, so that streams do not compete for one cache set.
int64_t share_of(int threads) {
  constexpr int64_t kPage = 4096, kSkew = 9 * 64;
  return 8 * ((Limits::kReadBytes / threads / 8 / kPage + 1) * kPage + kSkew);
}

}  // namespace

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::string device_name(const Device& device) {
#if defined(QKV_WITH_CUDA)
  if (&device != &cpu_device()) return kernels::cuda::gpu_name();
#endif
  return &device == &cpu_device() ? cpu_name() : device.name();
}

const LimitText& text_of(Limit limit) {
  return kTexts[static_cast<size_t>(limit)];
}

double best_of(const std::vector<double>& rates) {
  return rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
}

double lowest_of(const std::vector<double>& rates) {
  return rates.empty() ? 0 : *std::min_element(rates.begin(), rates.end());
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Limits::Limits(ThreadPool& pool, Of of)
    : pool_(pool),
      of_(of),
      usable_(usable_on(of)),
      read_loop_(best_read()),
      share_(share_of(pool.threads())),
      memory_(cpu_device(), DType::i8, share_ * pool.threads()),
      panels_(cpu_device(), DType::i8, kPanels * kPanelBytes * pool.threads()),
      sinks_(cpu_device(), DType::i8, kSinkBytes * pool.threads()) {
  rounds_.fill(1);
  pool.run(pool.threads(), [&](int64_t thread, int) {  // first touch by the thread that reads it
    auto* words = reinterpret_cast<uint64_t*>(memory_.data() + thread * share_);
    for (int64_t i = 0; i < share_ / 8; ++i) words[i] = random_bits(4, static_cast<uint64_t>(thread * share_ + i));
  });
  for (int t = 0; t < pool.threads(); ++t) fill_panels(pool, panels_.data() + t * kPanels * kPanelBytes);
}

double Limits::read(Limit limit, On on) {
  const int threads = on == On::all ? pool_.threads() : 1;
  const bool memory = limit == Limit::read_one || limit == Limit::read_eight || limit == Limit::copy_gpu;
  double best = 0;
  for (int w = 0; w < (memory ? 1 : kWindows); ++w) best = std::max(best, window(limit, threads));
  readings_[index(limit)][index(on)].push_back(best);
  return best;
}

double Limits::window(Limit limit, int threads) {
  if (bench::of(limit) == Of::gpu) return gpu_window(limit);
  if (limit == Limit::read_one) return read_window(1, threads);
  if (limit == Limit::read_eight) return read_window(8, threads);
  return product_window(limit, threads);
}

// Runs body(thread) on `threads` threads that spin until all are ready. Returns the seconds from the first start to the
// last end.
template <class Body>
double Limits::spinning_window(int threads, const Body& body) {
  std::vector<Clock::time_point> began(static_cast<size_t>(threads)), ended(began.size());
  std::atomic<int> waiting{threads};
  const auto share = [&](int64_t task, int) {
    const auto t = static_cast<size_t>(task);
    waiting.fetch_sub(1, std::memory_order_acq_rel);
    for (int looks = 1; waiting.load(std::memory_order_acquire) > 0; ++looks) {
      if (looks % 4096 == 0) std::this_thread::yield();  // more threads than CPUs
      pause_cpu();
    }
    began[t] = Clock::now();
    body(static_cast<int>(task));
    ended[t] = Clock::now();
  };
  if (threads == 1) {
    share(0, 0);
  } else {
    pool_.run(threads, share);
  }
  const auto first = *std::min_element(began.begin(), began.end()),
             last = *std::max_element(ended.begin(), ended.end());
  return std::chrono::duration<double>(last - first).count();
}

double Limits::read_window(int streams, int threads) {
  // A single thread reads the parts of all threads, so that a window is never less than kReadBytes.
  const int pieces = threads == 1 ? pool_.threads() : 1;
  const double seconds = spinning_window(threads, [&](int thread) {
    for (int piece = 0; piece < pieces; ++piece) {
      read_loop_(memory_.data() + (thread + piece) * share_, share_, streams, sinks_.data() + thread * kSinkBytes);
    }
  });
  return static_cast<double>(share_) * pool_.threads() / seconds;
}

double Limits::product_window(Limit limit, int threads) {
  const ProductLoop& loop = *kLoops[index(limit)];
  const Panel panel = panel_of(limit);
  int64_t& rounds = rounds_[index(limit)];
  while (true) {
    const double seconds = spinning_window(threads, [&](int thread) {
      loop.run(panels_.data() + (thread * kPanels + panel) * kPanelBytes, rounds, sinks_.data() + thread * kSinkBytes);
    });
    if (seconds >= kShortestWindow && rounds > 1) {
      return loop.work * static_cast<double>(rounds) * threads / seconds;
    }
    rounds = std::max(2 * rounds, static_cast<int64_t>(static_cast<double>(rounds) * kWantedWindow / seconds));
  }
}

// The last in the list within 5 % of the best, so that noise does not decide between equals.
Limit Limits::fastest(std::initializer_list<Limit> limits) const {
  constexpr double kEqual = 0.95;
  double best = 0;
  for (const Limit limit : limits) best = std::max(best, best_of(readings(limit, On::all)));
  Limit chosen = *limits.begin();
  for (const Limit limit : limits) {
    if (best_of(readings(limit, On::all)) >= kEqual * best) chosen = limit;
  }
  return chosen;
}

Limit Limits::fastest_f32() const {
  if (of_ == Of::gpu) return Limit::f32_gpu;
  return fastest({Limit::f32_plain, Limit::f32_avx2, Limit::f32_avx512});
}

Limit Limits::fastest_bf16() const {
  if (of_ == Of::gpu) return Limit::bf16_gpu;
  return fastest({fastest_f32(), Limit::bf16_avx512, Limit::bf16_amx});
}

Limit Limits::fastest_int8() const {
  if (of_ == Of::gpu) return Limit::bf16_gpu;
  return fastest({fastest_f32(), Limit::int8_avx512, Limit::int8_amx});
}

std::vector<std::string> Limits::notes(bool busy) const {
  constexpr double kDropped = 0.6;
  // Relative to f32 FMA: bf16 gave 15 to 16x in the fast mode and 4x in the slow one, int8 twice that.
  constexpr double kLeastBf16 = 8, kLeastInt8 = 16;
  const char* perhaps = busy ? ", unless other processes slowed it" : "";
  const double f32 = best_of(readings(fastest_f32(), On::all));
  std::vector<std::string> lines;
  for (const Limit limit : {Limit::bf16_amx, Limit::int8_amx}) {
    const std::vector<double>& rates = readings(limit, On::all);
    if (rates.empty()) continue;
    const LimitText& text = text_of(limit);
    const double best = best_of(rates), lowest = lowest_of(rates);
    if (lowest < kDropped * best) {
      lines.push_back(fmt::format("{} was in its slow mode for a part of this run{}: {:.2f} to {:.2f} {}", text.name,
                                  perhaps, lowest / text.scale, best / text.scale, text.unit));
    } else if (best < (limit == Limit::bf16_amx ? kLeastBf16 : kLeastInt8) * f32) {
      lines.push_back(fmt::format("{} was in its slow mode all the time{}: at best {:.2f} {}, only {:.1f} times f32",
                                  text.name, perhaps, best / text.scale, text.unit, best / f32));
    }
  }
  return lines;
}

}  // namespace qkv::bench
