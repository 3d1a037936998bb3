// Probes of single sessions in passes that many share: each sees and edits the rows of its own session alone.
#pragma once

#include <vector>

#include "core/probe.h"

namespace qkv {

// Taps have one segment, whose rows are counted from 0, and tensors of these rows; statistics are in memory of the
// host. Logits are not shown. A probe must not throw: that would fail the whole pass.
class SessionProbe : public Probe {
 public:
  // Before each pass with rows of the session: positions [first, first + rows) of its text. False: it needs nothing of
  // this pass, which then runs as fast as without it.
  virtual bool begin(int64_t first, int64_t rows) = 0;
};

// The probe of a pass: shows each session's rows to the probe of that session.
class PassProbe : public Probe {
 public:
  struct Part {
    SessionProbe* probe = nullptr;
    int64_t first_row = 0, rows = 0;  // of the pass
  };
  explicit PassProbe(std::vector<Part> parts) : parts_(std::move(parts)) {}

  Ask ask(Place place, Site site) const override;
  void visit(Context& cx, const Tap& tap, Tensor& x) override;
  StatsWanted stats_wanted(Place place) const override;
  void visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) override;
  std::vector<int32_t> rows_wanted(Place place) const override;

 private:
  void visit_pattern(Context& cx, const Tap& tap, const Tensor& x);

  std::vector<Part> parts_;
};

}  // namespace qkv
