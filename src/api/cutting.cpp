#include <algorithm>

#include "api/inside.h"
#include "api/outer.h"
#include "api/reading.h"
#include "api/texts.h"
#include "base/error.h"
#include "inspect/cut/cut_model.h"
#include "model/checkpoint/convert.h"
#include "open/convert_tokenizer.h"

namespace qkv::v1 {

Estimate outer(const qkv::Estimate& e) {
  return {.mean = e.mean, .low = e.low, .high = e.high, .n = e.n, .texts = e.texts};
}

CutEffect Model::cut(const Cut& cut) const {
  const auto open = impl().looking();
  parsed_cut(open->spec(), cut);
  const std::vector<TokenText> texts = scored_texts(*open, texts_of(*open, data_of(open->spec(), cut)));
  const Impl::Turn turn(impl());
  Reader reader(open->model(), open->engine(), {.precision = open->precision()});
  MeasuredCut measured = measured_cut(reader, *open, cut);
  CutProbe probe(open->spec(), std::move(measured.cut), std::move(measured.outputs));
  const qkv::CutEffect effect = effect_of(reader, texts, probe);
  return {.before = outer(effect.before),
          .after = outer(effect.after),
          .delta = outer(effect.delta),
          .kl = outer(effect.kl),
          .same_guess = outer(effect.same_guess)};
}

std::vector<std::string> Model::save_without(const Cut& cut, const std::string& folder) const {
  const auto open = impl().looking();
  QKV_CHECK(cut.with != CutWith::resample, "a model without heads cannot be saved with resample",
            Hint("a written model has zero or a mean where heads were"));
  const Impl::Turn turn(impl());
  Reader reader(open->model(), open->engine(), {.precision = open->precision()});
  const MeasuredCut measured = measured_cut(reader, *open, cut);
  const SmallerModel made = cut_out(open->checkpoint(), open->engine().device(), measured.cut, measured.outputs.get());
  return write_cut_model(folder, made, open->path());
}

std::vector<std::string> Model::save(const std::string& folder) const {
  const auto open = impl().open();
  return convert_model(open->path(), folder, with_tokenizer({.to = ConvertOptions::To::hugging_face}));
}

}  // namespace qkv::v1
