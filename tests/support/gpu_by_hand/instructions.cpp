#include "instructions.h"

#include <cuda_bf16.h>

#include <cstring>

namespace gpu_by_hand {
namespace {

void whole_warp(unsigned lanes) {
  if (lanes != kAllLanes) fault("an instruction of a whole warp, but not all lanes are there");
}

unsigned char* into_shared(uint32_t to, uint32_t bytes) {
  if (to % 16 != 0) fault("a copy to shared memory is not aligned");
  if (to + bytes > dynamic_shared_bytes()) fault("a copy goes past the shared memory of its block");
  return shared_at(to);
}

struct Fragments {
  uint32_t at, *read;
  const uint32_t* written;
  bool transposed;
};

struct Multiplied {
  float* d;
  const uint32_t* a;
  uint32_t b[2];
};
struct MultipliedBytes {
  int* d;
  const uint32_t* a;
  uint32_t b[2];
  int k;
};

int8_t byte_of(uint32_t word, int i) {
  return static_cast<int8_t>(word >> (8 * i) & 255U);
}

}  // namespace

void fetch(uint32_t to, const void* from, int bytes, int there) {
  unsigned char* const at = shared_at(to);
  const auto size = static_cast<uint32_t>(bytes);
  if (to % size != 0 || (there > 0 && reinterpret_cast<uintptr_t>(from) % size != 0)) fault("a copy is not aligned");
  add_work(Work::copies_in, [=] {
    if (there > 0) std::memcpy(at, from, static_cast<size_t>(there));
    std::memset(at + there, 0, static_cast<size_t>(bytes - there));
  });
}

void load_tile(uint32_t to, const CUtensorMap& map, std::array<int, 3> at, uint32_t barrier) {
  constexpr uint32_t kRowBytes = 128;
  const auto rows = static_cast<uint32_t>(map.box[1] * map.box[2]), bytes = rows * kRowBytes;
  into_shared(to, bytes);
  if (to % 128 != 0) fault("a tile is not aligned");
  copy_later(
      [=] {
        uint32_t line = to;
        for (int z = at[2]; z < at[2] + map.box[2]; ++z) {
          for (int y = at[1]; y < at[1] + map.box[1]; ++y, line += kRowBytes) {
            const bool inside = y >= 0 && y < map.dims[1] && z >= 0 && z < map.dims[2];
            const unsigned char* const row = map.data + (inside ? y * map.strides[0] + z * map.strides[1] : 0);
            for (uint32_t chunk = 0; chunk < kRowBytes; chunk += 16) {
              const uint32_t address = line + chunk;
              unsigned char* const place = shared_at(address ^ (address >> 7 & 7U) << 4);
              for (int i = 0; i < 8; ++i) {
                const int x = at[0] + static_cast<int>(chunk) / 2 + i;
                if (inside && x >= 0 && x < map.dims[0]) {
                  std::memcpy(place + 2 * i, row + 2 * int64_t{x}, 2);
                } else {
                  std::memset(place + 2 * i, 0, 2);
                }
              }
            }
          }
        }
      },
      barrier, bytes);
}

void load_bytes(uint32_t to, const void* from, int bytes, uint32_t barrier) {
  if (bytes % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) fault("a copy is not in sixteens of bytes");
  unsigned char* const at = into_shared(to, static_cast<uint32_t>(bytes));
  copy_later([=] { std::memcpy(at, from, static_cast<size_t>(bytes)); }, barrier, static_cast<uint32_t>(bytes));
}

void store_bytes(void* to, uint32_t from, int bytes) {
  if (bytes % 16 != 0 || reinterpret_cast<uintptr_t>(to) % 16 != 0) fault("a copy is not in sixteens of bytes");
  const unsigned char* const at = into_shared(from, static_cast<uint32_t>(bytes));
  add_work(Work::copies_out, [=] { std::memcpy(to, at, static_cast<size_t>(bytes)); });
  end_group(Work::copies_out);
}

void read_fragments(uint32_t (&v)[4], uint32_t at, bool transposed) {
  if (at % 16 != 0) fault("rows of fragments are not aligned");
  Fragments mine{at, v, nullptr, transposed};
  meet_lanes(kAllLanes, &mine, [](void* const* all, unsigned lanes) {
    whole_warp(lanes);
    for (size_t lane = 0; lane < kWarpSize; ++lane) {
      const auto& to = *static_cast<const Fragments*>(all[lane]);
      for (size_t m = 0; m < 4; ++m) {
        uint32_t pair = 0;
        for (size_t i = 0; i < 2; ++i) {
          const size_t g = lane / 4, c = 2 * (lane % 4) + i, row = to.transposed ? c : g,
                       column = to.transposed ? g : c;
          uint16_t number = 0;
          std::memcpy(&number, shared_at(static_cast<const Fragments*>(all[8 * m + row])->at) + 2 * column, 2);
          pair |= static_cast<uint32_t>(number) << (16 * i);
        }
        to.read[m] = pair;
      }
    }
  });
}

void write_fragments(uint32_t at, const uint32_t (&v)[4]) {
  if (at % 16 != 0) fault("rows of fragments are not aligned");
  Fragments mine{at, nullptr, v, false};
  meet_lanes(kAllLanes, &mine, [](void* const* all, unsigned lanes) {
    whole_warp(lanes);
    for (size_t lane = 0; lane < kWarpSize; ++lane) {
      const auto& from = *static_cast<const Fragments*>(all[lane]);
      for (size_t m = 0; m < 4; ++m) {
        std::memcpy(shared_at(static_cast<const Fragments*>(all[8 * m + lane / 4])->at) + 4 * (lane % 4),
                    &from.written[m], 4);
      }
    }
  });
}

uint32_t transpose(uint32_t x) {
  uint32_t both[2] = {x, 0};
  meet_lanes(kAllLanes, both, [](void* const* all, unsigned lanes) {
    whole_warp(lanes);
    for (size_t lane = 0; lane < kWarpSize; ++lane) {
      uint32_t pair = 0;
      for (size_t i = 0; i < 2; ++i) {  // row lane / 4, column 2 (lane % 4) + i of the transposed
        const size_t row = 2 * (lane % 4) + i, column = lane / 4;
        const uint32_t from = static_cast<const uint32_t*>(all[4 * row + column / 2])[0];
        pair |= (from >> (16 * (column % 2)) & 0xffffU) << (16 * i);
      }
      static_cast<uint32_t*>(all[lane])[1] = pair;
    }
  });
  return both[1];
}

void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  Multiplied mine{d, a, {b0, b1}};
  meet_lanes(kAllLanes, &mine, [](void* const* all, unsigned lanes) {
    whole_warp(lanes);
    const auto of = [&](size_t lane) -> const Multiplied& { return *static_cast<const Multiplied*>(all[lane]); };
    const auto numbers = [&](Operand& made, size_t row,
                             auto pair_of) {  // lane 4 row + t has those at k = 2 t, and at k + 8
      uint16_t bits[kStep];
      for (size_t k = 0; k < kStep; ++k) {
        bits[k] = static_cast<uint16_t>(pair_of(of(4 * row + k % 8 / 2), k / 8) >> (16 * (k % 2)));
      }
      make_operand(made, bits);
    };
    std::array<Operand, 16> rows;
    for (size_t r = 0; r < 16; ++r) {
      numbers(rows[r], r % 8, [&](const Multiplied& m, size_t high) { return m.a[2 * high + r / 8]; });
    }
    for (size_t n = 0; n < 8; ++n) {
      Operand column;
      numbers(column, n, [](const Multiplied& m, size_t high) { return m.b[high]; });
      std::array<float*, 16> sums;
      for (size_t r = 0; r < 16; ++r) sums[r] = &of(r % 8 * 4 + n / 2).d[r / 8 * 2 + n % 2];
      steps(sums.data(), 16, rows.data(), column);
    }
  });
}

