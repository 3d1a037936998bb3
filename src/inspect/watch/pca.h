// Principal component analysis: the two axes of most variance, and projections on them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

// Eigenvalues of a symmetric matrix [n, n], largest first, and unit eigenvectors, by Jacobi rotations.
// vectors[k * n + i] is entry i of vector k.
struct Eigen {
  std::vector<double> values, vectors;
};
Eigen symmetric_eigen(std::vector<double> matrix, size_t n);

struct Plane {
  std::vector<double> origin;               // mean of the fitted points
  std::array<std::vector<double>, 2> axes;  // unit length, largest entry positive
  std::array<double, 2> share = {};         // of the variance

  std::array<double, 2> project(std::span<const float> point) const;
};
// `points`: [n, width]. Axes without variance are zero.
Plane fit_plane(std::span<const float> points, size_t width);

}  // namespace qkv
