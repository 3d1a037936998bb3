#include "core/probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/says.h"
#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace probe_test {

constexpr int64_t kHeads = 4, kKvHeads = 2, kWidth = 8, kValueWidth = 6;
constexpr double kHidden = -std::numeric_limits<double>::infinity();
constexpr int32_t kClasses = 3;
const std::vector<int32_t> kLengths{70, 5};  // more than one block of keys, and less than one
constexpr int64_t kRows = 75, kKeys = 70;
const std::vector<int32_t> kOffsets{0, 1, -1, 65};

struct Variant {
  std::string name;
  bool causal = false;
  int64_t window = 0;
  bool sinks = false;
  double softcap = 0;
  friend void PrintTo(const Variant& v, std::ostream* out) { *out << v.name; }
};

// Inputs every float can hold, so that the same numbers enter every precision.
Numbers in_f32(Numbers values) {
  for (double& v : values) v = round_to(DType::f32, v);
  return values;
}
const Numbers& q_numbers() {
  static const Numbers values = in_f32(normals(1, kRows * kHeads * kWidth));
  return values;
}
const Numbers& k_numbers() {
  static const Numbers values = in_f32(normals(2, kRows * kKvHeads * kWidth));
  return values;
}
const Numbers& v_numbers() {
  static const Numbers values = in_f32(normals(3, kRows * kKvHeads * kValueWidth));
  return values;
}
const Numbers& sink_numbers() {
  static const Numbers values = in_f32(normals(4, kHeads));
  return values;
}

// Attention by its definition, in double, with every number in memory.
struct Truth {
  Numbers scores, probs, lse, z;  // [N, H, S], [N, H, S], [N, H], [N, H, E]

  explicit Truth(const Variant& variant) {
    int64_t first = 0;
    for (const int32_t length : kLengths) {
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t h = 0; h < kHeads; ++h) row(variant, first, length, i, h);
      }
      first += length;
    }
  }
  double prob(int64_t n, int64_t h, int64_t j) const {
    return probs[static_cast<size_t>((n * kHeads + h) * kKeys + j)];
  }

 private:
  void row(const Variant& variant, int64_t first, int64_t length, int64_t i, int64_t h) {
    const int64_t g = h / (kHeads / kKvHeads);
    Numbers x(kKeys, kHidden);
    for (int64_t j = 0; j < length; ++j) {
      if (variant.causal && j > i) continue;
      if (variant.window > 0 && std::abs(i - j) >= variant.window) continue;
      double dot = 0;
      for (int64_t d = 0; d < kWidth; ++d) {
        dot += q_numbers()[static_cast<size_t>(((first + i) * kHeads + h) * kWidth + d)] *
               k_numbers()[static_cast<size_t>(((first + j) * kKvHeads + g) * kWidth + d)];
      }
      double s = dot / std::sqrt(static_cast<double>(kWidth));
      if (variant.softcap > 0) s = variant.softcap * std::tanh(s / variant.softcap);
      x[static_cast<size_t>(j)] = s;
    }
    double total = variant.sinks ? std::exp(sink_numbers()[static_cast<size_t>(h)]) : 0;
    for (const double s : x) total += std::exp(s);
    Numbers brought(kValueWidth, 0.0);
    for (int64_t j = 0; j < kKeys; ++j) {
      const double a = std::exp(x[static_cast<size_t>(j)]) / total;
      scores.push_back(x[static_cast<size_t>(j)]);
      probs.push_back(a);
      if (j >= length) continue;
      for (int64_t e = 0; e < kValueWidth; ++e) {
        brought[static_cast<size_t>(e)] +=
            a * v_numbers()[static_cast<size_t>(((first + j) * kKvHeads + g) * kValueWidth + e)];
      }
    }
    lse.push_back(std::log(total));
    z.insert(z.end(), brought.begin(), brought.end());
  }
};

// Reads the given sites and stores the values.
class Recorder : public Probe {
 public:
  std::map<Site, Ask> asks;
  std::vector<int32_t> wanted_rows;
  Tensor key_classes;

  struct Seen {
    Shape shape;
    Numbers numbers;
    int visits = 0;
  };
  std::map<Site, Seen> seen;
  std::map<std::string, Numbers> stats;

