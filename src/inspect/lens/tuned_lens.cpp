#include "inspect/lens/tuned_lens.h"

#include <algorithm>

#include "inspect/lens/lens_streams.h"
#include "nn/linear.h"
#include "ops/ops.h"
#include "ops/optim.h"

namespace qkv {
namespace {

constexpr int64_t kRowsOfStep = 256;  // at most

}  // namespace

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
class TunedLens::Trainer : public LensStreams {
 public:
  Trainer(TunedLens& lens, const Reader& reader, const Rule& rule, int64_t tokens)
      : LensStreams(reader.model()),
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

void TunedLens::train(Reader& reader, std::span<const TokenText> texts, const Rule& rule,
                      const Reader::Finished& finished) {
  for (const auto& [name, weight] : reader.model().weights()) {
    QKV_ASSERT(!weight.trainable, "weight ", name, " would get a gradient from the lens");
  }
  int64_t tokens = 0;
  for (const TokenText& text : texts) tokens += std::ssize(text.ids);
  Trainer trainer(*this, reader, rule, tokens);
  bool going = true;
  for (int64_t epoch = 0; epoch < rule.epochs && going; ++epoch) {
    const size_t before = static_cast<size_t>(epoch) * texts.size();
    reader.look(texts, trainer, [&](size_t done) { return going = !finished || finished(before + done); });
  }
}

}  // namespace qkv
