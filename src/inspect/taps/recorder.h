// A probe that copies tensors at chosen taps to the host, in passes of a Reader or a Runner (RunOptions::probe).
#pragma once

#include <vector>

#include "inspect/taps/taps.h"
#include "inspect/texts/reading.h"

namespace qkv {

struct RecordedTap {
  TapId id;
  Shape shape;
  std::vector<float> values;
  std::vector<Segment> rows;  // which text each row belongs to; empty if the tensor has no rows of the pass

  // All values of one row.
  std::span<const float> row(int64_t r) const {
    const auto width = values.size() / static_cast<size_t>(shape[0]);
    return std::span(values).subspan(static_cast<size_t>(r) * width, width);
  }
};

class Recorder : public ReadingProbe {
 public:
  explicit Recorder(std::vector<TapId> wanted) : wanted_(std::move(wanted)) {}

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override;
  void visit(Context& cx, const Tap& tap, Tensor& x) override;

  // One per visit since the last clear(), in order.
  const std::vector<RecordedTap>& all() const { return all_; }
  const RecordedTap& last(const TapId& id) const;  // an Error if nothing was recorded
  void clear() { all_.clear(); }

 private:
  std::vector<TapId> wanted_;
  std::vector<RecordedTap> all_;
};

}  // namespace qkv
