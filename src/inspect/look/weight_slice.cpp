#include "inspect/look/weight_slice.h"

#include <numeric>

#include "base/error.h"
#include "inspect/heads/head_writes.h"
#include "model/weight_list.h"

namespace qkv {
namespace {

// The columns of one head in W_Q, W_K or W_V.
void choose_head(const AttentionSpec& spec, const WeightChoice& choice, WeightMatrix& to) {
  if (!choice.head) return;
  QKV_CHECK(*choice.head >= 0 && *choice.head < spec.heads, "no head ", *choice.head, ": there are heads 0 to ",
            spec.heads - 1, Hint("heads are counted from 0"));
  if (choice.matrix == "o") {
    to.rows = spec.value_width;
    to.first_row = *choice.head * spec.value_width;
    return;
  }
  const int64_t width = choice.matrix == "v" ? spec.value_width : spec.width;
  to.columns = width;
  to.first_column = (choice.matrix == "q" ? *choice.head : kv_head_of(spec, *choice.head)) * width;
}

std::string weight_name(const ModelSpec& spec, const WeightChoice& choice) {
  const std::string& m = choice.matrix;
  const std::string stack = stack_prefix(spec, choice.place.stack);
  if (m == "q" || m == "k" || m == "v" || m == "o") return attention_prefix(spec, choice.place) + "." + m;
  const bool feeds = m == "gate" || m == "up" || m == "down";
  if (feeds) return layer_prefix(spec, choice.place) + (choice.expert ? "mlp.experts." : "mlp.") + m;
  if (m == "router") return layer_prefix(spec, choice.place) + "mlp.router";
  if (m == "position") return stack + "positions";
  if (m == "head") return spec.head.tied ? "" : "head";
  return "";
}

}  // namespace

WeightMatrix weight_matrix(const Model& model, const WeightChoice& choice) {
  const ModelSpec& spec = model.spec();
  WeightMatrix found{.name = weight_name(spec, choice)};
  const bool embeds = choice.matrix == "embed" || (choice.matrix == "head" && found.name.empty());
  if (embeds) {
    for (const std::string& name : {std::string("embed"), stack_prefix(spec, choice.place.stack) + "embed"}) {
      if (model.weights().find(name) != nullptr) found.name = name;
    }
  }
  found.weight = found.name.empty() ? nullptr : model.weights().find(found.name);
  QKV_CHECK(found.weight != nullptr, "this ", spec.family, " has no matrix '", choice.matrix, "' there",
            Hint("q, k, v, o, gate, up, down and router are those of a layer; embed, position and head of the model"));
  const Shape& shape = found.weight->shape();
  const bool of_experts = shape.rank() == 3;
  const int64_t outputs = shape[of_experts ? 1 : 0], inputs = shape[of_experts ? 2 : 1];
  if (of_experts) {
    QKV_CHECK(choice.expert && *choice.expert >= 0 && *choice.expert < shape[0], "which expert? There are 0 to ",
              shape[0] - 1, Hint("experts are counted from 0"));
    found.stored_first = *choice.expert * outputs;
  }
  found.transposed = choice.matrix != "embed" && choice.matrix != "position";
  found.rows = found.transposed ? inputs : outputs;
  found.columns = found.transposed ? outputs : inputs;
  const bool attends = choice.matrix == "q" || choice.matrix == "k" || choice.matrix == "v" || choice.matrix == "o";
  if (attends) choose_head(attention_at(spec, choice.place), choice, found);
  return found;
}

std::vector<float> weight_values(Context& cx, const WeightMatrix& matrix, const WeightRange& range) {
  // Whole rows of what is stored: outputs of a matrix, tokens of an embedding.
  const int64_t first =
      matrix.transposed ? matrix.first_column + range.first_column : matrix.first_row + range.first_row;
  const int64_t count = matrix.transposed ? range.end_column - range.first_column : range.end_row - range.first_row;
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<int32_t>(matrix.stored_first + first));
  const std::vector<float> stored = weight_rows(cx, *matrix.weight, rows);
  const auto width = stored.size() / static_cast<size_t>(count);
  std::vector<float> values;
  for (int64_t r = range.first_row; r < range.end_row; ++r) {
    for (int64_t c = range.first_column; c < range.end_column; ++c) {
      const auto row = static_cast<size_t>(matrix.transposed ? c - range.first_column : r - range.first_row);
      const auto column = static_cast<size_t>(matrix.transposed ? matrix.first_row + r : matrix.first_column + c);
      values.push_back(stored[row * width + column]);
    }
  }
  return values;
}

}  // namespace qkv
