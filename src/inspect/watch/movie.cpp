#include "inspect/watch/movie.h"

#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "inspect/watch/pca.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestLog = size_t{1} << 30;
constexpr size_t kNeighbours = 10;

// The lines of an optional file; a last line without a newline is still being written and left out.
std::vector<Json> lines_of(const fs::path& path) {
  std::vector<Json> lines;
  if (!is_there(path)) return lines;
  const std::string text = read_file(path, kLargestLog);
  std::string_view rest = text;
  for (size_t number = 1; rest.find('\n') != std::string_view::npos; ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    lines.push_back(parse_json(line, path.string() + " line " + std::to_string(number)));
  }
  return lines;
}

std::optional<double> number_of(const Json& line, const char* key) {
  if (!line.is_object() || !line.contains(key) || !line[key].is_number()) return std::nullopt;
  return line[key].get<double>();
}

void read_log(const fs::path& run, Movie& movie) {
  for (const Json& line : lines_of(run / "log.jsonl")) {
    const std::optional<double> step = number_of(line, "step");
    const std::optional<double> loss = number_of(line, "loss"), held_out = number_of(line, "val_loss");
    if (!step || (!loss && !held_out)) continue;
    const auto at = static_cast<int64_t>(*step);
    if (movie.log.empty() || movie.log.back().step != at) movie.log.push_back({.step = at});
    if (loss) movie.log.back().loss = loss;
    if (held_out) movie.log.back().held_out = held_out;
  }
  for (const Json& line : lines_of(run / "samples.jsonl")) {
    const std::optional<double> step = number_of(line, "step");
    if (!step || !line.contains("text") || !line["text"].is_string()) continue;
    movie.samples.push_back({static_cast<int64_t>(*step), line["text"].get<std::string>()});
  }
}

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
  for (size_t s = 0; s < movie.steps.size(); ++s) {
    std::map<std::string, double> squares;
    for (const Movie::Head& head : movie.heads) squares[layer_of(head)] += std::pow(head.importance[s].mean, 2);
    for (Movie::Head& head : movie.heads) {
      const double norm = std::sqrt(squares[layer_of(head)]);
      head.in_layer.push_back(norm > 0 ? std::optional(head.importance[s].mean / norm) : std::nullopt);
    }
  }
}

void add_weights(const std::vector<Snapshot>& all, Movie& movie) {
  constexpr auto kSize = static_cast<size_t>(Snapshot::kSketch);
  for (size_t w = 0; w < movie.plan.weights.size(); ++w) {
    Movie::Weight weight{.name = movie.plan.weights[w]};
    const auto first = part(all.front().sketches, w, kSize), last = part(all.back().sketches, w, kSize);
    const double start = length(first, {});
    for (const Snapshot& s : all) {
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

void add_embedding(const std::vector<Snapshot>& all, Movie& movie) {
  const auto width = static_cast<size_t>(movie.plan.width);
  Movie::Embedding& made = movie.embedding;
  made.tokens = movie.plan.tokens;
  if (made.tokens.size() < 2 || width == 0) return;
  const Plane plane = fit_plane(all.back().embedding, width);
  made.share = plane.share;
  const auto final_ones = neighbours_of(all.back().embedding, width);
  for (const Snapshot& s : all) {
    std::vector<double> x, y;
    for (size_t t = 0; t < made.tokens.size(); ++t) {
      const auto [a, b] = plane.project(part(s.embedding, t, width));
      x.push_back(a);
      y.push_back(b);
    }
    made.x.push_back(std::move(x));
    made.y.push_back(std::move(y));
    const auto now = neighbours_of(s.embedding, width);
    size_t same = 0, of = 0;
    for (size_t t = 0; t < now.size(); ++t) {
      std::vector<size_t> both;
      std::set_intersection(now[t].begin(), now[t].end(), final_ones[t].begin(), final_ones[t].end(),
                            std::back_inserter(both));
      same += both.size();
      of += final_ones[t].size();
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

Movie make_movie(const fs::path& run, const std::function<void(size_t, size_t)>& finished) {
  const WatchFolder folder = WatchFolder::open(run);
  Movie movie{.plan = folder.plan(), .steps = folder.steps()};
  QKV_CHECK(!movie.steps.empty(), WatchFolder::in(run).string(), " has a plan of ", movie.plan.steps.size(),
            " snapshots but none has been taken", Hint("resume the run:  qkv train --resume --out " + run.string()));
  for (const std::string& name : movie.plan.heads) movie.heads.push_back({.name = name});
  using Losses = Snapshot::TextLosses;
  std::vector<Snapshot> all;
  for (const int64_t step : movie.steps) {
    const Snapshot& s = all.emplace_back(folder.read(step));
    for (size_t h = 0; h < movie.heads.size(); ++h) {
      for (size_t r = 0; r < kWatchedRoles; ++r) movie.heads[h].roles[r].push_back(estimate(s.roles[h][r]));
      movie.heads[h].importance.push_back(s.importance[h].estimate());
    }
    movie.loss.push_back(estimate_of(s.texts, &Losses::loss, &Losses::targets));
    movie.unigram.push_back(estimate_of(s.texts, &Losses::unigram, &Losses::targets));
    movie.bigram.push_back(estimate_of(s.texts, &Losses::bigram, &Losses::after));
    movie.icl.push_back(icl_of(s));
    if (finished) finished(all.size(), movie.steps.size());
  }
  movie.watch_seconds = all.back().watch_seconds;
  movie.train_seconds = all.back().train_seconds;
  add_in_layer(movie);
  add_weights(all, movie);
  add_embedding(all, movie);
  add_phases(movie);
  read_log(run, movie);
  return movie;
}

}  // namespace qkv
