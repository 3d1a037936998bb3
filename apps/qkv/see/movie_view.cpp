#include "see/movie_view.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "base/display_width.h"
#include "common/drawing.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

std::vector<double> means(const std::vector<Estimate>& all) {
  std::vector<double> found;
  for (const Estimate& each : all) found.push_back(each.mean);
  return found;
}

std::string interval_text(const Estimate& e) {
  if (e.n == 0) return "not measured";
  return e.has_interval() ? fmt::format("{:.2g} [{:.2g}, {:.2g}] n={}", e.mean, e.low, e.high, e.n)
                          : fmt::format("{:.2g} n={}", e.mean, e.n);
}

class Drawing {
 public:
  explicit Drawing(const Movie& movie) : movie_(movie), columns_(std::clamp(terminal_columns(), 40, 120)) {}

  void show(const fs::path& run, const std::vector<std::string>& texts) const {
    const size_t last = movie_.steps.size() - 1;
    std::cout << fmt::format("{}: {} snapshots, steps {} to {}\n", run.string(), movie_.steps.size(),
                             movie_.steps.front(), movie_.steps[last]);
    if (movie_.train_seconds > 0) {
      std::cout << fmt::format("watching cost {:.1f} % of the training\n",
                               100 * movie_.watch_seconds / movie_.train_seconds);
    }
    curves();
    phases();
    wall();
    if (movie_.heads.front().importance.back().n > 0) importance();
    weights();
    embedding(texts);
    if (!movie_.samples.empty()) samples();
  }

 private:
  void title(const std::string& text) const { std::cout << '\n' << inked(Ink::bold, text) << '\n'; }
  void line(const std::string& name, const std::vector<double>& values, const std::string& after) const {
    std::cout << "  " << in_cells(name, 11) << sparkline(values, std::max(10, columns_ - 13 - 26)) << "  " << after
              << '\n';
  }
  void paragraph(const std::string& text, int indent) const { std::cout << wrapped(text, columns_, indent); }

  void curves() const {
    title(fmt::format("Curves over the snapshots ({} {}texts, {} tokens)", movie_.plan.texts,
                      movie_.plan.held_out ? "held-out " : "", movie_.plan.rows));
    const auto of = [&](const std::string& name, const std::vector<Estimate>& all) {
      if (all.back().n > 0) {
        line(name, means(all), fmt::format("{:.3f} to {:.3f} n={}", all.front().mean, all.back().mean, all.back().n));
      }
    };
    of("loss", movie_.loss);
    of("KL unigram", movie_.unigram);
    of("KL bigram", movie_.bigram);
    if (movie_.icl.front() && movie_.icl.back()) {
      std::vector<double> icl;
      for (const auto& value : movie_.icl) icl.push_back(value.value_or(0));
      line("late-early", icl, fmt::format("{:+.3f} to {:+.3f}", icl.front(), icl.back()));
    }
    for (const WatchedRole role : {WatchedRole::previous, WatchedRole::induction, WatchedRole::duplicate}) {
      std::vector<double> best(movie_.steps.size(), 0);
      const Movie::Head* who = nullptr;
      for (const Movie::Head& head : movie_.heads) {
        const auto& all = head.roles[static_cast<size_t>(role)];
        for (size_t s = 0; s < all.size(); ++s) best[s] = std::max(best[s], all[s].mean);
        if (all.back().n > 0 && (who == nullptr || all.back().mean > who->roles[static_cast<size_t>(role)].back().mean))
          who = &head;
      }
      if (who != nullptr) {
        line(name_of(role), best, fmt::format("{:.3f} to {:.3f}, {}", best.front(), best.back(), who->name));
      }
    }
  }

  void phases() const {
    title("Phases");
    for (const Phase& phase : movie_.phases) {
      const std::string date = phase.step ? fmt::format("step {}", *phase.step) : "not seen";
      std::cout << "  " << in_cells(phase.name, 11) << inked(phase.step ? Ink::green : Ink::dim, date) << '\n';
      paragraph(why_of(phase), 13);
    }
  }

  // The strongest role it has, by its letter, and how strong; without one how near it is.
  static std::pair<char, double> strongest(const Movie::Head& head, size_t snapshot) {
    std::pair<char, double> best{'.', 0};
    for (const auto& [role, letter] : {std::pair(WatchedRole::previous, 'P'),
                                       {WatchedRole::induction, 'I'},
                                       {WatchedRole::duplicate, 'D'},
                                       {WatchedRole::first, 'F'}}) {
      const Estimate& e = head.roles[static_cast<size_t>(role)][snapshot];
      if (has_role(role, e) && (best.first == '.' || e.mean > best.second)) best = {letter, e.mean};
      if (best.first == '.') best.second = std::max(best.second, e.mean);
    }
    return best;
  }

