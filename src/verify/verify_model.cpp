#include "verify/verify_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/log_sum_exp.h"
#include "core/host_values.h"
#include "io/safetensors.h"
#include "io/stored_type.h"
#include "verify/half_bounds.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

using Verdict = VerifyLine::Verdict;
using Logits = std::map<std::string, std::vector<float>>;  // by the recording's names

// docs/architecture.md explains these bounds.
constexpr double kExactNmse = 2e-11, kExactWorst = 2e-5;
constexpr double kClearMargin = 0.1;
constexpr double kRoundingFactor = 1.5;

// Padded keys are masked; padded query rows attend to the rest, as in the reference.
Rows rows_of(Context& cx, const RecordedBatch& ids) {
  std::vector<Segment> list;
  for (int64_t b = 0; b < ids.batch; ++b) {
    const auto first = static_cast<int32_t>(b * ids.length);
    list.push_back({.request = static_cast<int32_t>(b),
                    .first_row = first,
                    .rows = static_cast<int32_t>(ids.length),
                    .first_key = first,
                    .keys = ids.lengths[static_cast<size_t>(b)]});
  }
  return Rows::make(cx, list, ids.batch * ids.length, ids.batch * ids.length);
}

class Verifier : public Probe {
 public:
  // half: the logits are held to the bounds of bf16, whatever the precision. right: logits to compare with instead of the
  // recorded ones.
  Verifier(const Model& model, const Engine& engine, Precision precision, const Safetensors& io,
           std::optional<HalfBounds> half, const Logits* right = nullptr)
      : model_(model),
        engine_(engine),
        precision_(precision),
        io_(io),
        held_to_half_(half.has_value()),
        half_(std::move(half).value_or(HalfBounds{})),
        right_logits_(right) {
    for (const auto& [name, weight] : model.weights()) quantized_ |= !weight.format().plain();
  }

  VerifyReport run() {
    const RecordedBatch ids = recorded_batch(io_, "input_ids");
    using Kind = ModelSpec::Kind;
    switch (model_.spec().kind) {
      case Kind::decoder_only:
        compare_pass(ids, nullptr, "logits");
        break;
      case Kind::encoder_only: {
        RecordedBatch whole = ids;
        whole.ignore_padding();
        compare_pass(whole, nullptr, "logits");
        comparing_ = false;  // everything else was recorded without padding
        blind_ = blind_rows(ids);
        if (io_.find("logits_padded") != nullptr) compare_pass(ids, nullptr, "logits_padded");
        break;
      }
      case Kind::encoder_decoder:
        compare_pass(recorded_batch(io_, "decoder_input_ids"), &ids, "logits");
        break;
    }
    for (const StoredTensor& entry : io_.entries()) say_unchecked(entry);
    return std::move(report_);
  }

  const Choices& choices() const { return choices_; }
  const Logits& logits() const { return logits_; }

  // --- probe ---------------------------------------------------------------------------------------------------------

  Ask ask(Place, Site site) const override {
    if (!comparing_) return Ask::none;
    switch (site) {
      case Site::embed:
      case Site::resid_post:
      case Site::final:
      case Site::route_logits:
      case Site::route_ids:
        return Ask::read;
      case Site::attn_probs:
        return Ask::pattern;
      default:
        return Ask::none;
    }
  }

