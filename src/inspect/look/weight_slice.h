// A part of a weight matrix, as formulas write it: y = x W, rows are inputs and columns outputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/heads/head_id.h"
#include "model/model.h"

namespace qkv {

struct WeightChoice {
  std::string matrix;             // q, k, v, o, gate, up, down, router; embed, position, head
  Place place = {};               // of the layer
  std::optional<int64_t> head;    // of q, k, v: its columns; of o: its rows
  std::optional<int64_t> expert;  // of gate, up, down
};

// Where it lies: rows [first_row, first_row + inputs) ... of the stored weight.
struct WeightMatrix {
  const Param* weight = nullptr;
  std::string name;
  bool transposed = true;                   // stored as [outputs, inputs]; embeddings are not
  int64_t rows = 0, columns = 0;            // of the part, as in y = x W
  int64_t first_row = 0, first_column = 0;  // of the part in the whole, as in y = x W
  int64_t stored_first = 0;                 // rows of other experts before it
};
// An Error that lists the matrices if this model has none of this name.
WeightMatrix weight_matrix(const Model& model, const WeightChoice& choice);

// [row.second - row.first, column.second - column.first], half-open ranges of the part.
struct WeightRange {
  int64_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
};
std::vector<float> weight_values(Context& cx, const WeightMatrix& matrix, const WeightRange& range);

}  // namespace qkv
