// Sixteen blocks of four words at a time, so that the compiler vectorises every step.
#include "base/random_fill.h"

#include <algorithm>
#include <bit>

namespace qkv {
namespace {

constexpr size_t kLanes = 16, kGroup = 4 * kLanes;

using Lanes = std::array<uint32_t, kLanes>;
using Words = std::array<Lanes, 4>;  // word w of block j is [w][j]
using Floats = std::array<float, kLanes>;
using Numbers = std::array<float, kGroup>;

void draw(PhiloxKey key, uint64_t group, Words& words) {
  auto& [c0, c1, c2, c3] = words;
  for (size_t j = 0; j < kLanes; ++j) {
    const uint64_t block = group * kLanes + j;
    c0[j] = c1[j] = 0;
    c2[j] = static_cast<uint32_t>(block);
    c3[j] = static_cast<uint32_t>(block >> 32);
  }
  for (int round = 0; round < 10; ++round) {  // philox() of philox.h
    for (size_t j = 0; j < kLanes; ++j) {
      const uint64_t a = uint64_t{0xD2511F53} * c0[j], b = uint64_t{0xCD9E8D57} * c2[j];
      c0[j] = static_cast<uint32_t>(b >> 32) ^ c1[j] ^ key[0];
      c1[j] = static_cast<uint32_t>(b);
      c2[j] = static_cast<uint32_t>(a >> 32) ^ c3[j] ^ key[1];
      c3[j] = static_cast<uint32_t>(a);
    }
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
}

// (word + plus) 2^-32, rounded once.
inline float fraction(uint32_t word, uint32_t plus) {
  const auto high = static_cast<float>(static_cast<int32_t>(word >> 16));
  const auto low = static_cast<float>(static_cast<int32_t>((word & 0xffff) + plus));
  return (high * 65536.0F + low) * 0x1p-32F;
}

// sqrt(-2 ln u), u = (word + 1) 2^-32 = 2^e (1 + d) with 1 + d in [sqrt(1/2), sqrt(2)).
// ln(1 + d) = 2 artanh(d / (2 + d)), a short series. Near u = 1, d comes from the word: u has lost its bits.
inline float radius(uint32_t word) {
  constexpr uint32_t kRootHalf = 0x3f3504f3, kOne = 0x3f800000;
  const uint32_t bits = std::bit_cast<uint32_t>(fraction(word, 1)) + (kOne - kRootHalf);
  const int32_t e = static_cast<int32_t>(bits >> 23) - 127;
  const float scaled = std::bit_cast<float>((bits & 0x7fffff) + kRootHalf) - 1.0F;
  const float near_one = -fraction(~word, 0);
  const float d = e == 0 ? near_one : scaled;
  const float s = d / (2.0F + d), z = s * s;
  const float series = 1.0F + z * (1.0F / 3 + z * (1.0F / 5 + z * (1.0F / 7 + z * (1.0F / 9))));
  const float log = 2.0F * s * series + static_cast<float>(e) * std::numbers::ln2_v<float>;
  return std::sqrt(-2.0F * log);
}

// cos and sin of 2 pi word 2^-32: the nearest quarter turn, and a Taylor series for the rest.
inline void turn(uint32_t word, float& cosine, float& sine) {
  const uint32_t quarter = (word + 0x20000000U) >> 30;
  const float rest = static_cast<float>(static_cast<int32_t>(word - (quarter << 30)));
  const float x = rest * (0x1p-30F * std::numbers::pi_v<float> / 2), z = x * x;
  const float s = x * (1.0F + z * (-1.0F / 6 + z * (1.0F / 120 + z * (-1.0F / 5040 + z * (1.0F / 362880)))));
  const float c = 1.0F + z * (-0.5F + z * (1.0F / 24 + z * (-1.0F / 720 + z * (1.0F / 40320 + z * (-1.0F / 3628800)))));
  const uint32_t odd = 0U - (quarter & 1);  // all bits, or none
  const auto cb = std::bit_cast<uint32_t>(c), sb = std::bit_cast<uint32_t>(s);
  cosine = std::bit_cast<float>(((sb & odd) | (cb & ~odd)) ^ (((quarter + 1) & 2) << 30));
  sine = std::bit_cast<float>(((cb & odd) | (sb & ~odd)) ^ ((quarter & 2) << 30));
}

void normals(const Words& words, float deviation, Numbers& out) {
  for (size_t pair = 0; pair < 4; pair += 2) {
    Floats first, second;
    for (size_t j = 0; j < kLanes; ++j) {
      const float r = radius(words[pair][j]) * deviation;
      float cosine = 0, sine = 0;
      turn(words[pair + 1][j], cosine, sine);
      first[j] = r * cosine;
      second[j] = r * sine;
    }
    for (size_t j = 0; j < kLanes; ++j) {
      out[4 * j + pair] = first[j];
      out[4 * j + pair + 1] = second[j];
    }
  }
}

void uniforms(const Words& words, float bound, Numbers& out) {
  const float step = bound * 0x1p-31F;
  for (size_t w = 0; w < 4; ++w) {
    for (size_t j = 0; j < kLanes; ++j) {
      out[4 * j + w] = static_cast<float>(static_cast<int32_t>(words[w][j] ^ 0x80000000U)) * step;
    }
  }
}

template <class Make>
void fill(PhiloxKey key, uint64_t first, std::span<float> out, Make make) {
  Words words;
  Numbers numbers;
  for (size_t done = 0; done < out.size();) {
    const uint64_t at = first + done;
    const auto skip = static_cast<size_t>(at % kGroup);
    const size_t take = std::min(kGroup - skip, out.size() - done);
    draw(key, at / kGroup, words);
    make(words, numbers);
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(skip), take,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += take;
  }
}

}  // namespace

void fill_normal(PhiloxKey key, uint64_t first, float deviation, std::span<float> out) {
  fill(key, first, out, [&](const Words& words, Numbers& numbers) { normals(words, deviation, numbers); });
}

void fill_uniform(PhiloxKey key, uint64_t first, float bound, std::span<float> out) {
  fill(key, first, out, [&](const Words& words, Numbers& numbers) { uniforms(words, bound, numbers); });
}

}  // namespace qkv