  void wall() const {
    title("What heads attend to");
    paragraph("P previous token, I induction, D duplicate, F first token, . none", 2);
    size_t layer_begin = 0;
    std::vector<size_t> moments{0, movie_.steps.size() - 1};
    for (const Phase& phase : movie_.phases) {
      const auto at =
          phase.step ? std::find(movie_.steps.begin(), movie_.steps.end(), *phase.step) : movie_.steps.end();
      if (at != movie_.steps.end()) moments.push_back(static_cast<size_t>(at - movie_.steps.begin()));
    }
    moments.push_back(movie_.steps.size() / 2);
    std::sort(moments.begin(), moments.end());
    moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
    const auto layer_of = [&](size_t h) { return movie_.heads[h].name.substr(0, movie_.heads[h].name.find('H')); };
    size_t widest = 1;
    for (size_t h = 1, run = 1; h < movie_.heads.size(); ++h) {
      run = layer_of(h) == layer_of(h - 1) ? run + 1 : 1;
      widest = std::max(widest, run);
    }
    const size_t cell = std::max<size_t>(widest, 9) + 1;
    while (moments.size() > 2 && 6 + moments.size() * cell > static_cast<size_t>(columns_))
      moments.erase(moments.begin() + static_cast<int64_t>(moments.size() / 2));
    std::cout << "  step  ";
    for (const size_t m : moments) std::cout << in_cells(std::to_string(movie_.steps[m]), static_cast<int>(cell));
    std::cout << '\n';
    for (size_t h = 0; h < movie_.heads.size(); h = layer_begin) {
      layer_begin = h;
      while (layer_begin < movie_.heads.size() && layer_of(layer_begin) == layer_of(h)) ++layer_begin;
      std::cout << "  " << in_cells(layer_of(h), 6);
      for (const size_t m : moments) {
        for (size_t i = h; i < layer_begin; ++i) {
          const auto [letter, share] = strongest(movie_.heads[i], m);
          std::cout << on_heat(share, std::string(1, letter), 1);
        }
        std::cout << std::string(cell - (layer_begin - h), ' ');
      }
      std::cout << '\n';
    }
  }

  void importance() const {
    title("Importance of heads by gradient, since the snapshot before");
    std::vector<const Movie::Head*> order;
    for (const Movie::Head& head : movie_.heads) order.push_back(&head);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return a->importance.back().mean > b->importance.back().mean;
    });
    if (order.size() > 6) order.erase(order.begin() + 4, order.end() - 2);
    for (const Movie::Head* head : order) {
      std::vector<double> measured;
      for (const Estimate& e : head->importance) {
        if (e.n > 0) measured.push_back(e.mean);
      }
      const std::string value = interval_text(head->importance.back());
      const int room = std::max(10, columns_ - 9 - std::max(38, 2 + display_width(value)));
      std::cout << "  " << in_cells(head->name, 7) << in_cells(sparkline(measured, room), room) << "  " << value
                << '\n';
    }
  }

  void weights() const {
    title(fmt::format("Motion of matrices, from {} entries of each", Snapshot::kSketch));
    std::cout << "  " << in_cells("", 10) << in_cells("moved", 8) << in_cells("start.end", 11) << "moved over time\n";
    for (const Movie::Weight& w : movie_.weights) {
      std::cout << "  " << in_cells(w.name, 10) << in_cells(fmt::format("{:.3f}", w.moved.back()), 8)
                << in_cells(fmt::format("{:.3f}", w.cosine.front()), 11)
                << sparkline(w.moved, std::max(10, columns_ - 33)) << '\n';
    }
    paragraph("moved: |W - W first| / |W first|; start.end: the cosine of the first and the last weights", 2);
  }

  void embedding(const std::vector<std::string>& texts) const {
    const Movie::Embedding& e = movie_.embedding;
    if (e.x.empty()) return;
    title(fmt::format("Embeddings of the {} most frequent tokens", texts.size()));
    line("neighbours", e.neighbours,
         fmt::format("{:.0f} % to {:.0f} %", 100 * e.neighbours.front(), 100 * e.neighbours.back()));
    paragraph("share of a token's ten nearest that are its ten nearest at the end", 13);
    paragraph(fmt::format("At the end, along the two axes of most variance ({:.0f} % and {:.0f} % of it):",
                          100 * e.share[0], 100 * e.share[1]),
              2);
    const auto &x = e.x.back(), &y = e.y.back();
    const auto [left, right] = std::minmax_element(x.begin(), x.end());
    const auto [low, high] = std::minmax_element(y.begin(), y.end());
    constexpr int kRows = 16;
    std::vector<std::vector<std::string>> canvas(kRows,
                                                 std::vector<std::string>(static_cast<size_t>(columns_ - 2), " "));
    for (size_t t = 0; t < texts.size(); ++t) {
      const std::string text = in_cells(texts[t], std::min(8, display_width(texts[t])));
      const int wide = display_width(text);
      if (wide == 0 || *right <= *left || *high <= *low) continue;
      const auto at = static_cast<size_t>((x[t] - *left) / (*right - *left) * (columns_ - 2 - 8));
      std::vector<std::string>& row =
          canvas[static_cast<size_t>(std::lround((*high - y[t]) / (*high - *low) * (kRows - 1)))];
      const size_t end = std::min(at + static_cast<size_t>(wide) + 1, row.size());
      if (!std::all_of(row.begin() + static_cast<int64_t>(at), row.begin() + static_cast<int64_t>(end),
                       [](const std::string& cell) { return cell == " "; }))
        continue;  // the more frequent one stays
      row[at] = text;
      for (size_t i = at + 1; i < at + static_cast<size_t>(wide); ++i) row[i].clear();
    }
    for (const auto& row : canvas) {
      std::string drawn;
      for (const std::string& cell : row) drawn += cell;
      drawn.erase(drawn.find_last_not_of(' ') + 1);
      std::cout << "  " << drawn << '\n';
    }
  }

  void samples() const {
    title("Samples");
    std::optional<int64_t> before;
    for (const Movie::Sample& sample : movie_.samples) {
      if (before == sample.step) continue;
      before = sample.step;
      const std::string name = fmt::format("{:>7}", sample.step);
      const std::string text = in_cells(sample.text, columns_ - 12);
      std::cout << "  " << name << "  " << text.substr(0, text.find_last_not_of(' ') + 1) << '\n';
    }
  }

  const Movie& movie_;
  int columns_;
};

}  // namespace

void show_movie(const Movie& movie, const fs::path& run, const std::vector<std::string>& texts) {
  Drawing(movie).show(run, texts);
}

}  // namespace qkv::app