void mma_bytes(int (&d)[4], const std::array<uint32_t, 4>& a, uint32_t b0, uint32_t b1, int k) {
  MultipliedBytes mine{d, a.data(), {b0, b1}, k};
  meet_lanes(kAllLanes, &mine, [](void* const* all, unsigned lanes) {
    whole_warp(lanes);
    const auto of = [&](size_t lane) -> const MultipliedBytes& {
      return *static_cast<const MultipliedBytes*>(all[lane]);
    };
    const int count = of(0).k;
    for (size_t r = 0; r < 16; ++r) {
      for (size_t n = 0; n < 8; ++n) {
        int& sum = of(r % 8 * 4 + n / 2).d[r / 8 * 2 + n % 2];
        for (int i = 0; i < count; ++i) {  // bytes 4 t ... of each sixteen lie in lane 4 row + t
          const auto t = static_cast<size_t>(i % 16 / 4), high = static_cast<size_t>(i / 16);
          sum += byte_of(of(r % 8 * 4 + t).a[2 * high + r / 8], i % 4) * byte_of(of(4 * n + t).b[high], i % 4);
        }
      }
    }
  });
}

uint32_t multiply_pairs(uint32_t a, uint32_t b) {
  uint32_t c = 0;
  for (int i = 0; i < 32; i += 16) {
    const float x = __uint_as_float((a >> i & 0xffffU) << 16), y = __uint_as_float((b >> i & 0xffffU) << 16);
    c |= static_cast<uint32_t>(__float2bfloat16_rn(x * y).bits) << i;
  }
  return c;
}

}  // namespace gpu_by_hand
