// Two probes in one pass: the first may edit, the second sees what the edits made of it. Statistics and patterns of rows
// are the second's.
#pragma once

#include "inspect/texts/reading.h"

namespace qkv {

class EditedReading : public ReadingProbe {
 public:
  EditedReading(ReadingProbe& edit, ReadingProbe& look) : edit_(edit), look_(look) {}

  void begin(Context& cx, const PassTexts& pass) override {
    edit_.begin(cx, pass);
    look_.begin(cx, pass);
  }
  void end() override {
    edit_.end();
    look_.end();
  }
  Ask ask(Place place, Site site) const override { return edit_.ask(place, site) | look_.ask(place, site); }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    if (edit_.ask(tap.place, tap.site) != Ask::none) edit_.visit(cx, tap, x);
    if (look_.ask(tap.place, tap.site) != Ask::none) look_.visit(cx, tap, x);
  }
  StatsWanted stats_wanted(Place place) const override { return look_.stats_wanted(place); }
  void visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) override {
    look_.visit_stats(cx, tap, stats);
  }
  std::vector<int32_t> rows_wanted(Place place) const override { return look_.rows_wanted(place); }

 private:
  ReadingProbe &edit_, &look_;
};

}  // namespace qkv
