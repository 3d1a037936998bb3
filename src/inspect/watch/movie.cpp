#include <cmath>
#include <map>
#include <numeric>

#include "inspect/watch/movie_parts.h"
#include "inspect/watch/pca.h"

namespace qkv {
namespace {

constexpr size_t kNeighbours = 10;
constexpr double kStale = 0.8;  // axes that show less of the newest snapshot than this share of its own are chosen anew

// Loss in the last octave of positions with enough rows, minus that three octaves earlier: like the 500th against the
// 50th token, but for texts of any length.
std::optional<double> icl_of(const Snapshot& s) {
  constexpr int64_t kFewest = 32;
  for (size_t b = s.positions.size(); b-- > 3;) {
    const TextSum &late = s.positions[b], &early = s.positions[b - 3];
    if (late.count < kFewest || early.count == 0) continue;
    return late.sum / static_cast<double>(late.count) - early.sum / static_cast<double>(early.count);
  }
  return std::nullopt;
}

Estimate estimate_of(const std::vector<Snapshot::TextLosses>& texts, double Snapshot::TextLosses::*sum,
                     int64_t Snapshot::TextLosses::*count) {
  std::vector<TextSum> sums;
  for (const Snapshot::TextLosses& text : texts) sums.push_back({text.*sum, text.*count});
  return estimate(sums);
}

std::span<const float> part(const std::vector<float>& all, size_t number, size_t size) {
  return std::span(all).subspan(number * size, size);
}

// |a - less|, or |a|.
double length(std::span<const float> a, std::span<const float> less) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - (less.empty() ? 0 : static_cast<double>(less[i]));
    sum += d * d;
  }
  return std::sqrt(sum);
}

std::string layer_of(const Movie::Head& head) {
  return head.name.substr(0, head.name.find('H'));
}

void add_in_layer(Movie& movie) {
  for (Movie::Head& head : movie.heads) head.in_layer.clear();
  for (size_t s = 0; s < movie.steps.size(); ++s) {
    std::map<std::string, double> squares;
    for (const Movie::Head& head : movie.heads) squares[layer_of(head)] += std::pow(head.importance[s].mean, 2);
    for (Movie::Head& head : movie.heads) {
      const double norm = std::sqrt(squares[layer_of(head)]);
      head.in_layer.push_back(norm > 0 ? std::optional(head.importance[s].mean / norm) : std::nullopt);
    }
  }
}

void add_weights(std::span<const MovieEntry> all, Movie& movie) {
  constexpr auto kSize = static_cast<size_t>(Snapshot::kSketch);
  movie.weights.clear();
  for (size_t w = 0; w < movie.plan.weights.size(); ++w) {
    Movie::Weight weight{.name = movie.plan.weights[w]};
    const auto first = part(all.front().snapshot.sketches, w, kSize),
               last = part(all.back().snapshot.sketches, w, kSize);
    const double start = length(first, {});
    for (const MovieEntry& entry : all) {
      const Snapshot& s = entry.snapshot;
      const auto now = part(s.sketches, w, kSize);
      weight.moved.push_back(start > 0 ? length(now, first) / start : 0);
      weight.cosine.push_back(cosine(now, last));
      weight.update.push_back(static_cast<double>(s.update[w]));
    }
    movie.weights.push_back(std::move(weight));
  }
}

// For each token its nearest other tokens by cosine.
std::vector<std::vector<size_t>> neighbours_of(const std::vector<float>& embedding, size_t width) {
  const size_t n = embedding.size() / width;
  std::vector<float> unit(embedding);
  for (size_t i = 0; i < n; ++i) {
    const double norm = length(part(embedding, i, width), {});
    for (size_t c = 0; c < width; ++c) unit[i * width + c] /= norm > 0 ? static_cast<float>(norm) : 1.0F;
  }
  std::vector<float> likeness(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      float sum = 0;
      for (size_t c = 0; c < width; ++c) sum += unit[i * width + c] * unit[j * width + c];
      likeness[i * n + j] = likeness[j * n + i] = sum;
    }
  }
  std::vector<std::vector<size_t>> nearest(n);
  std::vector<size_t> order;
  for (size_t i = 0; i < n; ++i) {
    order.resize(n);
    std::iota(order.begin(), order.end(), size_t{0});
    order.erase(order.begin() + static_cast<int64_t>(i));
    const size_t kept = std::min(kNeighbours, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(), [&](size_t a, size_t b) {
      const float x = likeness[i * n + a], y = likeness[i * n + b];
      return x > y || (x == y && a < b);
    });
    nearest[i].assign(order.begin(), order.begin() + static_cast<int64_t>(kept));
    std::sort(nearest[i].begin(), nearest[i].end());
  }
  return nearest;
}

// How far a snapshot's tokens lie apart within a plane: the sum of squares about their mean.
double spread_in(const Plane& plane, const std::vector<float>& embedding, size_t width) {
  const size_t n = embedding.size() / width;
  std::array<double, 2> sum = {}, squares = {};
  for (size_t t = 0; t < n; ++t) {
    const std::array<double, 2> at = plane.project(part(embedding, t, width));
    for (size_t a = 0; a < 2; ++a) {
      sum[a] += at[a];
      squares[a] += at[a] * at[a];
    }
  }
  double spread = 0;
  for (size_t a = 0; a < 2; ++a) spread += squares[a] - sum[a] * sum[a] / static_cast<double>(n);
  return spread;
}