  void visit(Context&, const Tap& tap, Tensor& x) override {
    rows_ = tap.rows;
    const auto layer = static_cast<int64_t>(tap.place.layer);
    const StackSpec& stack = tap.place.stack == Stack::encoder ? model_.spec().encoder : model_.spec().decoder;
    const auto layers = static_cast<int64_t>(stack.layers.size());
    const bool has_source = model_.spec().has_source();
    const std::string side = !has_source ? "" : tap.place.stack == Stack::encoder ? "encoder_" : "decoder_";
    const auto states = [&](int64_t i) { return side + "hidden_states." + std::to_string(i); };
    if (tap.site == Site::embed) {
      compare(states(0), host_floats(x));
    } else if (tap.site == Site::final) {
      compare(states(layers), host_floats(x));
    } else if (tap.site == Site::resid_post) {
      if (layer + 1 < layers) compare(states(layer + 1), host_floats(x));  // the last one is compared after its norm
    } else if (tap.site == Site::route_logits) {
      compare("router_logits." + std::to_string(layer), host_floats(x));
    } else if (tap.site == Site::route_ids) {
      compare_choices(layer, x);
    } else {
      const std::string which = tap.place.stack == Stack::cross ? "cross_" : side;
      compare_pattern(which + "attentions." + std::to_string(layer), x, *tap.rows);
    }
  }

 private:
  Verdict judged(bool within) const {
    if (quantized_) return Verdict::shown;
    return within ? Verdict::good : exact() ? Verdict::bad : Verdict::shown;
  }
  bool exact() const { return !held_to_half_ && !quantized_; }

  VerifyLine line_for(const StoredTensor& right) const {
    return {.verdict = Verdict::shown, .name = right.name, .shape = shape_text(right.shape)};
  }
  void add(VerifyLine line) { report_.lines.push_back(std::move(line)); }

  void compare(const std::string& name, std::vector<float> got) {
    const StoredTensor* right = io_.find(name);
    if (right == nullptr) return;
    VerifyLine line = line_for(*right);
    std::vector<float> values = recorded_floats(*right);
    if (values.size() != got.size()) {
      line.verdict = Verdict::bad;
      line.note = fmt::format("we compute {} numbers", got.size());
      return add(line);
    }
    if (!blind_.empty()) {
      leave_out(blind_, right->shape, {&got, &values});
      line.note = fmt::format("without {} padded rows that see no token", blind_.size());
    }
    const Distance d = distance(got, values);
    line.nmse = d.nmse;
    line.worst = d.worst;
    const bool within = d.nmse <= kExactNmse && d.worst <= kExactWorst;
    line.verdict = judged(within);
    add(line);
  }

