#include "kernels/tables.h"

#include <vector>

namespace qkv::kernels {

std::span<const Kernels* const> all_tables() {
  static const std::vector<const Kernels*> tables = [] {
    std::vector<const Kernels*> all{&ref::table()};
    for (const Kernels* table : cpu::tables()) all.push_back(table);
#ifdef QKV_WITH_CUDA
    if (cuda::available()) all.push_back(&cuda::table());
#endif
    return all;
  }();
  return tables;
}

const Kernels& best_table() {
  return cpu::table();
}

}  // namespace qkv::kernels