  Ask ask(Place, Site site) const override {
    const auto it = asks.find(site);
    return it == asks.end() ? Ask::none : it->second;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    Seen& s = seen[tap.site];
    s = {x.shape(), to_host(x), s.visits + 1};
  }
  StatsWanted stats_wanted(Place) const override {
    return {.offsets = kOffsets, .key_classes = key_classes, .classes = key_classes.defined() ? kClasses : 0};
  }
  void visit_stats(Context&, const Tap&, const AttentionStats& s) override {
    stats = {{"entropy", to_host(s.entropy)}, {"distance", to_host(s.distance)}, {"first", to_host(s.first)},
             {"highest", to_host(s.highest)}, {"argmax", to_host(s.argmax)},     {"at_offset", to_host(s.at_offset)}};
    if (s.in_class.defined()) stats["in_class"] = to_host(s.in_class);
  }
  std::vector<int32_t> rows_wanted(Place) const override { return wanted_rows; }
};

class AttentionRun {
 public:
  AttentionRun(const Variant& variant, Precision precision, bool tape = false,
               const Kernels& kernels = kernels::ref::table())
      : pass({.kernels = &kernels, .precision = precision, .tape = tape}),
        q(pass.input(q_numbers(), {kRows, kHeads, kWidth})),
        k(pass.input(k_numbers(), {kRows, kKvHeads, kWidth})),
        v(pass.input(v_numbers(), {kRows, kKvHeads, kValueWidth})),
        sinks(pass.param("sinks", sink_numbers(), {kHeads})),
        rows(Rows::ragged(pass.cx, kLengths)) {
    options = {.place = {.layer = 3}, .softcap = variant.softcap, .causal = variant.causal, .window = variant.window};
    if (variant.sinks) options.sinks = &sinks;
  }

  ops::Attended attend() { return ops::attention(pass.cx, q, k, v, rows, options); }
  ops::Attended attend(Probe& probe) {
    pass.cx.probe = &probe;
    const ops::Attended out = attend();
    pass.cx.probe = nullptr;
    return out;
  }
  void backward(const Tensor& y) {
    const Tensor dy = pass.cx.constant(y.shape(), y.dtype());
    to_device(dy, normals(9, y.count()));
    pass.tape.seed(pass.cx, y, dy);
    pass.tape.backward(pass.cx);
  }
  Numbers gradient(const Tensor& t) { return to_host(pass.tape.gradient(t)); }

  Pass pass;
  Tensor q, k, v;
  Param& sinks;
  Rows rows;
  ops::AttentionOptions options;
};

Tensor classes_of_keys(Pass& p) {
  std::vector<int32_t> classes;
  for (int32_t j = 0; j < kRows; ++j) classes.push_back(j * j % kClasses);
  return p.cx.upload(classes);
}

// Relative to the size of the number, or of the terms it is the sum of where those are given.
void expect_close(const std::string& what, const Numbers& got, const Numbers& right, double tolerance,
                  const Numbers& terms = {}) {
  ASSERT_EQ(got.size(), right.size()) << what;
  for (size_t i = 0; i < right.size(); ++i) {
    if (right[i] == kHidden) {
      ASSERT_EQ(got[i], kHidden) << what << " at " << i;
    } else {
      ASSERT_NEAR(got[i], right[i], tolerance * std::max(1.0, terms.empty() ? std::abs(right[i]) : terms[i]))
          << what << " at " << i;
    }
  }
}

class ProbeOfAttention : public ::testing::TestWithParam<Variant> {};

TEST_P(ProbeOfAttention, SeesEverySite) {
  AttentionRun run(GetParam(), Precision::f64());
  Recorder probe;
  for (const Site site : {Site::attn_q, Site::attn_k, Site::attn_v, Site::attn_z, Site::attn_lse}) {
    probe.asks[site] = Ask::read;
  }
  for (const Site site : {Site::attn_scores, Site::attn_probs}) probe.asks[site] = Ask::pattern;
  run.attend(probe);

  const Truth truth(GetParam());
  const std::tuple<Site, Shape, Numbers> sites[] = {
      {Site::attn_q, {kRows, kHeads, kWidth}, q_numbers()},
      {Site::attn_k, {kRows, kKvHeads, kWidth}, k_numbers()},
      {Site::attn_v, {kRows, kKvHeads, kValueWidth}, v_numbers()},
      {Site::attn_scores, {kRows, kHeads, kKeys}, truth.scores},
      {Site::attn_probs, {kRows, kHeads, kKeys}, truth.probs},
      {Site::attn_z, {kRows, kHeads, kValueWidth}, truth.z},
      {Site::attn_lse, {kRows, kHeads}, truth.lse},
  };
  EXPECT_EQ(probe.seen.size(), std::size(sites));
  for (const auto& [site, shape, right] : sites) {
    EXPECT_EQ(probe.seen[site].visits, 1) << name_of(site);
    EXPECT_EQ(probe.seen[site].shape, shape) << name_of(site);
    expect_close(name_of(site), probe.seen[site].numbers, right, 1e-12);
  }
}

