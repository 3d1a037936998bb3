// Position tables: rotary angles, sinusoids, ALiBi slopes, T5 buckets. Computed once, on the host.
#pragma once

#include <cstdint>
#include <vector>

namespace qkv::ops {

struct RopeScaling {
  enum class Kind : uint8_t { plain, linear, llama3, yarn, longrope } kind = Kind::plain;
  double factor = 1;
  double original_context = 0;            // llama3, yarn, longrope: the context the model was first trained with
  double low_freq = 1, high_freq = 4;     // llama3
  double beta_fast = 32, beta_slow = 1;   // yarn
  double mscale = 0, mscale_all_dim = 0;  // yarn as DeepSeek writes it
  bool truncate = true;                   // yarn: whole correction dimensions
  double attention_factor = 0;            // yarn, longrope: cos and sin are multiplied by it; 0: by the formula
  std::vector<double> short_factors, long_factors;  // longrope, one per pair
  bool operator==(const RopeScaling&) const = default;
};

struct RopeTable {
  int64_t positions = 0, pairs = 0;
  std::vector<float> cos, sin;  // [positions, pairs], times the attention factor
};

// `width` columns are rotated, in width / 2 pairs. For longrope the table is for sequences of up to `positions` tokens:
// beyond the original context it uses the long factors.
RopeTable rope_table(double base, int64_t width, int64_t positions, const RopeScaling& scaling = {});

// The 2017 Transformer's: sin in the first half of the columns and cos in the second, or alternating. `fairseq`: halves
// whose last frequency is 1 / 10000 itself.
enum class Sinusoid : uint8_t { halves, interleaved, fairseq };
std::vector<float> sinusoidal_positions(int64_t positions, int64_t width, Sinusoid order);  // [positions, width]

std::vector<float> alibi_slopes(int64_t heads);

// T5: bucket of every distance j - i in [-reach, reach], reach = max_distance; farther ones share the last bucket.
std::vector<int32_t> relative_buckets(int64_t buckets, int64_t max_distance, bool bidirectional);

}  // namespace qkv::ops
