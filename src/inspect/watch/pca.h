// The two directions in which points differ most, and where points lie along them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

// Eigenvalues of a symmetric matrix [n, n], largest first, and their vectors, by Jacobi's rotations. [k * n + i] is
// entry i of vector k, of length 1.
struct Eigen {
  std::vector<double> values, vectors;
};
Eigen symmetric_eigen(std::vector<double> matrix, size_t n);

struct Plane {
  std::vector<double> origin;               // the mean of the points it was fitted to
  std::array<std::vector<double>, 2> axes;  // length 1, the largest entry positive
  std::array<double, 2> share = {};         // of the variance

  std::array<double, 2> project(std::span<const float> point) const;
};
// `points`: [n, width], at least two different ones for any axis; axes without variance are zero.
Plane fit_plane(std::span<const float> points, size_t width);

}  // namespace qkv
