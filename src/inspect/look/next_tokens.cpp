#include "inspect/look/next_tokens.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/log_sum_exp.h"
#include "core/host_values.h"

namespace qkv {

NextTokens next_tokens(const Model& model, const Engine& engine, const Looked& seen, Precision precision, size_t most) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, precision);
  const std::vector<float>& stream = seen.streams.back();
  const auto width = static_cast<size_t>(seen.width);
  const Tensor row = cx.upload(std::span(stream).last(width), {1, seen.width});
  const std::vector<float> logits = host_floats(model.read_out(cx, row));
  const std::vector<double> log_p = log_softmax(logits);

  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const size_t count = std::min(most, ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    [&](int32_t a, int32_t b) {
                      const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  NextTokens next{.token = seen.rows.first + seen.rows.count - 1};
  const auto best = static_cast<size_t>(ids.front());
  next.lse = static_cast<double>(logits[best]) - log_p[best];
  next.rest = 1;
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    next.candidates.push_back({ids[i], static_cast<double>(logits[id])});
    next.rest -= std::exp(log_p[id]);
  }
  next.rest = count == ids.size() ? 0 : std::max(next.rest, 0.0);
  return next;
}

}  // namespace qkv
