// The ONNX project's own vectors for attention, norms, rotary, softmax, gates and caches, one test per file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "onnx_ops.h"

namespace qkv::test {
namespace {

constexpr size_t kFiles = 146;
constexpr const char* kAbsent = "the_vectors_are_not_on_this_machine";

// Files whose operator we leave out on purpose, and why.
struct OutOfScope {
  const char* file;
  const char* why;
};
const std::vector<OutOfScope> kOutOfScope{};

// A file's numbers were rounded to its own dtype by an implementation that worked in it, so that dtype sets the bound.
struct Bound {
  double nmse, worst;
};
Bound bound_for(DType dtype, std::span<const double> right) {
  double mean = 0, variance = 0, largest = 0;
  const auto n = static_cast<double>(right.size());
  const auto finite = [](double r) { return std::isfinite(r) ? r : 0; };
  for (const double r : right) mean += finite(r) / n;
  for (const double r : right) variance += (finite(r) - mean) * (finite(r) - mean) / n;
  for (const double r : right) largest = std::max(largest, std::abs(finite(r)));
  const double unit = std::max(1.0, std::sqrt(variance));
  switch (dtype) {
    case DType::f64:
      return {1e-24, 1e-12 * unit};
    case DType::f16: {  // two units in the last place of the largest number
      const double two_ulp = largest > 0 ? 2 * std::exp2(std::floor(std::log2(largest)) - 10) : 0;
      return {1, two_ulp};
    }
    default:
      return {1e-12, 1e-5 * unit};
  }
}

double worst(std::span<const double> got, std::span<const double> right) {
  double most = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    if (got[i] == right[i]) continue;  // also equal infinities
    const double off = std::abs(got[i] - right[i]);
    most = off <= most ? most : off;  // a NaN stays
  }
  return most;
}

std::vector<std::string> stems() {
  std::vector<std::string> out;
  const auto folder = shared("onnx-ops");
  if (!folder) return {kAbsent};
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() == ".safetensors") out.push_back(entry.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// What is wrong with one file; empty if everything matches, with every kernel table, one and two threads, rows and
// pages.
std::string complaints(const std::string& stem) {
  std::ostringstream out;
  const GoldenFile file = GoldenFile::read(*shared("onnx-ops") / (stem + ".safetensors"));
  const bool attends = file.metadata.at("op").ends_with("Attention");
  for (const Kernels* kernels : kernels::all_tables()) {
    for (const int threads : {1, 2}) {
      for (const bool pages : {false, true}) {
        if (pages && !attends) continue;
        const auto got = run_onnx(file, {.kernels = kernels, .threads = threads, .pages = pages});
        for (const auto& [name, right] : file.tensors) {
          if (!name.starts_with("output.")) continue;
          const auto found = got.find(name.substr(7));
          if (found == got.end() || found->second.size() != right.values.size()) {
            out << kernels->name << ": " << name << " is missing or of another size\n";
            continue;
          }
          const Bound bound = bound_for(right.dtype, right.values);
          const double error = nmse(found->second, right.values), most = worst(found->second, right.values);
          if (error <= bound.nmse && most <= bound.worst) continue;
          out << kernels->name << ", " << threads << " threads" << (pages ? ", pages" : "") << ": " << name
              << " has NMSE " << error << " (bound " << bound.nmse << ") and worst difference " << most << " (bound "
              << bound.worst << ")\n";
        }
      }
    }
  }
  return out.str();
}

const char* why_out_of_scope(const std::string& stem) {
  for (const OutOfScope& one : kOutOfScope) {
    if (stem == one.file) return one.why;
  }
  return nullptr;
}

class Onnx : public testing::TestWithParam<std::string> {};

TEST_P(Onnx, GivesWhatTheFileSays) {
  if (GetParam() == kAbsent) GTEST_SKIP() << "../shared/onnx-ops is not on this machine";
  if (const char* why = why_out_of_scope(GetParam())) GTEST_SKIP() << "out of scope: " << why;
  EXPECT_EQ(complaints(GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(, Onnx, testing::ValuesIn(stems()), [](const auto& file) { return file.param; });

// Tests run one per process, so this one reads every file again instead of counting the others' runs.
TEST(OnnxVectors, EveryFilePassesOrIsNamedOutOfScope) {
  QKV_NEED_SHARED(folder, "onnx-ops");
  size_t seen = 0, passed = 0;
  for (const std::string& stem : stems()) {
    ++seen;
    if (why_out_of_scope(stem) == nullptr && complaints(stem).empty()) ++passed;
  }
  EXPECT_EQ(seen, kFiles);
  EXPECT_EQ(passed + kOutOfScope.size(), kFiles);
}

TEST(OnnxVectors, WrongNumbersAreNotLetThrough) {
  const Numbers right{1, -2, 3, 0.5};
  for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
    const Bound bound = bound_for(dtype, right);
    Numbers got = right;
    got[1] += 0.02;
    EXPECT_FALSE(nmse(got, right) <= bound.nmse && worst(got, right) <= bound.worst);
    got[1] = std::nan("");
    EXPECT_FALSE(nmse(got, right) <= bound.nmse && worst(got, right) <= bound.worst);
  }
}

}  // namespace
}  // namespace qkv::test
