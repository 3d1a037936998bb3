#include "inspect/watch/pca.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace qkv {

Eigen symmetric_eigen(std::vector<double> a, size_t n) {
  QKV_ASSERT(a.size() == n * n, a.size(), " numbers for ", n, " x ", n);
  std::vector<double> v(n * n);  // rows are vectors
  for (size_t i = 0; i < n; ++i) v[i * n + i] = 1;
  double all = 0;
  for (const double x : a) all += x * x;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double outside = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) outside += a[i * n + j] * a[i * n + j];
    }
    if (outside <= 1e-24 * all) break;
    for (size_t p = 0; p < n; ++p) {
      for (size_t q = p + 1; q < n; ++q) {
        if (a[p * n + q] == 0) continue;
        // The rotation that makes a[p][q] zero.
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (size_t k = 0; k < n; ++k) {
          const double x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x - s * y;
          a[k * n + q] = s * x + c * y;
        }
        for (size_t k = 0; k < n; ++k) {
          const double x = a[p * n + k], y = a[q * n + k], u = v[p * n + k], w = v[q * n + k];
          a[p * n + k] = c * x - s * y;
          a[q * n + k] = s * x + c * y;
          v[p * n + k] = c * u - s * w;
          v[q * n + k] = s * u + c * w;
        }
      }
    }
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return a[i * n + i] > a[j * n + j]; });
  Eigen made;
  for (const size_t i : order) {
    made.values.push_back(a[i * n + i]);
    made.vectors.insert(made.vectors.end(), v.begin() + static_cast<int64_t>(i * n),
                        v.begin() + static_cast<int64_t>((i + 1) * n));
  }
  return made;
}

std::array<double, 2> Plane::project(std::span<const float> point) const {
  std::array<double, 2> at{};
  for (size_t axis = 0; axis < 2; ++axis) {
    for (size_t c = 0; c < axes[axis].size(); ++c) {
      at[axis] += (static_cast<double>(point[c]) - origin[c]) * axes[axis][c];
    }
  }
  return at;
}

Plane fit_plane(std::span<const float> points, size_t width) {
  const size_t n = width == 0 ? 0 : points.size() / width;
  Plane plane{.origin = std::vector<double>(width)};
  for (auto& axis : plane.axes) axis.assign(width, 0);
  if (n < 2) return plane;
  std::vector<double> x(points.begin(), points.end());
  for (size_t i = 0; i < x.size(); ++i) plane.origin[i % width] += x[i] / static_cast<double>(n);
  double variance = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] -= plane.origin[i % width];
    variance += x[i] * x[i];
  }
  if (variance == 0) return plane;
  // X X' and X' X have the same eigenvalues; the smaller matrix is used. If u is an eigenvector of X X', X' u is one of
  // X' X.
  const bool by_points = n <= width;
  const size_t size = by_points ? n : width;
  std::vector<double> gram(size * size);
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = i; j < size; ++j) {
      double sum = 0;
      for (size_t k = 0; k < (by_points ? width : n); ++k) {
        sum += by_points ? x[i * width + k] * x[j * width + k] : x[k * width + i] * x[k * width + j];
      }
      gram[i * size + j] = gram[j * size + i] = sum;
    }
  }
  const Eigen eigen = symmetric_eigen(std::move(gram), size);
  for (size_t axis = 0; axis < 2 && axis < size; ++axis) {
    if (eigen.values[axis] <= 1e-12 * variance) break;
    plane.share[axis] = eigen.values[axis] / variance;
    std::vector<double>& direction = plane.axes[axis];
    const double* u = eigen.vectors.data() + axis * size;
    if (by_points) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t c = 0; c < width; ++c) direction[c] += u[i] * x[i * width + c];
      }
      for (double& d : direction) d /= std::sqrt(eigen.values[axis]);
    } else {
      direction.assign(u, u + size);
    }
    const auto largest = std::max_element(direction.begin(), direction.end(),
                                          [](double a, double b) { return std::abs(a) < std::abs(b); });
    if (*largest < 0) {
      for (double& d : direction) d = -d;
    }
  }
  return plane;
}

}  // namespace qkv
