#include "labs/lab.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "base/json.h"
#include "eval/bootstrap.h"

namespace qkv {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_now() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// The scale on which an interval is computed, see over_seeds.
class Scale {
 public:
  explicit Scale(LabRange range) : range_(range) {}

  double to(double x) const {
    if (!std::isfinite(range_.low)) return x;
    return between() ? std::asin(std::sqrt((x - range_.low) / (range_.high - range_.low))) : std::sqrt(x - range_.low);
  }
  double from(double y) const {
    if (!std::isfinite(range_.low)) return y;
    const double within = std::max(y, 0.0);  // the scale begins at 0
    if (!between()) return range_.low + within * within;
    const double root = std::sin(std::min(within, std::acos(0.0)));  // and ends at a right angle
    return range_.low + root * root * (range_.high - range_.low);
  }

 private:
  bool between() const { return std::isfinite(range_.high); }
  LabRange range_;
};

std::vector<SeedNumbers::Curve> mean_curves(std::span<const SeedNumbers> each) {
  std::vector<SeedNumbers::Curve> curves = each.front().curves;
  for (size_t c = 0; c < curves.size(); ++c) {
    for (size_t p = 0; p < curves[c].points.size(); ++p) {
      double sum = 0;
      for (const SeedNumbers& seed : each) sum += seed.curves[c].points[p].y;
      curves[c].points[p].y = sum / static_cast<double>(each.size());
    }
  }
  return curves;
}

}  // namespace

double SeedNumbers::at(std::string_view name) const {
  for (const Number& number : numbers) {
    if (number.name == name) return number.value;
  }
  QKV_ASSERT(false, "no number is called ", name);
  return 0;
}

std::string LabProgress::text() const {
  return "seed " + std::to_string(seed) + " of " + std::to_string(seeds) + ", " + std::string(doing);
}

void LabContext::check(std::string_view doing) const {
  if (progress) progress({.doing = doing});
  if (stop && stop()) throw LabStopped();
}

int64_t LabContext::sized(int64_t full, int64_t least) const {
  return std::max(least, static_cast<int64_t>(std::llround(size * static_cast<double>(full))));
}

const char* name_of(Verdict verdict) {
  static constexpr std::array kNames{"seen", "mixed", "not seen", "no verdict"};
  return kNames[static_cast<size_t>(verdict)];
}

const Lab& lab_named(std::string_view name) {
  std::string list;
  std::vector<std::string_view> known;
  for (const Lab* lab : all_labs()) {
    if (name == lab->name) return *lab;
    known.emplace_back(lab->name);
    list += (list.empty() ? "" : ", ") + std::string(lab->name);
  }
  const std::string near = nearest_key(name, known);
  QKV_FAIL("no lab is called '", name, "'",
           Hint(near.empty() ? "" : "did you mean " + near + "? ", "There are: ", list));
}

LabRow over_seeds(std::string name, std::vector<double> values, LabRange range) {
  const auto n = static_cast<double>(values.size());
  const Scale scale(range);
  double sum = 0, scaled = 0, squares = 0;
  for (const double v : values) {
    QKV_ASSERT(!(v < range.low || v > range.high), "'", name, "' is ", v, ", outside of ", range.low, " to ",
               range.high);
    sum += v;
    scaled += scale.to(v);
  }
  const double mean = sum / n, centre = scaled / n;
  for (const double v : values) squares += (scale.to(v) - centre) * (scale.to(v) - centre);
  // One seed has no interval.
  const double half = values.size() < 2 ? std::numeric_limits<double>::infinity()
                                        : student_t(std::ssize(values) - 1) * std::sqrt(squares / (n - 1) / n);
  LabRow row{.name = std::move(name), .values = std::move(values), .mean = mean, .low = mean, .high = mean};
  if (half > 0) {  // equal values keep their bits
    row.low = std::min(mean, scale.from(centre - half));
    row.high = std::max(mean, scale.from(centre + half));
  }
  return row;
}

std::vector<Judged> judge(std::span<const LabRow> rows, std::span<const LabRule> rules) {
  std::vector<Judged> judged;
  for (const LabRule& rule : rules) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const LabRow& r) { return r.name == rule.number; });
    QKV_ASSERT(row != rows.end(), "a rule is about '", rule.number, "', which was not measured");
    const bool held = rule.side == LabRule::Side::above ? row->low > rule.bound : row->high < rule.bound;
    judged.push_back({rule, held});
  }
  return judged;
}

