#include "kernels/tables.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace qkv::kernels {

std::span<const Kernels* const> all_tables() {
  static const std::vector<const Kernels*> tables = [] {
    std::vector<const Kernels*> all{&ref::table()};
    for (const Kernels* table : cpu::tables()) all.push_back(table);
    if (cuda::available()) all.push_back(&cuda::table());
    if (const char* only = std::getenv("QKV_TABLES")) {
      std::erase_if(all, [&](const Kernels* table) { return std::string_view(table->name) != only; });
      QKV_CHECK(!all.empty(), "QKV_TABLES is '", only, "', a table that cannot be used here",
                Hint("unset it to take all; qkv version names them"));
    }
    return all;
  }();
  return tables;
}

const Kernels& best_table() {
  return cpu::table();
}

const Kernels& usable_table(const Kernels& gpu, int64_t bytes) {
  try {
    const Device& device = gpu.device();
    return bytes + device.scratch_bytes(1) <= device.free_bytes() ? gpu : best_table();
  } catch (const Error& error) {
    warn_once("no GPU after all", fmt::format("device cpu: {}", error.message()));
    return best_table();
  }
}

const Kernels& table_for(DeviceChoice choice, int64_t bytes) {
  const bool may = choice == DeviceChoice::automatic && std::getenv("QKV_ISA") == nullptr && cuda::available();
  if (choice != DeviceChoice::cuda && !may) return best_table();
  const Kernels& gpu = cuda::table();
  if (may && &usable_table(gpu, bytes) != &gpu) return best_table();
  const int64_t free = gpu.device().free_bytes();  // an Error if it cannot be used
  static std::once_flag told;
  std::call_once(told, [&] {
    log_line(Log::info, fmt::format("device cuda: {}, {:.1f} GiB free", cuda::gpu_name(),
                                    static_cast<double>(free) / static_cast<double>(1 << 30)));
  });
  return gpu;
}

}  // namespace qkv::kernels
