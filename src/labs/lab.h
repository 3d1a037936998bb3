// A lab: a claim about Transformers as an experiment that starts from zero, runs in minutes and can fail.
//
// A lab measures one seed at a time; the frame repeats it, puts intervals over the seeds and judges. What would count
// as seen is a list of rules in the lab's definition, written down before anything is measured. docs/labs.md says how
// to write one.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine.h"

namespace qkv {

struct LabPoint {
  double x = 0, y = 0;
};

// What one seed gave. Every seed gives the same names.
struct SeedNumbers {
  struct Number {
    std::string name;
    double value = 0;
    bool label = false;  // says which one, not how much: has no mean
  };
  struct Curve {
    std::string x, y, series;  // what is drawn over what; series of the same y are drawn on one scale
    std::vector<LabPoint> points = {};
  };
  std::vector<Number> numbers;
  std::vector<Curve> curves;
  double seconds = 0;

  void add(std::string name, double value) { numbers.push_back({std::move(name), value}); }
  void add_label(std::string name, int64_t which) {
    numbers.push_back({.name = std::move(name), .value = static_cast<double>(which), .label = true});
  }
  double at(std::string_view name) const;  // an assertion if it is not there
};

struct LabStopped {};  // thrown by LabContext::check

struct LabContext {
  const Engine& engine;
  double size = 1;  // share of the full number of steps and examples; tests take less
  std::function<bool()> stop = {};
  std::function<void(std::string_view doing)> progress = {};

  // Says what goes on, and ends the lab if somebody asked for it.
  void check(std::string_view doing) const;
  int64_t sized(int64_t full, int64_t least = 2) const;
};

// Holds if the whole 95 % interval of a number lies on this side of the bound.
struct LabRule {
  std::string number;
  enum class Side : uint8_t { above, below } side = Side::above;
  double bound = 0;
  std::string why;  // this bound
};

// A number over all seeds.
struct LabRow {
  std::string name;
  std::vector<double> values;  // by seed
  double mean = 0;
  double low = 0, high = 0;  // 95 %: mean +- t s / sqrt(n), Student's t over the seeds
  bool label = false;        // the values are names: look at them alone
};

enum class Verdict : uint8_t { seen, mixed, not_seen, none };  // none: too few seeds were finished
const char* name_of(Verdict verdict);

struct Judged {
  LabRule rule;
  bool held = false;
};

struct LabResult {
  std::vector<uint64_t> seeds;  // finished
  std::vector<SeedNumbers> each;
  std::vector<LabRow> rows;
  std::vector<SeedNumbers::Curve> curves;  // the mean over seeds, where all have the same x
  std::vector<Judged> judged;
  Verdict verdict = Verdict::none;
  bool stopped = false;
  double seconds = 0;
};

struct Lab {
  static constexpr int64_t kFewestSeeds = 3;

  const char* name;
  const char *claim, *claim_zh;
  const char* how;  // what is measured, in a few lines
  int64_t seeds;    // if nobody says how many
  std::vector<LabRule> rules;
  SeedNumbers (*measure)(const LabContext& lab, uint64_t seed);
  // Numbers of all seeds together, as rows whose interval is their own; absent in most labs.
  std::vector<LabRow> (*together)(std::span<const SeedNumbers> each) = nullptr;
};

std::span<const Lab* const> all_labs();
const Lab& lab_named(const std::string& name);  // an Error that names those there are

// Seeds 1 .. seeds. A lab that was stopped has the seeds it finished.
LabResult run_lab(const Lab& lab, const LabContext& context, int64_t seeds);

// The parts of it that are arithmetic alone.
LabRow over_seeds(std::string name, std::vector<double> values);
std::vector<Judged> judge(std::span<const LabRow> rows, std::span<const LabRule> rules);
Verdict verdict_of(std::span<const Judged> judged, int64_t seeds);  // seen: all rules hold; not seen: none does

}  // namespace qkv