  // [N, H, S] against [B, H, T, S']: keys outside a segment are zero.
  void compare_pattern(const std::string& name, const Tensor& x, const Rows& rows) {
    const StoredTensor* right = io_.find(name);
    if (right == nullptr) return;
    const std::vector<float> pattern = host_floats(x);
    const auto batch = static_cast<int64_t>(rows.list.size());
    const int64_t length = batch > 0 ? x.dim(0) / batch : 0, heads = x.dim(1), keys = x.dim(2);
    const int64_t recorded_keys = right->shape.size() == 4 ? right->shape[3] : keys;
    std::vector<float> got;
    got.reserve(static_cast<size_t>(batch * heads * length * recorded_keys));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < length; ++t) {
          const float* row = pattern.data() + ((b * length + t) * heads + h) * keys;
          for (int64_t j = 0; j < recorded_keys; ++j) got.push_back(j < keys ? row[j] : 0.0F);
        }
      }
    }
    compare(name, got);
  }

  // As recorded, or else as f32 chooses: [] if neither is known.
  RowChoices right_choices(int64_t layer, int64_t top_k) const {
    const StoredTensor* recorded = io_.find("router_logits." + std::to_string(layer));
    if (recorded == nullptr) {
      const auto at = half_.choices.find(layer);
      return at == half_.choices.end() ? RowChoices{} : at->second;
    }
    return recorded_choices(*recorded, top_k);
  }

  void compare_choices(int64_t layer, const Tensor& ids) {
    const std::vector<int32_t> all = host_ints(ids);
    const auto top_k = ids.dim(1);
    RowChoices& chosen = choices_[layer];
    for (auto at = all.begin(); at != all.end(); at += top_k) {
      std::vector<int32_t>& row = chosen.emplace_back(at, at + top_k);
      std::sort(row.begin(), row.end());
    }
    const RowChoices right = right_choices(layer, top_k);
    if (exact() || right.size() != chosen.size()) return;
    int64_t changed = 0;
    for (size_t r = 0; r < chosen.size(); ++r) {
      if (chosen[r] == right[r]) continue;
      ++changed;
      leave_out_from(static_cast<int64_t>(r));
    }
    if (report_.lines.empty() || report_.lines.back().name != "router_logits." + std::to_string(layer)) return;
    report_.lines.back().note = fmt::format("{} of {} rows chose other experts", changed, chosen.size());
  }

  // A row routed to other experts differs legitimately, and so do the later rows that attend to it.
  void leave_out_from(int64_t row) {
    for (const Segment& s : rows_->list) {
      for (int64_t r = std::max<int64_t>(row, s.first_row); row >= s.first_row && r < s.first_row + s.rows; ++r) {
        rerouted_.insert(static_cast<size_t>(r));
      }
    }
  }

  // Rows of [.., C].
  static void leave_out(const std::set<size_t>& rows, const std::vector<int64_t>& shape,
                        std::initializer_list<std::vector<float>*> from) {
    const auto width = static_cast<size_t>(shape.back());
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      for (std::vector<float>* all : from) {
        if (all->size() == width) break;  // keep at least one row
        const auto at = all->begin() + static_cast<std::ptrdiff_t>(*row * width);
        all->erase(at, at + static_cast<std::ptrdiff_t>(width));
      }
    }
  }

  // Padded rows with only padding in their window: they see nothing, and what the reference computes for them is
  // arbitrary.
  std::set<size_t> blind_rows(const RecordedBatch& ids) const {
    std::set<size_t> blind;
    for (const LayerSpec& layer : model_.spec().encoder.layers) {
      const int64_t window = layer.attention.window;
      if (window == 0) continue;
      for (int64_t b = 0; b < ids.batch; ++b) {
        for (int64_t p = ids.lengths[static_cast<size_t>(b)] + window - 1; p < ids.length; ++p) {
          blind.insert(static_cast<size_t>(b * ids.length + p));
        }
      }
    }
    return blind;
  }

  void compare_logits(const std::string& name, const Tensor& logits) {
    std::vector<float> got = host_floats(logits);
    compare(name, got);
    logits_[name] = got;
    const StoredTensor* right = io_.find(name);
    if (right == nullptr || exact() || !report_.lines.back().nmse) return;
    std::vector<float> values = right_logits_ != nullptr ? right_logits_->at(name) : recorded_floats(*right);
    const auto width = static_cast<size_t>(logits.cols());
    leave_out(blind_.empty() ? rerouted_ : blind_, right->shape, {&got, &values});
    report_.lines.back().nmse = distance(got, values).nmse;
    double kl = 0, sum = 0, power = 0;
    for (const float v : values)
      sum += static_cast<double>(v), power += static_cast<double>(v) * static_cast<double>(v);
    const auto n = static_cast<double>(values.size());
    const double deviation = std::sqrt(std::max(power / n - sum / n * sum / n, 0.0));
    int64_t clear = 0, agree = 0, rows = 0;
    for (size_t r = 0; r + width <= values.size(); r += width, ++rows) {
      const std::span<const float> ours = std::span(got).subspan(r, width),
                                   theirs = std::span(values).subspan(r, width);
      kl += kl_divergence(log_softmax(theirs), log_softmax(ours));
      const auto best = std::max_element(theirs.begin(), theirs.end());
      float second = -INFINITY;
      for (auto at = theirs.begin(); at != theirs.end(); ++at) second = at == best ? second : std::max(second, *at);
      if (static_cast<double>(*best - second) <= kClearMargin * deviation) continue;
      ++clear;
      agree += std::max_element(ours.begin(), ours.end()) - ours.begin() == best - theirs.begin() ? 1 : 0;
    }
    kl /= static_cast<double>(std::max<int64_t>(rows, 1));
    VerifyLine& line = report_.lines.back();
    line.kl = kl;
    line.note = fmt::format("mean KL {:.1e}, top-1 {} of {} clear rows", kl, agree, clear) +
                (line.note.empty() ? "" : ", " + line.note);
    if (!rerouted_.empty())
      line.note += fmt::format(", without {} rows after other experts were chosen", rerouted_.size());
    line.missed = clear - agree;
    const bool within = *line.nmse <= half_.nmse && kl <= half_.kl && line.missed <= half_.missed;
    line.verdict = quantized_ ? Verdict::shown : within ? Verdict::good : Verdict::bad;
  }

  void compare_pass(const RecordedBatch& target, const RecordedBatch* source, const std::string& name) {
    Arena arena(engine_.device());
    Context cx = engine_.context(arena, precision_);
    cx.probe = this;
    const Rows rows = rows_of(cx, target);
    Model::Input input{.ids = cx.upload(target.ids), .rows = &rows};
    Rows source_rows;
    if (source != nullptr) {
      source_rows = rows_of(cx, *source);
      input.source_ids = cx.upload(source->ids);
      input.source_rows = &source_rows;
    }
    compare_logits(name, model_.logits(cx, input));
  }

  void say_unchecked(const StoredTensor& entry) {
    static constexpr std::string_view kInputs[] = {"input_ids", "attention_mask", "decoder_input_ids"};
    if (std::find(std::begin(kInputs), std::end(kInputs), entry.name) != std::end(kInputs)) return;
    if (is_recorded_text(entry)) return;  // checked by verify_tokens
    const auto checked = [&](const VerifyLine& line) { return line.name == entry.name; };
    if (std::any_of(report_.lines.begin(), report_.lines.end(), checked)) return;
    VerifyLine line = line_for(entry);
    line.verdict = Verdict::bad;
    line.note = "recorded, but this model computes no such tensor";
    add(line);
  }

  const Model& model_;
  const Engine& engine_;
  Precision precision_;
  const Safetensors& io_;
  bool held_to_half_;
  HalfBounds half_;
  Choices choices_;
  Logits logits_;
  const Logits* right_logits_;
  VerifyReport report_;
  const Rows* rows_ = nullptr;  // of the pass
  std::set<size_t> rerouted_;   // rows routed differently from the reference, and rows that attend to them
  std::set<size_t> blind_;      // see blind_rows()
  bool comparing_ = true;
  bool quantized_ = false;  // the recording is of unquantized weights: distances are shown but not judged
};

