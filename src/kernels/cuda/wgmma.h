// wgmma m64nNk16, bf16 operands in shared memory, f32 sums in registers. kA, kB: 1 where the operand lies with its rows
// together in memory (MN-major), 0 where k does.
#pragma once

#include <cstdint>

namespace qkv::kernels::cuda {

template <int N>
struct Wgmma;

// Sums as the instruction lists them, ten names or eight registers at a time.
#define QKV_NAMES(ten)                                                                                                 \
  "%" #ten "0, %" #ten "1, %" #ten "2, %" #ten "3, %" #ten "4, %" #ten "5, %" #ten "6, %" #ten "7, %" #ten "8, %" #ten \
  "9, "
#define QKV_NAMES_TO_60 QKV_NAMES() QKV_NAMES(1) QKV_NAMES(2) QKV_NAMES(3) QKV_NAMES(4) QKV_NAMES(5)
#define QKV_NAMES_TO_90 QKV_NAMES_TO_60 QKV_NAMES(6) QKV_NAMES(7) QKV_NAMES(8)
#define QKV_FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define QKV_SUMS(i) QKV_FOUR(i), QKV_FOUR(i + 4)
#define QKV_SUMS_TO_64 \
  QKV_SUMS(0), QKV_SUMS(8), QKV_SUMS(16), QKV_SUMS(24), QKV_SUMS(32), QKV_SUMS(40), QKV_SUMS(48), QKV_SUMS(56)
#define QKV_SUMS_TO_96 QKV_SUMS_TO_64, QKV_SUMS(64), QKV_SUMS(72), QKV_SUMS(80), QKV_SUMS(88)

// n columns, half as many sums; a, b, add, kA and kB are named by the numbers after them.
#define QKV_WGMMA(n, names, sums, a_name, b_name, add_name, a_major, b_major)                                      \
  template <>                                                                                                      \
  struct Wgmma<n> {                                                                                                \
    template <int kA, int kB>                                                                                      \
    static __device__ __forceinline__ void multiply(float (&d)[n / 2], uint64_t a, uint64_t b, int add) {          \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_name ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n     \
                   "k16.f32.bf16.bf16 {" names "}, %" #a_name ", %" #b_name ", p, 1, 1, %" #a_major ", %" #b_major \
                   ";\n}\n"                                                                                        \
                   : sums                                                                                          \
                   : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));                                                  \
    }                                                                                                              \
  }
#define QKV_COMMA ,

QKV_WGMMA(128, QKV_NAMES_TO_60 "%60, %61, %62, %63", QKV_SUMS_TO_64, 64, 65, 66, 67, 68);
QKV_WGMMA(136, QKV_NAMES_TO_60 "%60, %61, %62, %63, %64, %65, %66, %67", QKV_SUMS_TO_64 QKV_COMMA QKV_FOUR(64), 68, 69,
          70, 71, 72);
QKV_WGMMA(192, QKV_NAMES_TO_90 "%90, %91, %92, %93, %94, %95", QKV_SUMS_TO_96, 96, 97, 98, 99, 100);
QKV_WGMMA(200, QKV_NAMES_TO_90 "%90, %91, %92, %93, %94, %95, %96, %97, %98, %99",
          QKV_SUMS_TO_96 QKV_COMMA QKV_FOUR(96), 100, 101, 102, 103, 104);
QKV_WGMMA(256,
          QKV_NAMES_TO_90 QKV_NAMES(9) QKV_NAMES(10) QKV_NAMES(11) "%120, %121, %122, %123, %124, %125, %126, %127",
          QKV_SUMS_TO_96 QKV_COMMA QKV_SUMS(96) QKV_COMMA QKV_SUMS(104) QKV_COMMA QKV_SUMS(112) QKV_COMMA QKV_SUMS(120),
          128, 129, 130, 131, 132);

#undef QKV_COMMA
#undef QKV_WGMMA
#undef QKV_SUMS_TO_96
#undef QKV_SUMS_TO_64
#undef QKV_SUMS
#undef QKV_FOUR
#undef QKV_NAMES_TO_90
#undef QKV_NAMES_TO_60
#undef QKV_NAMES

}  // namespace qkv::kernels::cuda
