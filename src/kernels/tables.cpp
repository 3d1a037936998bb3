#include "kernels/tables.h"

#include <array>

namespace qkv::kernels {

std::span<const Kernels* const> all_tables() {
  static const std::array<const Kernels*, 2> tables{&ref::table(), &cpu::table()};
  return tables;
}

const Kernels& best_table() {
  return cpu::table();
}

}  // namespace qkv::kernels
