// Shared by the logit lens and the tuned lens: the residual streams of a pass, and logits as distributions.
#pragma once

#include <span>
#include <vector>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/texts/reading.h"

namespace qkv {

inline constexpr int64_t kMostLogits = int64_t{1} << 22;  // in memory at a time, per depth

// Collects the residual streams of a pass, bottom to top, then calls done().
class LensStreams : public ReadingProbe {
 public:
  explicit LensStreams(const Model& model) : stack_(model.spec().main()) {
    QKV_CHECK(model.spec().vocabulary > 0, "a ", model.spec().family, " without a vocabulary has no guesses",
              Hint("take a model with a head"));
  }

  void begin(Context&, const PassTexts& pass) override {
    pass_ = &pass;
    streams_.clear();
  }
  Ask ask(Place place, Site site) const override {
    const bool wanted = site == Site::embed || site == Site::resid_post || site == Site::final;
    return wanted && place.stack == stack_ ? Ask::read : Ask::none;
  }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    if (tap.site != Site::final) {
      streams_.push_back(host_floats(x));
      width_ = x.cols();
      return;
    }
    done(cx);
  }

 protected:
  virtual void done(Context& cx) = 0;

  const PassTexts& pass() const { return *pass_; }
  size_t depths() const { return streams_.size(); }
  int64_t rows() const { return std::ssize(pass_->rows); }
  Tensor stream(Context& cx, size_t depth, int64_t first, int64_t count) const {
    const auto width = static_cast<size_t>(width_);
    return cx.upload(
        std::span(streams_[depth]).subspan(static_cast<size_t>(first) * width, static_cast<size_t>(count) * width),
        {count, width_});
  }

 private:
  Stack stack_;
  const PassTexts* pass_ = nullptr;
  std::vector<std::vector<float>> streams_;
  int64_t width_ = 0;
};

// One row of logits as a distribution.
struct RowGuess {
  double lse = 0;
  size_t top = 0;
};

RowGuess guess_of(std::span<const float> logits);

// p = exp(logits - lse), in place; returns the entropy.
double to_probabilities(std::span<float> logits, double lse);

}  // namespace qkv