Verdict verdict_of(std::span<const Judged> judged, int64_t seeds) {
  if (seeds < Lab::kFewestSeeds) return Verdict::none;
  const auto held = std::count_if(judged.begin(), judged.end(), [](const Judged& j) { return j.held; });
  const auto skipped = std::count_if(judged.begin(), judged.end(), [](const Judged& j) { return j.skipped; });
  if (skipped > 0 && skipped == std::ssize(judged)) return Verdict::none;
  if (held == std::ssize(judged) - skipped) return Verdict::seen;
  return held == 0 ? Verdict::not_seen : Verdict::mixed;
}

namespace {

// Rules whose model is not here are skipped; the rest is judged, all together and part by part.
void judge_parts(const Lab& lab, LabResult& result) {
  for (const LabRule& rule : lab.rules) {
    if (rule.part >= 0 && skipped_part(lab, result, static_cast<size_t>(rule.part)) != nullptr) {
      result.judged.push_back({.rule = rule, .skipped = true});
    } else {
      result.judged.push_back(judge(result.rows, {&rule, 1}).front());
    }
  }
  const auto verdict = [&](std::span<const Judged> judged) {
    return result.stopped ? Verdict::none : verdict_of(judged, std::ssize(result.each));
  };
  result.verdict = verdict(result.judged);
  for (size_t part = 0; part < lab.parts.size(); ++part) {
    std::vector<Judged> own;
    for (const Judged& j : result.judged) {
      if (j.rule.part == static_cast<int>(part)) own.push_back(j);
    }
    result.parts.push_back(verdict(own));
  }
}

}  // namespace

const LabSkipped* skipped_part(const Lab& lab, const LabResult& result, size_t part) {
  for (const LabSkipped& skipped : result.skipped) {
    if (skipped.model == lab.parts[part].model) return &skipped;
  }
  return nullptr;
}

LabResult run_lab(const Lab& lab, const LabContext& context, int64_t seeds) {
  QKV_CHECK(seeds >= Lab::kFewestSeeds, "a lab needs ", Lab::kFewestSeeds, " seeds at least but was given ", seeds,
            Hint("an interval over fewer says nothing; leave --seeds out"));
  LabResult result;
  const double start = now(), cpu_start = cpu_now();
  try {
    for (int64_t i = 0; i < seeds; ++i) {
      const double seed_start = now();
      LabContext one = context;
      int64_t checks = 0;
      one.progress = [&](const LabProgress& now) {
        ++checks;
        if (context.progress) context.progress({i + 1, seeds, checks, now.doing});
      };
      const uint64_t seed = context.first_seed + static_cast<uint64_t>(i);
      SeedNumbers numbers = lab.measure(one, seed);
      numbers.seconds = now() - seed_start;
      numbers.checks = checks;
      result.seeds.push_back(seed);
      result.each.push_back(std::move(numbers));
    }
  } catch (const LabStopped&) {
    result.stopped = true;
  }
  result.seconds = now() - start;
  result.cpu_seconds = cpu_now() - cpu_start;
  if (result.each.empty()) return result;

  for (size_t i = 0; i < result.each.front().numbers.size(); ++i) {
    std::vector<double> values;
    for (const SeedNumbers& seed : result.each) {
      QKV_ASSERT(seed.numbers[i].name == result.each.front().numbers[i].name, "seeds of ", lab.name, " differ in '",
                 seed.numbers[i].name, "'");
      values.push_back(seed.numbers[i].value);
    }
    const SeedNumbers::Number& first = result.each.front().numbers[i];
    result.rows.push_back(over_seeds(first.name, std::move(values), first.range));
    result.rows.back().label = first.label;
  }
  if (lab.together != nullptr) {
    for (LabRow& row : lab.together(result.each)) result.rows.push_back(std::move(row));
  }
  result.curves = mean_curves(result.each);
  result.skipped = result.each.front().skipped;
  judge_parts(lab, result);
  return result;
}

}  // namespace qkv
