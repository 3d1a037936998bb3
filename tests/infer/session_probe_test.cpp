// The probe of one session sees and edits its own rows alone, whatever else is in the pass.
#include "infer/session_probe.h"

#include <gtest/gtest.h>

#include "core/host_values.h"
#include "infer/scheduler.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/guarded_device.h"
#include "support/pass.h"
#include "support/some_ids.h"

namespace qkv {
namespace {

// Copies what it sees of layer 1, by position.
class CopyingProbe : public SessionProbe {
 public:
  explicit CopyingProbe(int64_t from, bool pattern, int32_t offset) : from_(from), pattern_(pattern), offset_(offset) {}

  bool begin(int64_t first, int64_t rows) override {
    first_ = first;
    rows_ = rows;
    return first + rows > from_;
  }
  Ask ask(Place place, Site site) const override {
    if (place.layer != 1) return Ask::none;
    if (site == Site::attn_probs) return Ask::stats | (pattern_ ? Ask::pattern : Ask::rows);
    return site == Site::resid_post ? Ask::read : Ask::none;
  }
  StatsWanted stats_wanted(Place) const override { return {.offsets = {0, offset_}}; }
  std::vector<int32_t> rows_wanted(Place) const override { return {static_cast<int32_t>(rows_ - 1)}; }
  void visit_stats(Context&, const Tap& tap, const AttentionStats& stats) override {
    check(tap);
    for (const Tensor& x : {stats.entropy, stats.argmax, stats.at_offset}) EXPECT_EQ(&x.device(), &cpu_device());
    add("entropy", 0, stats.entropy);
    add("offsets", 0, stats.at_offset);
    EXPECT_EQ(stats.argmax.dim(0), rows_);
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    check(tap);
    if (tap.site == Site::resid_post) return add("stream", 0, x);
    ASSERT_EQ(x.dim(0), pattern_ ? rows_ : 1);
    EXPECT_EQ(x.dim(2), first_ + rows_) << "no keys of longer texts";
    add("pattern", pattern_ ? 0 : rows_ - 1, x);
  }

  std::map<std::pair<std::string, int64_t>, std::vector<float>> seen;

 private:
  void check(const Tap& tap) const {
    ASSERT_EQ(tap.rows->list.size(), 1U);
    EXPECT_EQ(tap.rows->list[0].first_row, 0);
    EXPECT_EQ(tap.rows->list[0].rows, rows_);
    EXPECT_EQ(tap.rows->list[0].position, first_);
  }
  // By position, and without the keys after it, which depend on how the prompt is split.
  void add(const char* name, int64_t first_row, const Tensor& x) {
    for (int64_t r = 0; r < x.dim(0); ++r) {
      const int64_t position = first_ + first_row + r;
      if (position < from_) continue;
      Tensor row = x.slice(0, r, 1);
      if (std::string_view(name) == "pattern") row = row.slice(2, 0, position + 1);
      seen[{name, position}] = host_floats(row);
    }
  }

  int64_t from_;
  bool pattern_;
  int32_t offset_;
  int64_t first_ = 0, rows_ = 0;
};

// Turns a stream into another.
class ChangingProbe : public SessionProbe {
 public:
  bool begin(int64_t, int64_t) override { return true; }
  Ask ask(Place place, Site site) const override {
    return place.layer == 0 && site == Site::attn_z ? Ask::edit : Ask::none;
  }
  void visit(Context& cx, const Tap&, Tensor& x) override {
    if (in_place) return cx.kernels.fill(cx.exec, {.y = x, .value = 0.25});
    const Tensor other = cx.constant(x.shape(), x.dtype());
    cx.kernels.fill(cx.exec, {.y = other, .value = 0.25});
    x = other;
  }
  bool in_place = true;
};

class SessionProbeTest : public testing::Test {
 protected:
  static SessionOptions request(size_t n) {
    SessionOptions made{.max_new = 6};
    for (size_t i = 0; i < 3 + n * 5 % 23; ++i) made.prompt.push_back(static_cast<int32_t>((n * 31 + i * 7) % 60));
    made.sampling.temperature = 0;
    made.eos.emplace();
    return made;
  }
  using Texts = std::vector<std::vector<int32_t>>;
  Texts run(std::vector<SessionOptions> requests, int64_t chunk) {
    Runner runner(*model_, engine_,
                  {.precision = Precision::f32(), .cache = DType::f32, .positions = 1024, .chunk = chunk});
    Scheduler scheduler(runner);
    Texts texts(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      scheduler.submit({.options = std::move(requests[i]),
                        .on_end = [&texts, i](const Session& session) { texts[i] = session.ids(); }});
    }
    scheduler.run();
    return texts;
  }

