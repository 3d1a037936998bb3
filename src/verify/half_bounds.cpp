#include "verify/half_bounds.h"

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "base/json.h"
#include "verify/recorded.h"

namespace qkv {

double half_nmse(const std::filesystem::path& folder) {
  const std::filesystem::path whole = std::filesystem::weakly_canonical(folder / "io.safetensors").parent_path();
  const std::filesystem::path file = whole.parent_path() / "BF16_ON_GPU.json";
  if (!std::filesystem::exists(file)) return HalfBounds::kNmse;
  const Json said = parse_json(read_file(file, 1 << 20), file.string());
  const auto at = said.find(whole.filename().string());
  return at == said.end() || !at->is_number() ? HalfBounds::kNmse
                                              : std::max(HalfBounds::kNmse, 1.5 * at->get<double>());
}

RowChoices recorded_choices(const StoredTensor& router_logits, int64_t top_k) {
  const std::vector<float> logits = recorded_floats(router_logits);
  const auto experts = static_cast<size_t>(router_logits.shape.back());
  RowChoices chosen;
  for (size_t r = 0; r + experts <= logits.size(); r += experts) {
    std::vector<int32_t>& order = chosen.emplace_back(experts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return logits[r + static_cast<size_t>(a)] > logits[r + static_cast<size_t>(b)];
    });
    order.resize(static_cast<size_t>(std::min<int64_t>(top_k, std::ssize(order))));
    std::sort(order.begin(), order.end());
  }
  return chosen;
}

}  // namespace qkv
