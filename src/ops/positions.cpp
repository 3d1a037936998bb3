#include "ops/positions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/checks.h"

namespace qkv::ops {
namespace {

constexpr double kPi = std::numbers::pi;
using Kind = RopeScaling::Kind;

// llama3: long wavelengths are stretched by `factor`, short ones stay, linear interpolation between.
double llama3_frequency(double frequency, const RopeScaling& s) {
  const double wave = 2 * kPi / frequency;
  if (wave < s.original_context / s.high_freq) return frequency;
  if (wave > s.original_context / s.low_freq) return frequency / s.factor;
  const double blend = (s.original_context / wave - s.low_freq) / (s.high_freq - s.low_freq);
  return (1 - blend) * frequency / s.factor + blend * frequency;
}

// yarn: the pair that makes `turns` full turns within the original context.
double yarn_pair(double turns, double base, int64_t width, const RopeScaling& s) {
  return static_cast<double>(width) * std::log(s.original_context / (turns * 2 * kPi)) / (2 * std::log(base));
}

double yarn_frequency(double frequency, int64_t pair, double base, int64_t width, const RopeScaling& s) {
  double low = yarn_pair(s.beta_fast, base, width, s), high = yarn_pair(s.beta_slow, base, width, s);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(width - 1));
  if (low == high) high += 0.001;
  const double stretched = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  return frequency / s.factor * stretched + frequency * (1 - stretched);
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double attention_factor(const RopeScaling& s) {
  if (s.attention_factor > 0) return s.attention_factor;
  if (s.kind == Kind::yarn) {
    if (s.mscale > 0 && s.mscale_all_dim > 0)
      return yarn_mscale(s.factor, s.mscale) / yarn_mscale(s.factor, s.mscale_all_dim);
    return yarn_mscale(s.factor, 1);
  }
  if (s.kind == Kind::longrope && s.factor > 1) return std::sqrt(1 + std::log(s.factor) / std::log(s.original_context));
  return 1;
}

void check_scaling(int64_t pairs, const RopeScaling& s) {
  check_number("rope_table", "factor", s.factor, 1e-6, 1e6);
  if (s.kind == Kind::llama3 || s.kind == Kind::yarn || s.kind == Kind::longrope) {
    check_number("rope_table", "original context", s.original_context, 1, 1e12);
  }
  if (s.kind == Kind::llama3) {
    QKV_CHECK(s.high_freq > s.low_freq && s.low_freq > 0, "rope_table: low_freq is ", s.low_freq, " and high_freq is ",
              s.high_freq, " but low must be positive and below high",
              Hint("the config swapped low_freq_factor and high_freq_factor"));
  }
  if (s.kind == Kind::longrope) {
    const auto want = static_cast<size_t>(pairs);
    QKV_CHECK(s.short_factors.size() == want && s.long_factors.size() == want, "rope_table: longrope has ",
              s.short_factors.size(), " short and ", s.long_factors.size(), " long factors but ", pairs, " pairs turn",
              Hint("one factor per pair of rotary columns"));
  }
}

}  // namespace

RopeTable rope_table(double base, int64_t width, int64_t positions, const RopeScaling& scaling) {
  QKV_CHECK(width > 0 && width % 2 == 0, "rope_table: the rotary width is ", width, " but must be even and positive",
            Hint("columns turn in pairs"));
  QKV_CHECK(positions >= 0, "rope_table: ", positions, " positions", Hint("give the longest context"));
  check_number("rope_table", "base", base, 1 + 1e-6, 1e15);
  RopeTable table{.positions = positions, .pairs = width / 2, .cos = {}, .sin = {}};
  check_scaling(table.pairs, scaling);
  const bool beyond = static_cast<double>(positions) > scaling.original_context;

  std::vector<float> frequencies;  // rounded to float, as the reference implementations keep them
  for (int64_t i = 0; i < table.pairs; ++i) {
    double f = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
    switch (scaling.kind) {
      case Kind::plain:
        break;
      case Kind::linear:
        f /= scaling.factor;
        break;
      case Kind::llama3:
        f = llama3_frequency(f, scaling);
        break;
      case Kind::yarn:
        f = yarn_frequency(f, i, base, width, scaling);
        break;
      case Kind::longrope:
        f /= (beyond ? scaling.long_factors : scaling.short_factors)[static_cast<size_t>(i)];
        break;
    }
    frequencies.push_back(static_cast<float>(f));
  }
  const double factor = attention_factor(scaling);
  for (int64_t p = 0; p < positions; ++p) {
    for (const float frequency : frequencies) {
      const auto angle = static_cast<double>(static_cast<float>(p) * frequency);
      table.cos.push_back(static_cast<float>(std::cos(angle) * factor));
      table.sin.push_back(static_cast<float>(std::sin(angle) * factor));
    }
  }
  return table;
}

std::vector<float> sinusoidal_positions(int64_t positions, int64_t width, Sinusoid order) {
  QKV_CHECK(width > 0 && width % 2 == 0 && positions >= 0, "sinusoidal_positions: ", positions, " positions of width ",
            width, " but the width must be even and positive", Hint("half the columns are sines, half are cosines"));
  std::vector<float> table(static_cast<size_t>(positions * width));
  const int64_t half = width / 2;
  const bool alternate = order == Sinusoid::interleaved;
  const auto steps = static_cast<double>(order == Sinusoid::fairseq ? std::max<int64_t>(half - 1, 1) : half);
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(i) / steps);
      const int64_t at = alternate ? 2 * i : i, step = alternate ? 1 : half;
      table[static_cast<size_t>(p * width + at)] = static_cast<float>(std::sin(angle));
      table[static_cast<size_t>(p * width + at + step)] = static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

std::vector<float> alibi_slopes(int64_t heads) {
  QKV_CHECK(heads > 0, "alibi_slopes: ", heads, " heads", Hint("a model has at least one head"));
  // A geometric series for the largest power of two <= heads; the other heads take every other slope of the next one.
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const auto slope = [](int64_t n, int64_t i) {
    return static_cast<float>(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(n)));
  };
  std::vector<float> slopes;
  for (int64_t i = 1; i <= power; ++i) slopes.push_back(slope(power, i));
  for (int64_t i = 1; i <= heads - power; ++i) slopes.push_back(slope(2 * power, 2 * i - 1));
  return slopes;
}

std::vector<int32_t> relative_buckets(int64_t buckets, int64_t max_distance, bool bidirectional) {
  const int64_t side = bidirectional ? buckets / 2 : buckets, exact = side / 2;
  QKV_CHECK(exact > 0 && max_distance > exact, "relative_buckets: ", buckets, " buckets up to distance ", max_distance,
            " leave no room for the logarithmic ones",
            Hint("the farthest distance must exceed half the buckets of one side"));
  std::vector<int32_t> list;
  for (int64_t offset = -max_distance; offset <= max_distance; ++offset) {  // j - i: keys to the right are positive
    const int64_t base = bidirectional && offset > 0 ? side : 0;
    const int64_t distance = bidirectional ? std::abs(offset) : std::max<int64_t>(-offset, 0);
    int64_t bucket = distance;
    if (distance >= exact) {
      // In float as in the reference, so that bucket edges are the same.
      const float position =
          std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
          static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact))) *
          static_cast<float>(side - exact);
      bucket = std::min<int64_t>(exact + static_cast<int64_t>(position), side - 1);
    }
    list.push_back(static_cast<int32_t>(base + bucket));
  }
  return list;
}

}  // namespace qkv::ops
