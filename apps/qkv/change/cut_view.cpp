#include "change/cut_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"
#include "common/drawing.h"
#include "common/reports.h"

namespace qkv::app {
namespace {

constexpr int kHeight = 12, kMargin = 9;

Ink ink_of(Order order) {
  return order == Order::gradient ? Ink::cyan : order == Order::ablation ? Ink::green : Ink::red;
}
char mark_of(Order order) {
  return *name_of(order);
}

struct Cell {
  char mark = ' ';
  Ink ink = Ink::plain;
};

class Plot {
 public:
  Plot(const std::vector<PruningCurve>& curves, int columns)
      : width_(std::clamp(columns - kMargin - 1, 20, 71)),
        cells_(static_cast<size_t>(kHeight), std::vector<Cell>(static_cast<size_t>(width_))) {
    for (const PruningCurve& curve : curves) {
      for (const CurvePoint& point : curve.points) {
        low_ = std::min(low_, point.delta.mean);
        high_ = std::max(high_, point.delta.mean);
      }
    }
    if (high_ <= low_) high_ = low_ + 1e-6;
    for (const PruningCurve& curve : curves) add(curve);
  }

  std::string text() const {
    std::string all = "loss added, nats per token\n";
    for (int y = 0; y < kHeight; ++y) {
      const double value = high_ - (high_ - low_) * y / (kHeight - 1);
      all += y % 3 == 0 || y == kHeight - 1 ? fmt::format("{:>{}.3f} ", value, kMargin - 2)
                                            : std::string(kMargin - 1, ' ');
      all += "|";
      for (const Cell& cell : cells_[static_cast<size_t>(y)]) {
        all += cell.mark == ' ' ? " " : inked(cell.ink, std::string(1, cell.mark));
      }
      all += '\n';
    }
    all += std::string(kMargin - 1, ' ') + '+' + std::string(static_cast<size_t>(width_), '-') + '\n';
    const std::string left = "100 %", middle = "heads kept", right = "0 %";
    const auto gap = static_cast<size_t>(width_) - left.size() - middle.size() - right.size();
    return all + std::string(kMargin, ' ') + left + std::string(gap / 2, ' ') + middle +
           std::string(gap - gap / 2, ' ') + right + '\n';
  }

 private:
  // Points joined by straight lines; where curves meet a star stands.
  void add(const PruningCurve& curve) {
    const std::vector<CurvePoint>& points = curve.points;
    for (size_t i = 0; i < points.size(); ++i) {
      const int from = column(points[i].kept), to = i + 1 < points.size() ? column(points[i + 1].kept) : from + 1;
      for (int x = from; x < to; ++x) {
        const double part = static_cast<double>(x - from) / std::max(to - from, 1);
        const double next = i + 1 < points.size() ? points[i + 1].delta.mean : points[i].delta.mean;
        put(x, points[i].delta.mean + part * (next - points[i].delta.mean), curve.order);
      }
    }
  }
  int column(double kept) const { return static_cast<int>(std::lround((1 - kept) * (width_ - 1))); }
  void put(int x, double value, Order order) {
    const auto y = static_cast<size_t>(std::lround((high_ - value) / (high_ - low_) * (kHeight - 1)));
    Cell& cell = cells_[y][static_cast<size_t>(x)];
    const bool taken = cell.mark != ' ' && cell.mark != mark_of(order);
    cell = taken ? Cell{'*', Ink::plain} : Cell{mark_of(order), ink_of(order)};
  }

  int width_;
  double low_ = 0, high_ = 0;
  std::vector<std::vector<Cell>> cells_;
};

}  // namespace

double parse_keep(const std::string& given) {
  double value = 0;
  const char* end = given.data() + given.size();
  const auto [at, failed] = std::from_chars(given.data(), end, value);
  const bool percent = failed == std::errc{} && at + 1 == end && *at == '%';
  QKV_CHECK(failed == std::errc{} && (percent || at == end), "--keep is ", printable(given),
            Hint("a share of the heads, as 60% or 0.6"));
  const double share = percent ? value / 100 : value;
  QKV_CHECK(share > 0 && share < 1, "--keep ", given, share >= 1 ? " cuts nothing" : " leaves no head",
            Hint("more than 0 % and less than 100 %"));
  return share;
}

std::string described(const CutEffect& effect) {
  return fmt::format(
      "  loss before        {}\n  loss after         {}\n  added              {}\n  KL(before, after)  {}\n"
      "  same top guess     {}\n  n = {} tokens of {} texts; intervals 95 %",
      with_interval(effect.before), with_interval(effect.after), with_interval(effect.delta), with_interval(effect.kl),
      with_interval(effect.same_guess), effect.delta.n, effect.delta.texts);
}

nlohmann::ordered_json to_json(const CutEffect& effect) {
  return {{"before", to_json(effect.before)},
          {"after", to_json(effect.after)},
          {"delta", to_json(effect.delta)},
          {"kl", to_json(effect.kl)},
          {"same_guess", to_json(effect.same_guess)}};
}

std::string described(const SavedCut& saved) {
  return fmt::format(
      "saved {}: {} of {} parameters\n  loss {}, of the ablated model {:.4f}, apart {:.1e}\n"
      "  prefill {:.0f} tokens/s, the whole model {:.0f}: {:.2f} times as fast",
      saved.folder, saved.parameters, saved.parameters_before, with_interval(saved.loss), saved.ablated_loss,
      std::abs(saved.loss.mean - saved.ablated_loss), saved.speed, saved.speed_before,
      saved.speed / saved.speed_before);
}

nlohmann::ordered_json to_json(const SavedCut& saved) {
  return {{"folder", saved.folder},
          {"parameters", saved.parameters},
          {"parameters_before", saved.parameters_before},
          {"loss", to_json(saved.loss)},
          {"ablated_loss", saved.ablated_loss},
          {"tokens_per_second", saved.speed},
          {"tokens_per_second_before", saved.speed_before},
          {"hugging_face_can_load", false}};
}

std::string draw_curves(const std::vector<PruningCurve>& curves, int columns) {
  std::string all = Plot(curves, columns).text();
  for (const PruningCurve& curve : curves) {
    all += inked(ink_of(curve.order), fmt::format("  {}", mark_of(curve.order))) +
           fmt::format(" = by {}", name_of(curve.order));
  }
  all += "  * = several\n\n";
  constexpr int kWide = 86;
  size_t longest = 0;
  for (const PruningCurve& curve : curves) longest = std::max(longest, curve.points.size());
  for (size_t i = 1; i < longest; ++i) {
    std::string line;
    for (const PruningCurve& curve : curves) {
      if (i >= curve.points.size()) continue;
      const CurvePoint& point = curve.points[i];
      const char* gap = line.empty() ? "" : columns < kWide ? "\n      " : "  ";
      if (line.empty()) line = fmt::format("{:>3.0f}%  ", 100 * point.kept);
      line += fmt::format("{}{} {}", gap, mark_of(curve.order), with_interval(point.delta));
    }
    all += line + '\n';
  }
  return all;
}

nlohmann::ordered_json to_json(const ModelSpec& spec, const PruningCurve& curve) {
  nlohmann::ordered_json made{{"by", name_of(curve.order)}};
  for (const HeadId& head : curve.cut) made["order"].push_back(name_of(spec, head));
  for (const CurvePoint& point : curve.points) {
    made["points"].push_back({{"kept", point.kept}, {"cut", point.heads}, {"delta", to_json(point.delta)}});
  }
  return made;
}

}  // namespace qkv::app
