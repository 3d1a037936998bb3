#include "inspect/lens.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/recorded.h"
#include "nn/linear.h"
#include "ops/ops.h"
#include "ops/optim.h"

namespace qkv {
namespace {

constexpr int64_t kMostLogits = int64_t{1} << 22;  // in memory at a time, of one depth
constexpr int64_t kRowsOfStep = 256;               // of the tuned lens, at most

// The streams of a pass, bottom to top, and at its end a call.
class Streams : public ReadingProbe {
 public:
  explicit Streams(const Model& model)
      : stack_(model.spec().main()) {
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
struct Guess {
  double lse = 0;
  size_t top = 0;
};

Guess guess_of(std::span<const float> logits) {
  Guess g{.top = static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin())};
  const float most = logits[g.top];
  double sum = 0;
  for (const float v : logits) sum += static_cast<double>(std::exp(v - most));
  g.lse = static_cast<double>(most) + std::log(sum);
  return g;
}

// p = exp(logits - lse), in place; returns the entropy.
double to_probabilities(std::span<float> logits, double lse) {
  double entropy = lse;
  for (float& v : logits) {
    const double p = std::exp(static_cast<double>(v) - lse);
    entropy -= p > 0 ? p * static_cast<double>(v) : 0;
    v = static_cast<float>(p);
  }
  return entropy;
}

// log-loss of q under p: -sum p log q, of q's logits.
double cross(std::span<const float> p, std::span<const float> logits, double lse) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0) sum += static_cast<double>(p[i]) * (lse - static_cast<double>(logits[i]));
  }
  return sum;
}

// Counted among those before it: logits that are greater, and equal ones with a smaller id.
int64_t rank_of(std::span<const float> logits, size_t id) {
  int64_t rank = 1;
  for (size_t i = 0; i < logits.size(); ++i) rank += logits[i] > logits[id] || (logits[i] == logits[id] && i < id);
  return rank;
}

class LensProbe : public Streams {
 public:
  LensProbe(const Model& model, size_t texts, const TunedLens* tuned)
      : Streams(model), model_(model), tuned_(tuned), settled_at_(texts) {
    for (size_t i = 0; i <= model.spec().main_stack().layers.size(); ++i) sums_.emplace_back(texts);
  }

  LensReport report() const {
    LensReport made{.settled_at = estimate(settled_at_)};
    for (size_t d = 0; d < sums_.size(); ++d) {
      const Sums& s = sums_[d];
      made.layers.push_back({.name = d == 0 ? "embed" : std::to_string(d - 1),
                             .agrees = estimate(s.agrees),
                             .rank = estimate(s.rank),
                             .entropy = estimate(s.entropy),
                             .kl = estimate(s.kl),
                             .loss = estimate(s.loss),
                             .settled = estimate(s.settled)});
    }
    return made;
  }

 protected:
  void done(Context& cx) override {
    const int64_t vocabulary = model_.spec().vocabulary, at_once = std::max<int64_t>(kMostLogits / vocabulary, 1);
    for (int64_t first = 0; first < rows(); first += at_once) some(cx, first, std::min(at_once, rows() - first));
  }

 private:
  struct Sums {
    explicit Sums(size_t texts) : agrees(texts), rank(texts), entropy(texts), kl(texts), loss(texts), settled(texts) {}
    std::vector<TextSum> agrees, rank, entropy, kl, loss, settled;
  };
  struct Seen {
    Guess guess;
    double entropy = 0, kl = 0;
    int64_t rank = 0;
    float target = 0;  // logit of the token that comes
  };

  std::vector<float> logits(Context& cx, size_t depth, int64_t first, int64_t count) const {
    const Arena::Mark mark = cx.arena.mark();
    Tensor x = stream(cx, depth, first, count);
    if (tuned_ != nullptr && depth + 1 < depths()) x = tuned_->moved(cx, depth, x);
    std::vector<float> made = host_floats(model_.read_out(cx, x));
    cx.arena.rewind(mark);
    return made;
  }

  int32_t target(const PassTexts::At& at) const {
    const SeenText& text = pass().texts[static_cast<size_t>(at.text)];
    const auto i = static_cast<size_t>(at.position);
    if (!text.targets.empty()) return text.targets[i];
    if (model_.spec().kind == ModelSpec::Kind::encoder_only) return SeenText::kIgnored;
    return i + 1 < text.ids.size() ? text.ids[i + 1] : SeenText::kIgnored;
  }

