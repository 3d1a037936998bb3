#include "support/recording_device.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>
#include <utility>

#include "kernels/tables.h"

namespace qkv::test {

class Steps final : public Recording {
 public:
  Steps(RecordingDevice& device, std::vector<RecordingDevice::Step> steps)
      : device_(device), steps_(std::move(steps)), made_(device.releases_) {}
  bool replay() override {
    if (made_ != device_.releases_) return false;
    for (const RecordingDevice::Step& step : steps_) step();
    ++device_.replayed;
    return true;
  }

 private:
  RecordingDevice& device_;
  std::vector<RecordingDevice::Step> steps_;
  int made_;
};

std::byte* RecordingDevice::allocate(int64_t bytes) {
  const std::lock_guard turn(turns_);
  stop();
  return cpu_device().allocate(bytes);
}

void RecordingDevice::release(std::byte* data, int64_t bytes) noexcept {
  const std::lock_guard turn(turns_);
  stop();
  ++releases_;
  std::memset(data, 0xff, static_cast<size_t>(bytes));  // NaN, where something still reads it
  cpu_device().release(data, bytes);
}

void RecordingDevice::upload(std::byte* to, const void* from_host, int64_t bytes) {
  const std::lock_guard turn(turns_);
  stop();
  cpu_device().upload(to, from_host, bytes);
}

void RecordingDevice::download(void* to_host, const std::byte* from, int64_t bytes) {
  const std::lock_guard turn(turns_);
  stop();
  cpu_device().download(to_host, from, bytes);
}

void RecordingDevice::begin_recording() {
  recording_ = true;
  steps_.clear();
}

std::unique_ptr<Recording> RecordingDevice::end_recording() {
  if (!recording_) return nullptr;
  recording_ = false;
  ++recorded;
  return std::make_unique<Steps>(*this, std::exchange(steps_, {}));
}

void RecordingDevice::stop() {
  if (!recording_) return;
  recording_ = false;
  ++stopped;
  for (const Step& step : std::exchange(steps_, {})) step();
}

void RecordingDevice::run(Step kernel) {
  if (!recording_) return kernel();
  steps_.push_back(std::move(kernel));
}

namespace {

// What only some tables have, made of the others.
void first_highest(const Exec& exec, const FirstHighestArgs& a) noexcept {
  static_cast<RecordingDevice&>(*exec.device).run([a] {
    for (int64_t r = 0; r < a.x.rows(); ++r) {
      const std::span row(a.x.as<float>() + r * a.x.stride(0), static_cast<size_t>(a.x.cols()));
      const bool finite = std::ranges::all_of(row, [](float x) { return std::isfinite(x); });
      a.ids.as<int32_t>()[r] = finite ? static_cast<int32_t>(std::ranges::max_element(row) - row.begin()) : -1;
    }
  });
}
void cache_heads(const Exec& exec, const CacheHeadsArgs& a) noexcept {
  static_cast<RecordingDevice&>(*exec.device).run([&exec, a] {
    const Kernels& table = kernels::best_table();
    table.rotary(exec, a.q);
    table.rotary(exec, a.k);
    table.scatter_rows(exec, a.to_k);
    table.scatter_rows(exec, a.to_v);
  });
}

}  // namespace

const Kernels& recording_kernels() {
  static const Kernels table{.name = "recording",
#define QKV_KERNEL(kernel, Args)                                                              \
  .kernel = [](const Exec& exec, const Args& args) noexcept {                                 \
    auto& device = static_cast<RecordingDevice&>(*exec.device);                               \
    if constexpr (std::is_same_v<Args, OutsideArgs> || std::is_same_v<Args, NonfiniteArgs>) { \
      device.stop();                                                                          \
      kernels::best_table().kernel(exec, args);                                               \
    } else {                                                                                  \
      device.run([&exec, args] { kernels::best_table().kernel(exec, args); });                \
    }                                                                                         \
  },
                             QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
                                 .first_highest = &first_highest,
                             .cache_heads = &cache_heads};
  return table;
}

}  // namespace qkv::test
