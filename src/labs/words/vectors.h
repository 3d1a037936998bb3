// Vectors of tokens inside a model, and what can be read off them.
#pragma once

#include <span>
#include <vector>

#include "labs/small_model.h"

namespace qkv {

using Vectors = std::vector<std::vector<float>>;  // one for each of some rows

// The residual stream at the rows `rows` of a batch: depth 0 is the embedding, depth d what the d-th layer leaves.
std::vector<Vectors> stream_vectors(const Engine& engine, const Model& model, const TrainBatch& batch,
                                    std::span<const size_t> rows);

std::vector<float> mean_of(const Vectors& vectors);

// Share of the vectors' variance that lies between the means of their labels: 0 if all vectors are equal, or if labels
// say nothing; 1 if vectors of the same label are equal and others are not.
double share_explained(const Vectors& vectors, std::span<const int32_t> labels);

// Share of `asked` that lie nearer to the mean of their own label's `known` vectors than to any other's.
struct LabelledVectors {
  Vectors vectors;
  std::vector<int32_t> labels;  // from 0 on
};
double nearest_mean_right(const LabelledVectors& known, const LabelledVectors& asked);

}  // namespace qkv