  // Rows [first, first + count), all depths.
  void some(Context& cx, int64_t first, int64_t count) {
    const auto vocabulary = static_cast<size_t>(model_.spec().vocabulary);
    std::vector<float> last = logits(cx, depths() - 1, first, count);  // becomes p_L
    std::vector<std::vector<Seen>> seen(depths(), std::vector<Seen>(static_cast<size_t>(count)));
    std::vector<double> last_entropy(static_cast<size_t>(count));
    const auto row_of = [&](std::vector<float>& all, int64_t r) {
      return std::span(all).subspan(static_cast<size_t>(r) * vocabulary, vocabulary);
    };
    const auto target_of_row = [&](int64_t r) { return target(pass().rows[static_cast<size_t>(first + r)]); };
    for (size_t back = 0; back < depths(); ++back) {
      const size_t depth = depths() - 1 - back;
      std::vector<float> own = back == 0 ? last : logits(cx, depth, first, count);
      cx.exec.pool->run(count, [&](int64_t r, int) {
        const std::span<float> x = row_of(own, r), p = row_of(last, r);
        const auto at = static_cast<size_t>(r);
        Seen& s = seen[depth][at];
        s.guess = guess_of(x);
        if (const int32_t id = target_of_row(r); id != SeenText::kIgnored) s.target = x[static_cast<size_t>(id)];
        if (back == 0) {
          last_entropy[at] = s.entropy = to_probabilities(p, s.guess.lse);
          s.rank = 1;
          return;
        }
        s.rank = rank_of(x, seen.back()[at].guess.top);
        s.kl = std::max(cross(p, x, s.guess.lse) - last_entropy[at], 0.0);
        s.entropy = to_probabilities(x, s.guess.lse);
      });
    }
    for (int64_t r = 0; r < count; ++r) count_row(seen, first, r, target_of_row(r));
  }

  void count_row(const std::vector<std::vector<Seen>>& seen, int64_t first, int64_t r, int32_t target) {
    const auto text = static_cast<size_t>(pass().rows[static_cast<size_t>(first + r)].text);
    const auto at = static_cast<size_t>(r);
    const size_t top = seen.back()[at].guess.top;
    size_t settled = depths() - 1;
    while (settled > 0 && seen[settled - 1][at].guess.top == top) --settled;
    settled_at_[text].add(static_cast<double>(settled));
    for (size_t d = 0; d < depths(); ++d) {
      const Seen& s = seen[d][at];
      Sums& sums = sums_[d];
      sums.agrees[text].add(s.guess.top == top ? 1 : 0);
      sums.rank[text].add(static_cast<double>(s.rank));
      sums.entropy[text].add(s.entropy);
      sums.kl[text].add(s.kl);
      sums.settled[text].add(d == settled ? 1 : 0);
      if (target != SeenText::kIgnored) sums.loss[text].add(s.guess.lse - static_cast<double>(s.target));
    }
  }

  const Model& model_;
  const TunedLens* tuned_;
  std::vector<Sums> sums_;  // by depth
  std::vector<TextSum> settled_at_;
};

}  // namespace

LensReport read_lens(Reader& reader, std::span<const SeenText> texts, const TunedLens* tuned,
                     const Reader::Finished& finished) {
  LensProbe probe(reader.model(), texts.size(), tuned);
  reader.look(texts, probe, finished);
  return probe.report();
}

// --- the tuned lens --------------------------------------------------------------------------------------------------

TunedLens::TunedLens(const Model& model, const Engine& engine) {
  const int64_t width = model.spec().width;
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  for (size_t d = 0; d < model.spec().main_stack().layers.size(); ++d) {
    const std::string name = "lens." + std::to_string(d);
    auto map = std::make_unique<Map>(Map{.matrix = Param(name, engine.device(), DType::f32, {width, width}),
                                         .bias = Param(name + ".bias", engine.device(), DType::f32, {width})});
    Param* const both[] = {&map->matrix, &map->bias};
    for (size_t i = 0; i < 2; ++i) {
      cx.kernels.fill(cx.exec, {.y = both[i]->writable(cx), .value = 0});
      both[i]->updated();
      for (Storage* state : {&map->m[i], &map->v[i]}) {
        *state = Storage(engine.device(), DType::f32, both[i]->shape());
        cx.kernels.fill(cx.exec, {.y = Tensor(*state, both[i]->shape()), .value = 0});
      }
    }
    maps_.push_back(std::move(map));
  }
}