void add_embedding(std::span<const MovieEntry> all, size_t basis, Movie& movie) {
  const auto width = static_cast<size_t>(movie.plan.width);
  Movie::Embedding& made = movie.embedding;
  made = {.tokens = movie.plan.tokens};
  if (made.tokens.size() < 2 || width == 0) return;
  const Plane plane = fit_plane(all[basis].snapshot.embedding, width);
  made.share = plane.share;
  made.basis = all[basis].snapshot.step;
  for (const MovieEntry& entry : all) {
    std::vector<double> x, y;
    for (size_t t = 0; t < made.tokens.size(); ++t) {
      const auto [a, b] = plane.project(part(entry.snapshot.embedding, t, width));
      x.push_back(a);
      y.push_back(b);
    }
    made.x.push_back(std::move(x));
    made.y.push_back(std::move(y));
    size_t same = 0, of = 0;
    for (size_t t = 0; t < entry.nearest.size(); ++t) {
      const std::vector<size_t>&now = entry.nearest[t], &final_ones = all.back().nearest[t];
      std::vector<size_t> both;
      std::set_intersection(now.begin(), now.end(), final_ones.begin(), final_ones.end(), std::back_inserter(both));
      same += both.size();
      of += final_ones.size();
    }
    made.neighbours.push_back(of > 0 ? static_cast<double>(same) / static_cast<double>(of) : 0);
  }
}

std::vector<double> means(const std::vector<Estimate>& all) {
  std::vector<double> found;
  for (const Estimate& each : all) found.push_back(each.mean);
  return found;
}

void add_phases(Movie& movie) {
  movie.phases.clear();
  const auto missing = [](const char* name, const char* reason) {
    return Phase{.name = name, .step = {}, .reason = reason, .numbers = {}};
  };
  if (movie.loss.front().n == 0) {
    for (const char* name : {"unigram", "bigram"}) movie.phases.push_back(missing(name, "no_texts"));
  } else {
    movie.phases.push_back(nearest_phase("unigram", movie.steps, means(movie.unigram)));
    movie.phases.push_back(movie.bigram.front().n > 0 ? nearest_phase("bigram", movie.steps, means(movie.bigram))
                                                      : missing("bigram", "not_next_token"));
  }
  std::vector<double> best(movie.steps.size(), 0);
  bool any = false;
  for (const Movie::Head& head : movie.heads) {
    const auto& induction = head.roles[static_cast<size_t>(WatchedRole::induction)];
    for (size_t s = 0; s < induction.size(); ++s) {
      best[s] = std::max(best[s], induction[s].mean);
      any = any || induction[s].n > 0;
    }
  }
  movie.phases.push_back(any ? jump_phase(movie.steps, best) : missing("induction", "short_context"));
  movie.phases.push_back(movie.loss.front().n > 0 ? plateau_phase(movie.steps, means(movie.loss))
                                                  : missing("plateau", "no_texts"));
}

}  // namespace

MovieEntry::MovieEntry(Snapshot taken, size_t width) : snapshot(std::move(taken)) {
  if (width > 0) nearest = neighbours_of(snapshot.embedding, width);
}

void add_snapshot(const Snapshot& s, Movie& movie) {
  using Losses = Snapshot::TextLosses;
  movie.steps.push_back(s.step);
  for (size_t h = 0; h < movie.heads.size(); ++h) {
    for (size_t r = 0; r < kWatchedRoles; ++r) movie.heads[h].roles[r].push_back(estimate(s.roles[h][r]));
    movie.heads[h].importance.push_back(s.importance[h].estimate());
  }
  movie.loss.push_back(estimate_of(s.texts, &Losses::loss, &Losses::targets));
  movie.unigram.push_back(estimate_of(s.texts, &Losses::unigram, &Losses::targets));
  movie.bigram.push_back(estimate_of(s.texts, &Losses::bigram, &Losses::after));
  movie.icl.push_back(icl_of(s));
  movie.watch_seconds = s.watch_seconds;
  movie.train_seconds = s.train_seconds;
}

void add_course(std::span<const MovieEntry> all, size_t basis, Movie& movie) {
  add_in_layer(movie);
  add_weights(all, movie);
  add_embedding(all, basis, movie);
  add_phases(movie);
}

bool axes_are_stale(std::span<const MovieEntry> all, size_t basis) {
  const Snapshot& newest = all.back().snapshot;
  const auto tokens = all.back().nearest.size();
  if (tokens < 2) return false;
  const size_t width = newest.embedding.size() / tokens;
  const auto seen_by = [&](const Snapshot& of) {
    return spread_in(fit_plane(of.embedding, width), newest.embedding, width);
  };
  return seen_by(all[basis].snapshot) < kStale * seen_by(newest);
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    both += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  return of_a > 0 && of_b > 0 ? both / std::sqrt(of_a * of_b) : 0;
}

}  // namespace qkv
