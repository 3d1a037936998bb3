#include "labs/facts/cut_branches.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/host_values.h"
#include "inspect/texts/edited_reading.h"

namespace qkv {
namespace {

using MeanKey = std::tuple<int16_t, int32_t, int32_t>;  // layer, group, position

bool is_feed_forward(Site site) {
  return site == Site::mlp_out;
}

class MeanFeeds : public ReadingProbe {
 public:
  explicit MeanFeeds(std::span<const int32_t> groups) : groups_(groups) {}

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site site) const override { return is_feed_forward(site) ? Ask::read : Ask::none; }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    const std::vector<float> values = host_floats(x);
    const auto wide = static_cast<size_t>(x.dim(1));
    for (const Segment& s : tap.rows->list) {
      for (int32_t r = 0; r < s.rows; ++r) {
        auto& [sum, count] = sums_[{tap.place.layer, groups_[static_cast<size_t>(s.request)], s.position + r}];
        sum.resize(wide);
        const size_t first = static_cast<size_t>(s.first_row + r) * wide;
        for (size_t i = 0; i < wide; ++i) sum[i] += static_cast<double>(values[first + i]);
        ++count;
      }
    }
  }
  std::vector<float> mean(const MeanKey& key) const {
    const auto& [sum, count] = sums_.at(key);
    std::vector<float> mean;
    for (const double s : sum) mean.push_back(static_cast<float>(s / static_cast<double>(count)));
    return mean;
  }

 private:
  std::span<const int32_t> groups_;
  std::map<MeanKey, std::pair<std::vector<double>, int64_t>> sums_;
};

class CutFeeds : public ReadingProbe {
 public:
  CutFeeds(const MeanFeeds& means, std::span<const int32_t> groups) : means_(means), groups_(groups) {}

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site site) const override { return is_feed_forward(site) ? Ask::edit : Ask::none; }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    std::vector<float> all;
    for (const Segment& s : tap.rows->list) {
      for (int32_t r = 0; r < s.rows; ++r) {
        const std::vector<float> one =
            means_.mean({tap.place.layer, groups_[static_cast<size_t>(s.request)], s.position + r});
        all.insert(all.end(), one.begin(), one.end());
      }
    }
    const auto before = cx.arena.mark();
    cx.kernels.copy(cx.exec, {.y = x, .x = cx.upload(all, x.shape())});
    cx.arena.rewind(before);
  }

 private:
  const MeanFeeds& means_;
  std::span<const int32_t> groups_;
};

// The likeliest token after the last row of each text.
class LastGuesses : public ReadingProbe {
 public:
  explicit LastGuesses(std::span<const TokenText> texts) : guesses(texts.size()), texts_(texts) {}

  void begin(Context&, const PassTexts& pass) override { rows_ = pass.rows; }
  Ask ask(Place, Site site) const override { return site == Site::logits ? Ask::read : Ask::none; }
  void visit(Context&, const Tap&, Tensor& logits) override {
    const std::vector<float> values = host_floats(logits);
    const std::ptrdiff_t wide = std::ssize(values) / std::ssize(rows_);
    for (size_t r = 0; r < rows_.size(); ++r) {
      const auto text = static_cast<size_t>(rows_[r].text);
      if (rows_[r].position + 1 != std::ssize(texts_[text].ids)) continue;
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(r) * wide;
      guesses[text] = static_cast<int32_t>(std::max_element(first, first + wide) - first);
    }
  }

  std::vector<int32_t> guesses;

 private:
  std::span<const TokenText> texts_;
  std::vector<PassTexts::At> rows_;
};

}  // namespace

std::vector<int32_t> top_guesses(Reader& reader, const GroupedTexts& of) {
  LastGuesses last(of.texts);
  reader.look(of.texts, last);
  return last.guesses;
}

std::vector<int32_t> top_guesses_without_feed_forwards(Reader& reader, const GroupedTexts& of) {
  MeanFeeds means(of.groups);
  reader.look(of.texts, means);
  CutFeeds cut(means, of.groups);
  LastGuesses last(of.texts);
  EditedReading both(cut, last);
  reader.look(of.texts, both);
  return last.guesses;
}

}  // namespace qkv