Tensor TunedLens::moved(Context& cx, size_t depth, const Tensor& stream) const {
  const Map& map = *maps_.at(depth);
  const Tensor more = ops::linear(cx, as_operand(cx, stream), map.matrix, {.bias = &map.bias, .out = stream.dtype()});
  return ops::add(cx, stream, more);
}

// One step of every map for each pass of the reader.
class TunedLens::Trainer : public Streams {
 public:
  Trainer(TunedLens& lens, const Reader& reader, const Rule& rule, int64_t tokens)
      : Streams(reader.model()),
        lens_(lens),
        reader_(reader),
        rule_(rule),
        left_(static_cast<double>(tokens) * static_cast<double>(rule.epochs)),
        all_(left_),
        arena_(reader.engine().device()),
        gradients_(reader.engine().device()) {}

 protected:
  void done(Context&) override {
    const int64_t vocabulary = reader_.model().spec().vocabulary;
    const int64_t at_once = std::clamp<int64_t>(kMostLogits / vocabulary, 1, kRowsOfStep);
    for (int64_t first = 0; first < rows(); first += at_once) step(first, std::min(at_once, rows() - first));
  }

 private:
  void step(int64_t first, int64_t count) {
    const auto vocabulary = static_cast<size_t>(reader_.model().spec().vocabulary);
    std::vector<float> last;
    {
      arena_.rewind({});
      Context cx = reader_.engine().context(arena_, reader_.options().precision);
      last = host_floats(reader_.model().read_out(cx, stream(cx, depths() - 1, first, count)));
      cx.exec.pool->run(count, [&](int64_t r, int) {
        const std::span<float> x = std::span(last).subspan(static_cast<size_t>(r) * vocabulary, vocabulary);
        to_probabilities(x, guess_of(x).lse);
      });
    }
    for (size_t d = 0; d + 1 < depths(); ++d) step_of(d, first, count, last);
    left_ -= static_cast<double>(count);
  }

  // d KL(p_L || p_l) / d logits = p_l - p_L.
  void step_of(size_t depth, int64_t first, int64_t count, const std::vector<float>& last) {
    arena_.rewind({});
    gradients_.rewind({});
    Tape tape(gradients_);
    Context cx = reader_.engine().context(arena_, reader_.options().precision);
    cx.tape = &tape;
    const Tensor logits = reader_.model().read_out(cx, lens_.moved(cx, depth, stream(cx, depth, first, count)));
    std::vector<float> slope = host_floats(logits);
    const auto vocabulary = static_cast<size_t>(logits.cols());
    cx.exec.pool->run(count, [&](int64_t r, int) {
      const size_t begin = static_cast<size_t>(r) * vocabulary;
      const std::span<float> x = std::span(slope).subspan(begin, vocabulary);
      to_probabilities(x, guess_of(x).lse);
      for (size_t i = 0; i < vocabulary; ++i) x[i] = (x[i] - last[begin + i]) / static_cast<float>(count);
    });
    tape.seed(cx, logits, cx.upload(slope, logits.shape()));
    tape.backward(cx);
    cx.tape = nullptr;
    Map& map = *lens_.maps_[depth];
    Param* const both[] = {&map.matrix, &map.bias};
    for (size_t i = 0; i < 2; ++i) {
      const Shape& shape = both[i]->shape();
      ops::AdamState adam{.m = Tensor(map.m[i], shape), .v = Tensor(map.v[i], shape), .step = map.steps};
      ops::adamw_step(cx, *both[i], adam, {.lr = rule_.lr * std::max(left_ / all_, 0.0), .decay = rule_.decay});
      both[i]->clear_gradient();
    }
    ++map.steps;
  }

  TunedLens& lens_;
  const Reader& reader_;
  Rule rule_;
  double left_, all_;  // rows to come, and all
  Arena arena_, gradients_;
};

void TunedLens::train(Reader& reader, std::span<const SeenText> texts, const Rule& rule,
                      const Reader::Finished& finished) {
  for (const auto& [name, weight] : reader.model().weights()) {
    QKV_ASSERT(!weight.trainable, "weight ", name, " would get a gradient from the lens");
  }
  int64_t tokens = 0;
  for (const SeenText& text : texts) tokens += std::ssize(text.ids);
  Trainer trainer(*this, reader, rule, tokens);
  bool going = true;
  for (int64_t epoch = 0; epoch < rule.epochs && going; ++epoch) {
    const size_t before = static_cast<size_t>(epoch) * texts.size();
    reader.look(texts, trainer, [&](size_t done) { return going = !finished || finished(before + done); });
  }
}

}  // namespace qkv