bool only_worst_is_bad(const VerifyLine& line) {
  return line.verdict == Verdict::bad && line.nmse && *line.nmse <= kExactNmse && *line.worst > kExactWorst;
}

void allow_recording_error(VerifyReport& report, const VerifyReport& in_double) {
  for (VerifyLine& line : report.lines) {
    if (!only_worst_is_bad(line)) continue;
    const auto same = [&](const VerifyLine& other) { return other.name == line.name; };
    const auto exact = std::find_if(in_double.lines.begin(), in_double.lines.end(), same);
    if (exact == in_double.lines.end() || !exact->nmse || *exact->nmse > kExactNmse) continue;
    line.note = fmt::format("recorded {:.1e} away from double", *exact->worst);
    if (*line.worst <= *exact->worst + kExactWorst) line.verdict = Verdict::good;
  }
}

// Every plain weight becomes the bf16 nearest to it, stored in f32.
void round_weights(Model& model, const Engine& engine) {
  for (auto& [name, weight] : model.weights()) {
    if (!weight.format().plain()) continue;
    Arena arena(engine.device());
    Context cx = engine.context(arena, Precision::f32());
    const Tensor values = weight.writable(cx), rounded = cx.constant(weight.shape(), DType::bf16);
    cx.kernels.copy(cx.exec, {.y = rounded, .x = values});
    cx.kernels.copy(cx.exec, {.y = values, .x = rounded});
  }
}