TEST_P(ProbeOfAttention, CountsWhatTheFullPatternSays) {
  const Truth truth(GetParam());
  std::map<std::string, Numbers> right;
  Numbers reach;  // sum A |i - j|: distances to both sides cancel
  int64_t first = 0;
  for (const int32_t length : kLengths) {
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t h = 0; h < kHeads; ++h) {
        const auto a = [&](int64_t j) { return j >= 0 && j < length ? truth.prob(first + i, h, j) : 0.0; };
        double entropy = 0, distance = 0, far = 0, highest = 0, argmax = -1;
        Numbers in_class(kClasses, 0.0);
        for (int64_t j = 0; j < length; ++j) {
          if (a(j) == 0) continue;
          entropy -= a(j) * std::log(a(j));
          distance += a(j) * static_cast<double>(i - j);
          far += a(j) * static_cast<double>(std::abs(i - j));
          in_class[static_cast<size_t>((first + j) * (first + j) % kClasses)] += a(j);
          if (a(j) > highest) argmax = static_cast<double>(j);
          highest = std::max(highest, a(j));
        }
        right["entropy"].push_back(entropy);
        right["distance"].push_back(distance);
        reach.push_back(far);
        right["first"].push_back(a(0));
        right["highest"].push_back(highest);
        right["argmax"].push_back(argmax);
        for (const int32_t offset : kOffsets) right["at_offset"].push_back(a(i - offset));
        for (const double mass : in_class) right["in_class"].push_back(mass);
      }
    }
    first += length;
  }

  for (const auto& [precision, tolerance] : {std::pair{Precision::f64(), 1e-12}, std::pair{Precision::f32(), 1e-6}}) {
    for (const Kernels* kernels : kernels::all_tables()) {
      AttentionRun run(GetParam(), precision, false, *kernels);
      Recorder probe;
      probe.asks[Site::attn_probs] = Ask::stats;
      probe.key_classes = classes_of_keys(run.pass);
      run.attend(probe);
      ASSERT_EQ(probe.stats.size(), right.size());
      for (const auto& [name, numbers] : right) {
        expect_close(name, probe.stats[name], numbers, tolerance, name == "distance" ? reach : Numbers{});
      }
      EXPECT_TRUE(probe.seen.empty()) << "statistics alone show no pattern";
    }
  }
}

TEST_P(ProbeOfAttention, SomeRowsAreTheSameRowsOfThePattern) {
  AttentionRun run(GetParam(), Precision::f32());
  Recorder all, some;
  some.wanted_rows = {74, 0, 33, 33};
  for (const Site site : {Site::attn_scores, Site::attn_probs}) {
    all.asks[site] = Ask::pattern;
    some.asks[site] = Ask::rows;
  }
  run.attend(all);
  run.attend(some);
  for (const Site site : {Site::attn_scores, Site::attn_probs}) {
    Numbers picked;
    for (const int32_t row : some.wanted_rows) {
      const auto at = all.seen[site].numbers.begin() + row * kHeads * kKeys;
      picked.insert(picked.end(), at, at + kHeads * kKeys);
    }
    EXPECT_EQ(some.seen[site].shape, Shape({4, kHeads, kKeys}));
    EXPECT_EQ(some.seen[site].numbers, picked) << name_of(site);
  }
}

// Beside a long text in the pass, the rows of a short one take no more memory than alone.
TEST_P(ProbeOfAttention, SomeRowsAreAsWideAsTheirOwnKeys) {
  AttentionRun run(GetParam(), Precision::f32());
  const auto shortest = std::min_element(run.rows.list.begin(), run.rows.list.end(),
                                         [](const Segment& a, const Segment& b) { return a.keys < b.keys; });
  ASSERT_LT(shortest->keys, kKeys);
  Recorder all, some;
  some.wanted_rows = {shortest->first_row + shortest->rows - 1, shortest->first_row};
  all.asks[Site::attn_probs] = Ask::pattern;
  some.asks[Site::attn_probs] = Ask::rows;
  run.attend(all);
  run.attend(some);
  Numbers picked;
  for (const int32_t row : some.wanted_rows) {
    for (int64_t h = 0; h < kHeads; ++h) {
      const auto at = all.seen[Site::attn_probs].numbers.begin() + (row * kHeads + h) * kKeys;
      picked.insert(picked.end(), at, at + shortest->keys);
    }
  }
  EXPECT_EQ(some.seen[Site::attn_probs].shape, Shape({2, kHeads, shortest->keys}));
  EXPECT_EQ(some.seen[Site::attn_probs].numbers, picked);
}