  Checkpoint checkpoint_ = Checkpoint::open(test::golden("llama"));
  std::unique_ptr<Model> model_ = checkpoint_.model();
  Engine engine_{kernels::best_table(), {.threads = 2}};
};

TEST_F(SessionProbeTest, SeesItsOwnRowsAsAlone) {
  constexpr size_t kRequests = 9;
  std::vector<std::shared_ptr<CopyingProbe>> alone, among;
  std::vector<SessionOptions> all;
  Texts right;
  const auto probe_of = [&](size_t n) {
    // Whole patterns and last rows, different offsets, some from the start and some from the last token of the prompt.
    const int64_t from = n % 2 == 0 ? 0 : std::ssize(request(n).prompt) - 1;
    return std::make_shared<CopyingProbe>(from, n % 3 == 0, static_cast<int32_t>(1 + n % 2));
  };
  for (size_t n = 0; n < kRequests; ++n) {
    SessionOptions options = request(n);
    right.push_back(run({options}, 64)[0]);
    options.probe = alone.emplace_back(probe_of(n));
    EXPECT_EQ(run({options}, 64)[0], right.back()) << "a probe changed the text";
    if (n != 4) options.probe = among.emplace_back(probe_of(n));
    if (n == 4) options.probe = nullptr, among.emplace_back();  // one beside them that nobody watches
    all.push_back(std::move(options));
  }
  EXPECT_EQ(run(all, 7), right);
  for (size_t n = 0; n < kRequests; ++n) {
    if (n == 4) continue;
    EXPECT_FALSE(alone[n]->seen.empty());
    for (const auto& [what, values] : alone[n]->seen) {
      const auto found = among[n]->seen.find(what);
      const bool last_only = what.first == "pattern" && n % 3 != 0;  // the last row of each pass
      if (last_only && found == among[n]->seen.end()) continue;
      ASSERT_TRUE(found != among[n]->seen.end()) << n << " " << what.first << " " << what.second;
      EXPECT_EQ(found->second, values) << n << " " << what.first << " " << what.second;
    }
  }
}

TEST(SessionProbes, SeeOnADeviceWhatTheySeeOnTheHost) {
  const auto [device, host] = test::on_both([](const Engine& engine) {
    const Checkpoint checkpoint = Checkpoint::open(test::golden("llama"));
    const auto model = checkpoint.model(engine.device());
    Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 256, .chunk = 7});
    Scheduler scheduler(runner);
    std::vector<std::shared_ptr<CopyingProbe>> probes;
    for (uint32_t n = 0; n < 3; ++n) {
      probes.push_back(std::make_shared<CopyingProbe>(0, n % 2 == 0, 1));
      SessionOptions options{.prompt = test::some_ids(4 + 3 * n, n + 1, 60), .max_new = 3, .probe = probes.back()};
      options.sampling.temperature = 0;
      scheduler.submit({.options = std::move(options)});
    }
    scheduler.run();
    std::vector<decltype(CopyingProbe::seen)> seen;
    for (const auto& probe : probes) seen.push_back(probe->seen);
    return seen;
  });
  EXPECT_FALSE(host.front().empty());
  EXPECT_EQ(device, host);
}

TEST_F(SessionProbeTest, EditsItsOwnRowsAlone) {
  std::vector<SessionOptions> requests;
  for (size_t n = 0; n < 5; ++n) requests.push_back(request(n));
  const Texts plain = run(requests, 64);
  for (const bool in_place : {true, false}) {
    const auto probe = std::make_shared<ChangingProbe>();
    probe->in_place = in_place;
    std::vector<SessionOptions> edited = requests;
    edited[2].probe = probe;
    edited[2].shares_prefixes = false;
    const std::vector<int32_t> alone = run({edited[2]}, 64)[0];
    EXPECT_NE(alone, plain[2]) << "the edit did nothing";
    const Texts among = run(edited, 7);
    for (size_t n = 0; n < 5; ++n) EXPECT_EQ(among[n], n == 2 ? alone : plain[n]) << n;
  }
}

TEST_F(SessionProbeTest, TextsThatShareNothingComputeTheirWholePrompt) {
  SessionOptions options = request(4);
  options.prompt.assign(80, 5);
  Runner runner(*model_, engine_, {.precision = Precision::f32(), .cache = DType::f32, .positions = 1024});
  Scheduler scheduler(runner);
  const auto shared_after = [&](bool shares) {
    options.shares_prefixes = shares;
    scheduler.submit({.options = options});
    scheduler.run();
    return scheduler.counts().shared;
  };
  EXPECT_EQ(shared_after(false), 0);
  EXPECT_EQ(shared_after(true), 0) << "what shares nothing left a prefix";
  EXPECT_EQ(shared_after(false), 0) << "what shares nothing took a prefix";
  EXPECT_EQ(shared_after(true), 79);
}

}  // namespace
}  // namespace qkv
