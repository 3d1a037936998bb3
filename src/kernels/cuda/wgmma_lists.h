// The sums of a wgmma as its assembly lists them: their names, %0 and on, and the registers of `d` behind them.
#pragma once

#define QKV_WGMMA_TEN(ten)                                                                                             \
  "%" #ten "0, %" #ten "1, %" #ten "2, %" #ten "3, %" #ten "4, %" #ten "5, %" #ten "6, %" #ten "7, %" #ten "8, %" #ten \
  "9, "
#define QKV_WGMMA_SIXTY \
  QKV_WGMMA_TEN() QKV_WGMMA_TEN(1) QKV_WGMMA_TEN(2) QKV_WGMMA_TEN(3) QKV_WGMMA_TEN(4) QKV_WGMMA_TEN(5)
#define QKV_WGMMA_NINETY QKV_WGMMA_SIXTY QKV_WGMMA_TEN(6) QKV_WGMMA_TEN(7) QKV_WGMMA_TEN(8)

#define QKV_WGMMA_NAMES_4 "%0, %1, %2, %3"
#define QKV_WGMMA_NAMES_8 QKV_WGMMA_NAMES_4 ", %4, %5, %6, %7"
#define QKV_WGMMA_NAMES_16 QKV_WGMMA_TEN() "%10, %11, %12, %13, %14, %15"
#define QKV_WGMMA_NAMES_32 QKV_WGMMA_TEN() QKV_WGMMA_TEN(1) QKV_WGMMA_TEN(2) "%30, %31"
#define QKV_WGMMA_NAMES_64 QKV_WGMMA_SIXTY "%60, %61, %62, %63"
#define QKV_WGMMA_NAMES_68 QKV_WGMMA_NAMES_64 ", %64, %65, %66, %67"
#define QKV_WGMMA_NAMES_96 QKV_WGMMA_NINETY "%90, %91, %92, %93, %94, %95"
#define QKV_WGMMA_NAMES_100 QKV_WGMMA_NAMES_96 ", %96, %97, %98, %99"
#define QKV_WGMMA_NAMES_128 \
  QKV_WGMMA_NINETY QKV_WGMMA_TEN(9) QKV_WGMMA_TEN(10) QKV_WGMMA_TEN(11) "%120, %121, %122, %123, %124, %125, %126, " \
                                                                        "%127"

#define QKV_WGMMA_FROM_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define QKV_WGMMA_FROM_16(i) \
  QKV_WGMMA_FROM_4(i), QKV_WGMMA_FROM_4(i + 4), QKV_WGMMA_FROM_4(i + 8), QKV_WGMMA_FROM_4(i + 12)
#define QKV_WGMMA_FROM_64(i) \
  QKV_WGMMA_FROM_16(i), QKV_WGMMA_FROM_16(i + 16), QKV_WGMMA_FROM_16(i + 32), QKV_WGMMA_FROM_16(i + 48)

#define QKV_WGMMA_SUMS_4 QKV_WGMMA_FROM_4(0)
#define QKV_WGMMA_SUMS_8 QKV_WGMMA_FROM_4(0), QKV_WGMMA_FROM_4(4)
#define QKV_WGMMA_SUMS_16 QKV_WGMMA_FROM_16(0)
#define QKV_WGMMA_SUMS_32 QKV_WGMMA_FROM_16(0), QKV_WGMMA_FROM_16(16)
#define QKV_WGMMA_SUMS_64 QKV_WGMMA_FROM_64(0)
#define QKV_WGMMA_SUMS_68 QKV_WGMMA_FROM_64(0), QKV_WGMMA_FROM_4(64)
#define QKV_WGMMA_SUMS_96 QKV_WGMMA_SUMS_64, QKV_WGMMA_FROM_16(64), QKV_WGMMA_FROM_16(80)
#define QKV_WGMMA_SUMS_100 QKV_WGMMA_SUMS_96, QKV_WGMMA_FROM_4(96)
#define QKV_WGMMA_SUMS_128 QKV_WGMMA_FROM_64(0), QKV_WGMMA_FROM_64(64)