bool has_bad_guesses(const VerifyLine& line) {
  return line.verdict == Verdict::bad && line.kl.has_value();
}

// `rounding`: the weights in bf16, all else in double. A bound it breaks becomes 1.5 times what it costs.
void allow_rounding(VerifyReport& report, const VerifyReport& rounding, const HalfBounds& bounds) {
  for (VerifyLine& line : report.lines) {
    if (!has_bad_guesses(line)) continue;
    const auto same = [&](const VerifyLine& other) { return other.name == line.name; };
    const auto cost = std::find_if(rounding.lines.begin(), rounding.lines.end(), same);
    if (cost == rounding.lines.end() || !cost->kl) continue;
    const auto allowed = [](double bound, double costs) { return costs > bound ? kRoundingFactor * costs : bound; };
    const double nmse = allowed(bounds.nmse, *cost->nmse), kl = allowed(bounds.kl, *cost->kl);
    const double missed = allowed(static_cast<double>(bounds.missed), static_cast<double>(cost->missed));
    line.note += fmt::format("; rounding the weights alone, in double: NMSE {:.1e}, KL {:.1e}, {} clear rows missed",
                             *cost->nmse, *cost->kl, cost->missed);
    if (*line.nmse > nmse || *line.kl > kl || static_cast<double>(line.missed) > missed) continue;
    line.note += fmt::format("; allowed: NMSE {:.1e}, KL {:.1e}, {:.0f} rows, {} x what that breaks", nmse, kl,
                             std::floor(missed), kRoundingFactor);
    line.verdict = Verdict::good;
  }
}

}  // namespace

bool VerifyReport::good() const {
  return count(Verdict::bad) == 0 && count(Verdict::good) > 0;
}
int64_t VerifyReport::count(Verdict verdict) const {
  return std::count_if(lines.begin(), lines.end(), [&](const VerifyLine& line) { return line.verdict == verdict; });
}

VerifyReport verify_model(const Checkpoint& checkpoint, const Engine& engine, Precision precision,
                          const std::filesystem::path& folder) {
  const Safetensors io = Safetensors::open(folder / "io.safetensors");
  const bool half = precision.compute == DType::bf16;
  HalfBounds bounds;
  Logits logits;  // of the last run
  const auto run = [&](Precision p) {
    const std::unique_ptr<Model> model = checkpoint.model(engine.device());
    Verifier verifier(*model, engine, p, io, p.compute == DType::bf16 ? std::optional(bounds) : std::nullopt);
    VerifyReport report = verifier.run();
    bounds.choices = verifier.choices();
    logits = verifier.logits();
    return report;
  };
  // What rounding the weights does to this model, not to the recording: a mistake is not a cost of rounding.
  const auto cost_of_rounding = [&] {
    run(Precision::f64());
    const std::unique_ptr<Model> model = checkpoint.model(engine.device());
    round_weights(*model, engine);
    return Verifier(*model, engine, Precision::f64(), io, bounds, &logits).run();
  };
  if (half) {
    bounds.nmse = half_nmse(folder);
    bounds.kl = HalfBounds::kKl * bounds.nmse / HalfBounds::kNmse;
    const std::vector<LayerSpec>& layers = checkpoint.spec.main_stack().layers;
    const auto routes = [](const LayerSpec& layer) { return layer.feed.experts.has_value(); };
    if (std::any_of(layers.begin(), layers.end(), routes)) run(Precision::f32());
  }
  VerifyReport report = run(precision);
  if (half && std::any_of(report.lines.begin(), report.lines.end(), has_bad_guesses)) {
    allow_rounding(report, cost_of_rounding(), bounds);
  }
  if (!half && std::any_of(report.lines.begin(), report.lines.end(), only_worst_is_bad)) {
    allow_recording_error(report, run(Precision::f64()));
  }
  return report;
}

}  // namespace qkv
