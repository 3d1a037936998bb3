// Emulates the AMX instructions on CPUs without them, so that the kernels using them are tested everywhere. Each raises
// SIGILL; the handler decodes it, carries it out on tiles in memory as the manual defines it, and resumes after it.
// Linked into a test program, it adds the amx table to those under test.
//
// On a CPU with AMX it does nothing: the kernels run natively, or are left out if the system does not grant the tiles.
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/isa.h"

namespace qkv::test {
namespace {

constexpr int kTiles = 8;

struct Tile {
  uint8_t bytes[16][64];
};
struct Config {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(Config) == 64);

struct State {
  Config config;
  Tile tiles[kTiles];
};
thread_local State state{};

struct sigaction before {};

// One instruction of the encoding map 0F38 with a three-byte VEX prefix.
struct Instruction {
  int prefix, opcode;  // prefix: 0 none, 1 66, 2 F3, 3 F2
  int mode, reg, rm, vvvv;
  uint64_t address = 0;  // of the memory operand
  uint64_t stride = 0;   // its index, scaled
  int64_t length = 0;
};

constexpr std::array<int, 16> kRegisters{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                         REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

uint64_t value_of(const ucontext_t& at, int reg) {
  return static_cast<uint64_t>(at.uc_mcontext.gregs[kRegisters[static_cast<size_t>(reg)]]);
}

// Returns false for any other instruction.
bool read(const ucontext_t& at, Instruction& to) {
  const auto* start = reinterpret_cast<const uint8_t*>(at.uc_mcontext.gregs[REG_RIP]);
  if (start[0] != 0xC4) return false;
  const int r = ~start[1] >> 7 & 1, x = ~start[1] >> 6 & 1, b = ~start[1] >> 5 & 1;
  if ((start[1] & 31) != 2 || (start[2] & 0x84) != 0) return false;  // map 0F38; neither W nor 256 bits
  to.vvvv = ~(start[2] >> 3) & 15;
  to.prefix = start[2] & 3;
  to.opcode = start[3];
  const uint8_t* next = start + 4;
  const uint8_t modrm = *next++;
  to.mode = modrm >> 6;
  to.reg = (modrm >> 3 & 7) | r << 3;
  to.rm = (modrm & 7) | b << 3;
  if (to.mode != 3) {
    uint64_t base = 0;
    bool without_base = false;
    if ((modrm & 7) == 4) {
      const uint8_t sib = *next++;
      const int index = (sib >> 3 & 7) | x << 3, base_reg = (sib & 7) | b << 3;
      if (index != 4) to.stride = value_of(at, index) << (sib >> 6);
      without_base = (sib & 7) == 5 && to.mode == 0;
      if (!without_base) base = value_of(at, base_reg);
    } else if ((modrm & 7) == 5 && to.mode == 0) {
      without_base = true;  // relative to the instruction pointer, which is after the next four bytes
      base = reinterpret_cast<uint64_t>(next) + 4;
    } else {
      base = value_of(at, to.rm);
    }
    int64_t offset = 0;
    if (to.mode == 1) {
      offset = static_cast<int8_t>(*next++);
    } else if (to.mode == 2 || without_base) {
      int32_t wide = 0;
      std::memcpy(&wide, next, sizeof wide);
      offset = wide;
      next += 4;
    }
    to.address = base + static_cast<uint64_t>(offset);
  }
  to.length = next - start;
  return true;
}

typedef uint32_t Words __attribute__((vector_size(64)));

// A signal handler has its own float mode: flush denormals explicitly.
[[gnu::target("avx512f")]] void product_of_bf16(Tile& c, const Tile& a, const Tile& b, int rows, int pairs) {
  constexpr unsigned kFlushDenormals = 0x8040;
  _mm_setcsr(_mm_getcsr() | kFlushDenormals);
  for (int m = 0; m < rows; ++m) {
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
    for (int k = 0; k < pairs; ++k) {
      uint32_t two = 0;
      std::memcpy(&two, &a.bytes[m][4 * k], sizeof two);
      const Words left = two - Words{};
      Words right;
      std::memcpy(&right, b.bytes[k], sizeof right);
      even = _mm512_fmadd_ps((__m512)(left << 16), (__m512)(right << 16), even);
      odd = _mm512_fmadd_ps((__m512)(left & 0xffff0000U), (__m512)(right & 0xffff0000U), odd);
    }
    __m512 sum;
    std::memcpy(&sum, c.bytes[m], sizeof sum);
    sum = sum + (even + odd);
    std::memcpy(c.bytes[m], &sum, sizeof sum);
  }
}

void product_of_bytes(Tile& c, const Tile& a, const Tile& b, const Instruction& i, int rows, int columns, int fours) {
  const bool a_signed = i.prefix == 3 || i.prefix == 2, b_signed = i.prefix == 3 || i.prefix == 1;
  const auto number = [](uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : int{byte}; };
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      int32_t sum = 0;
      std::memcpy(&sum, &c.bytes[m][4 * n], sizeof sum);
      for (int k = 0; k < 4 * fours; ++k) {
        sum += number(a.bytes[m][k], a_signed) * number(b.bytes[k / 4][4 * n + k % 4], b_signed);
      }
      std::memcpy(&c.bytes[m][4 * n], &sum, sizeof sum);
    }
  }
}

// Returns false for an instruction that is not AMX, or invalid: it stays illegal, as on a real CPU.
bool carry_out(const Instruction& i) {
  Config& config = state.config;
  const auto is_tile = [&](int t) { return t < kTiles && config.palette == 1 && config.rows[t] > 0; };
  const auto rows = [&](int t) { return int{config.rows[t]}; };
  const auto words = [&](int t) { return config.row_bytes[t] / 4; };
  if (i.opcode == 0x49) {
    if (i.mode != 3 && i.reg == 0 && i.prefix == 0) {  // ldtilecfg
      std::memcpy(&config, reinterpret_cast<const void*>(i.address), sizeof config);
      for (int t = 0; t < 16; ++t) {
        const bool used = config.rows[t] > 0 || config.row_bytes[t] > 0;
        if (config.rows[t] > 16 || config.row_bytes[t] > 64 || config.row_bytes[t] % 4 != 0 || (used && t >= kTiles)) {
          return false;
        }
      }
      std::memset(state.tiles, 0, sizeof state.tiles);
      return config.palette <= 1 && config.start_row == 0;
    }
    if (i.mode == 3 && i.prefix == 0 && i.reg == 0 && i.rm == 0) {  // tilerelease
      state = {};
      return true;
    }
    if (i.mode == 3 && i.prefix == 3 && is_tile(i.reg)) {  // tilezero
      std::memset(&state.tiles[i.reg], 0, sizeof(Tile));
      return true;
    }
    return false;
  }
  if (i.opcode == 0x4B && i.mode != 3 && is_tile(i.reg)) {
    Tile& tile = state.tiles[i.reg];
    const bool stores = i.prefix == 2;
    if (i.prefix == 0) return false;
    if (!stores) std::memset(&tile, 0, sizeof tile);
    for (int r = 0; r < rows(i.reg); ++r) {
      auto* row = reinterpret_cast<uint8_t*>(i.address + static_cast<uint64_t>(r) * i.stride);
      std::memcpy(stores ? row : tile.bytes[r], stores ? tile.bytes[r] : row, config.row_bytes[i.reg]);
    }
    return true;
  }
  if ((i.opcode != 0x5C && i.opcode != 0x5E) || i.mode != 3) return false;
  const int c = i.reg, a = i.rm, b = i.vvvv;
  if (!is_tile(c) || !is_tile(a) || !is_tile(b) || c == a || c == b || a == b) return false;
  if (rows(c) != rows(a) || words(c) != words(b) || words(a) != rows(b)) return false;
  Tile* tiles = state.tiles;
  if (i.opcode == 0x5E) {
    product_of_bytes(tiles[c], tiles[a], tiles[b], i, rows(c), words(c), words(a));
    return true;
  }
  if (i.prefix != 2) return false;
  product_of_bf16(tiles[c], tiles[a], tiles[b], rows(c), words(a));
  return true;
}

// Also the ones that follow at once: a signal takes longer than any of them.
void on_illegal(int, siginfo_t*, void* context) {
  auto& at = *static_cast<ucontext_t*>(context);
  bool done = false;
  for (Instruction next{}; read(at, next) && carry_out(next); next = {}, done = true) {
    at.uc_mcontext.gregs[REG_RIP] += next.length;
  }
  if (!done) ::sigaction(SIGILL, &before, nullptr);  // the instruction is executed again and ends the program
}

bool cpu_knows_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & 1U << 24) != 0;
}

// Runs before other initialisers: the tables are listed early.
[[gnu::constructor(101)]] void stand_in() {
  if (cpu_knows_tiles()) return;
  struct sigaction action {};
  action.sa_sigaction = on_illegal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(SIGILL, &action, &before) == 0) kernels::cpu::tiles_by_hand = true;
}

}  // namespace
}  // namespace qkv::test
#endif