TEST_P(ProbeOfAttention, ChangesNoBitByLooking) {
  AttentionRun alone(GetParam(), Precision::f32(), true), watched(GetParam(), Precision::f32(), true);
  Recorder probe;
  for (const Site site : {Site::attn_q, Site::attn_k, Site::attn_v, Site::attn_z, Site::attn_lse}) {
    probe.asks[site] = Ask::read;
  }
  probe.asks[Site::attn_scores] = Ask::rows;
  probe.asks[Site::attn_probs] = Ask::stats | Ask::pattern;
  probe.wanted_rows = {1};
  probe.key_classes = classes_of_keys(watched.pass);

  const ops::Attended plain = alone.attend(), seen = watched.attend(probe);
  EXPECT_EQ(to_host(plain.z), to_host(seen.z));
  EXPECT_EQ(to_host(plain.lse), to_host(seen.lse));
  alone.backward(plain.z);
  watched.backward(seen.z);
  EXPECT_EQ(alone.gradient(alone.q), watched.gradient(watched.q));
  EXPECT_EQ(alone.gradient(alone.k), watched.gradient(watched.k));
  EXPECT_EQ(alone.gradient(alone.v), watched.gradient(watched.v));
}

INSTANTIATE_TEST_SUITE_P(
    Variants, ProbeOfAttention,
    ::testing::Values(Variant{.name = "full"}, Variant{.name = "causal", .causal = true},
                      Variant{.name = "causal_window", .causal = true, .window = 9},
                      Variant{.name = "both_sides_window", .window = 5},
                      Variant{.name = "sinks", .causal = true, .sinks = true},
                      Variant{.name = "softcap", .causal = true, .softcap = 1.5},
                      Variant{.name = "everything", .causal = true, .window = 66, .sinks = true, .softcap = 2}),
    [](const auto& one) { return one.param.name; });

constexpr int64_t kCut = 2;  // the head that is cut

class CutInPlace : public Probe {
 public:
  Ask ask(Place place, Site site) const override {
    return place.layer == 3 && site == Site::attn_z ? Ask::edit : Ask::none;
  }
  void visit(Context& cx, const Tap&, Tensor& z) override {
    cx.kernels.fill(cx.exec, {.y = z.slice(1, kCut, 1), .value = 0});
  }
};

TEST(EditOfAttention, ThatCutsAHeadZeroesItsRowsAndNoOthers) {
  AttentionRun whole({}, Precision::f32()), cut({}, Precision::f32());
  CutInPlace probe;
  Numbers by_hand = to_host(whole.attend().z);
  for (int64_t i = 0; i < kRows * kHeads * kValueWidth; ++i) {
    if (i / kValueWidth % kHeads == kCut) by_hand[static_cast<size_t>(i)] = 0;
  }
  EXPECT_EQ(to_host(cut.attend(probe).z), by_hand);
}

// Head kCut times 0, the others as they are, made of ops.
Tensor cut_by_ops(Context& cx, const Tensor& z) {
  const int64_t heads = z.dim(1), width = z.dim(2);
  const Tensor flat = z.view({z.dim(0), 1, heads * width});
  const Tensor before = flat.slice(2, 0, kCut * width), head = flat.slice(2, kCut * width, width);
  const Tensor after = flat.slice(2, (kCut + 1) * width, (heads - kCut - 1) * width);
  return ops::concat(cx, ops::concat(cx, before, ops::scale(cx, head, 0)), after).view(z.shape());
}

class CutByOps : public CutInPlace {
 public:
  void visit(Context& cx, const Tap&, Tensor& z) override { z = cut_by_ops(cx, z); }
};

TEST(EditOfAttention, UnderATapeIsAnOpWithItsGradient) {
  const Variant causal{.name = "causal", .causal = true};
  AttentionRun probed(causal, Precision::f32(), true), by_hand(causal, Precision::f32(), true),
      whole(causal, Precision::f32(), true);
  CutByOps probe;
  const Tensor edited = probed.attend(probe).z;
  const Tensor right = cut_by_ops(by_hand.pass.cx, by_hand.attend().z);
  EXPECT_EQ(to_host(edited), to_host(right));
  probed.backward(edited);
  by_hand.backward(right);
  whole.backward(whole.attend().z);
  EXPECT_EQ(probed.gradient(probed.q), by_hand.gradient(by_hand.q));
  EXPECT_EQ(probed.gradient(probed.k), by_hand.gradient(by_hand.k));
  EXPECT_EQ(probed.gradient(probed.v), by_hand.gradient(by_hand.v));

  // Nothing flows through the cut head, and the others do not notice.
  const Numbers dq = probed.gradient(probed.q), uncut = whole.gradient(whole.q);
  for (size_t i = 0; i < dq.size(); ++i) {
    const bool in_cut = static_cast<int64_t>(i) / kWidth % kHeads == kCut;
    ASSERT_EQ(dq[i], in_cut ? 0 : uncut[i]) << i;
  }
}

