// A lab: a claim about Transformers as an experiment that trains from scratch, runs in minutes and can fail.
//
// A lab measures one seed; run_lab() repeats it over seeds, computes 95 % intervals and checks the lab's rules, which
// are fixed before anything is measured. docs/labs.md says how to write one.
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

// What a number can be. Its interval never leaves this.
struct LabRange {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = -kInfinity, high = kInfinity;
  static constexpr LabRange share() { return {0, 1}; }  // an accuracy, a weight of attention, an entropy over its most
  static constexpr LabRange amount() { return {0, kInfinity}; }  // a loss, a count, a ratio of sizes
  static constexpr LabRange share_difference() { return {-1, 1}; }
};

// One plain sentence in both languages. {name} stands for the mean of the number of that name, {name%} for its percent.
struct LabSentence {
  std::string english, chinese;
};

// A built-in model that is not here: what stands on it is not measured.
struct LabSkipped {
  std::string model;
  LabSentence why;  // what is missing and how to get it
};

// Results of one seed. Every seed reports the same names.
struct SeedNumbers {
  struct Number {
    std::string name;
    double value = 0;
    LabRange range = {};
    bool label = false;  // a category (which head), not a quantity: has no mean
  };
  struct Curve {
    std::string x, y, series;  // axis labels and line name; curves with the same y share one plot
    std::vector<LabPoint> points = {};
  };
  std::vector<Number> numbers;
  std::vector<Curve> curves;
  std::vector<LabSkipped> skipped;
  double seconds = 0;
  int64_t checks = 0;  // how often it told its progress

  void add(std::string name, double value, LabRange range = {}) { numbers.push_back({std::move(name), value, range}); }
  void add_share(std::string name, double value) { add(std::move(name), value, LabRange::share()); }
  void add_amount(std::string name, double value) { add(std::move(name), value, LabRange::amount()); }
  void add_label(std::string name, int64_t which) {
    numbers.push_back({.name = std::move(name), .value = static_cast<double>(which), .label = true});
  }
  double at(std::string_view name) const;  // asserts that it exists
};

struct LabStopped {};  // thrown by LabContext::check

// How far a lab is. Every seed calls LabContext::check about as often, so after the first one the rest is known.
struct LabProgress {
  int64_t seed = 1, seeds = 1;  // the one being measured, of so many
  int64_t checks = 0;           // calls of check() in this seed
  std::string_view doing = {};
  std::string text() const;  // on one line
};

struct LabContext {
  const Engine& engine;
  double size = 1;  // scales the number of steps and examples; tests use less than 1
  uint64_t first_seed = 1;
  std::function<bool()> stop = {};
  std::function<void(const LabProgress&)> progress = {};

  // Reports progress, and throws LabStopped if a stop was requested.
  void check(std::string_view doing) const;
  int64_t sized(int64_t full, int64_t least = 2) const;  // full * size, at least `least`
};

// Holds if the whole 95 % interval of a number lies above (or below) the bound.
struct LabRule {
  std::string number;
  enum class Side : uint8_t { above, below } side = Side::above;
  double bound = 0;
  std::string why;  // reason for this bound
  int part = -1;    // of Lab::parts, if it belongs to one
};

// A number over all seeds.
struct LabRow {
  std::string name;
  std::vector<double> values;  // by seed
  double mean = 0;
  double low = 0, high = 0;  // 95 %, see over_seeds
  bool label = false;        // categories: mean and interval mean nothing
};

enum class Verdict : uint8_t { seen, mixed, not_seen, none };  // none: too few seeds finished, or nothing to judge
const char* name_of(Verdict verdict);

struct Judged {
  LabRule rule;
  bool held = false;
  bool skipped = false;  // its model is not here
};

struct LabResult {
  std::vector<uint64_t> seeds;  // finished
  std::vector<SeedNumbers> each;
  std::vector<LabRow> rows;
  std::vector<SeedNumbers::Curve> curves;  // mean over seeds; all seeds have the same x
  std::vector<Judged> judged;
  Verdict verdict = Verdict::none;
  std::vector<Verdict> parts;  // of each of Lab::parts
  std::vector<LabSkipped> skipped;
  bool stopped = false;
  double seconds = 0, cpu_seconds = 0;  // cpu_seconds: of all threads together
};

// What to say for each verdict. "mixed" is said whichever rules fail, so it only names numbers.
struct LabFound {
  LabSentence seen, mixed, not_seen;
};

// A claim within the claim, with a verdict of its own from the rules that name it.
struct LabPart {
  std::string name, name_zh;
  LabSentence claim;
  LabSentence found;       // whatever the verdict is
  std::string model = {};  // the built-in model it stands on; "": none
};

struct Lab {
  static constexpr int64_t kFewestSeeds = 3;

  const char* name;
  const char *claim, *claim_zh;
  const char* how;  // what is measured, in a few lines
  int64_t seeds;    // default number of seeds
  std::vector<LabRule> rules;
  LabFound found;
  SeedNumbers (*measure)(const LabContext& lab, uint64_t seed);
  // Rows computed from all seeds together, with intervals of their own; null in most labs.
  std::vector<LabRow> (*together)(std::span<const SeedNumbers> each) = nullptr;
  std::vector<LabPart> parts = {};
};

std::span<const Lab* const> all_labs();
const Lab& lab_named(std::string_view name);  // an Error that lists the labs if there is none

// Runs `seeds` seeds from context.first_seed on. If stopped, the result has those that finished.
LabResult run_lab(const Lab& lab, const LabContext& context, int64_t seeds);

std::string short_number(double x);  // three digits, as in sentences and tables
// What a result says of the lab's claim, in a sentence; without a verdict, that there is none.
LabSentence conclusion(const Lab& lab, const LabResult& result);
// The same of one of its parts; of one that was skipped, what is missing.
LabSentence part_conclusion(const Lab& lab, const LabResult& result, size_t part);
const LabSkipped* skipped_part(const Lab& lab, const LabResult& result, size_t part);  // null: it was measured

// The statistics behind run_lab(). Interval: mean +- t s / sqrt(n), Student's t over the seeds, of f(values), taken back
// by the inverse of f. f(x) = x for numbers without ends, sqrt(x - low) for those with a lowest value, asin(sqrt(u)) for
// those between two, u being x as a share of the range. These scales end where the numbers end, spread there as much as
// elsewhere, and are finite at the ends themselves: 0 errors and 100 % right are values like others.
LabRow over_seeds(std::string name, std::vector<double> values, LabRange range = {});
std::vector<Judged> judge(std::span<const LabRow> rows, std::span<const LabRule> rules);
// seen: all rules hold; not_seen: none does. Skipped rules do not count.
Verdict verdict_of(std::span<const Judged> judged, int64_t seeds);

}  // namespace qkv