class EditQueries : public Probe {
 public:
  Ask ask(Place, Site site) const override { return site == Site::attn_q ? Ask::edit : Ask::none; }
  void visit(Context& cx, const Tap&, Tensor& q) override { q = ops::scale(cx, q, 2); }
};

TEST(EditOfAttention, OfTheQueriesReachesTheScores) {
  AttentionRun probed({}, Precision::f64()), by_hand({}, Precision::f64());
  EditQueries probe;
  by_hand.options.scale = 2 / std::sqrt(static_cast<double>(kWidth));
  const Numbers right = to_host(by_hand.attend().z);
  EXPECT_LE(nmse(to_host(probed.attend(probe).z), right), 1e-28);
}

TEST(ProbeOfPaddedRows, SeesNothingWhereNobodyIs) {
  Pass p;
  const std::vector<int32_t> lengths{2, 3};
  const Rows rows = Rows::padded(p.cx, lengths, 3);
  const Tensor q = p.input(normals(1, 6 * 2 * 4), {6, 2, 4}), k = p.input(normals(2, 6 * 2 * 4), {6, 2, 4});
  Recorder probe;
  probe.asks[Site::attn_probs] = Ask::stats | Ask::pattern;
  p.cx.probe = &probe;
  const ops::Attended out = ops::attention(p.cx, q, k, k, rows, {});
  const Numbers z = to_host(out.z), lse = to_host(out.lse);
  for (size_t i = 2 * 8; i < 3 * 8; ++i) EXPECT_EQ(z[i], 0);
  for (const size_t head : {size_t{4}, size_t{5}}) {
    EXPECT_EQ(lse[head], kHidden);
    EXPECT_EQ(probe.stats["argmax"][head], -1);
    EXPECT_EQ(probe.stats["entropy"][head], 0);
  }
  for (size_t i = 2 * 6; i < 3 * 6; ++i) EXPECT_EQ(probe.seen[Site::attn_probs].numbers[i], 0);
}

TEST(ProbeMistakes, ARowPastTheEndIsAnError) {
  AttentionRun run({}, Precision::f32());
  Recorder probe;
  probe.asks[Site::attn_probs] = Ask::rows;
  probe.wanted_rows = {0, 75};
  expect_error([&] { run.attend(probe); }, {"attention", "rows a probe wants", "75", "[0, 75)"});
}

TEST(ProbeMistakes, AClassThatDoesNotExistIsAnError) {
  AttentionRun run({}, Precision::f32());
  Recorder probe;
  probe.asks[Site::attn_probs] = Ask::stats;
  const std::vector<int32_t> too_large(kRows, kClasses);
  probe.key_classes = run.pass.cx.upload(too_large);
  expect_error([&] { run.attend(probe); }, {"attention", "key_classes[0] is 3", "[0, 3)"});
}

TEST(ProbeMistakes, FewerClassesThanKeysAreAnError) {
  AttentionRun run({}, Precision::f32());
  Recorder probe;
  probe.asks[Site::attn_probs] = Ask::stats;
  const std::vector<int32_t> too_few(kRows - 1, 0);
  probe.key_classes = run.pass.cx.upload(too_few);
  expect_error([&] { run.attend(probe); }, {"attention", "key_classes", "i32 [74]", "75"});
}

TEST(Ask, IsASetOfFlags) {
  const Ask both = Ask::read | Ask::stats;
  EXPECT_TRUE(has(both, Ask::read));
  EXPECT_TRUE(has(both, Ask::stats));
  EXPECT_FALSE(has(both, Ask::edit));
  EXPECT_FALSE(has(Ask::none, Ask::read));
}

TEST(Site, HasANameOfItsOwn) {
  std::map<std::string, int> names;
  for (int site = 0; site <= static_cast<int>(Site::logits); ++site) ++names[name_of(static_cast<Site>(site))];
  EXPECT_EQ(names.size(), static_cast<size_t>(Site::logits) + 1);
  EXPECT_FALSE(names.contains("?"));
}

}  // namespace probe_test
}  // namespace qkv::test
