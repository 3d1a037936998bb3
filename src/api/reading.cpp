#include "api/reading.h"

#include <algorithm>

#include "api/inside.h"
#include "api/texts.h"
#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/head_id.h"
#include "inspect/texts/edited_reading.h"

namespace qkv::v1 {
namespace {

bool is_pattern(Site site) {
  return site == Site::attn_scores || site == Site::attn_probs;
}

// Computed beside the pass, or whole numbers: what is put there would change nothing, or mean nothing.
bool can_change(Site site) {
  return !is_pattern(site) && site != Site::attn_lse && site != Site::route_ids;
}

std::vector<float> numbers(const Tensor& x) {
  if (x.dtype() != DType::i32) return host_floats(x);
  const std::vector<int32_t> ids = host_ints(x);
  return {ids.begin(), ids.end()};
}

// Where a pass has plain floats in the host's memory they are shown as they lie there.
std::span<const float> shown(const Tensor& x, std::vector<float>& copy) {
  if (&x.device() == &cpu_device() && x.format() == Format(DType::f32) && x.contiguous()) {
    return {x.as<const float>(), static_cast<size_t>(x.count())};
  }
  copy = numbers(x);
  return copy;
}

Tensor uploaded(Context& cx, const Tensor& like, std::span<const float> values) {
  Tensor y = cx.make(like.shape(), like.dtype());
  cx.kernels.copy(cx.exec, {.y = y, .x = cx.upload(values, like.shape())});
  return y;
}

}  // namespace

FunctionProbe::FunctionProbe(const ModelSpec& spec, const ReadOptions& options) : spec_(spec) {
  if (!options.keep.empty()) {
    for (const TapId& tap : parse_taps(spec, options.keep)) wanted(tap).keep = true;
  }
  for (const See& see : options.see) {
    QKV_CHECK(see.function != nullptr, "no function was given for the taps ", see.taps, Hint("give one, or use keep"));
    for (const TapId& tap : parse_taps(spec, see.taps)) wanted(tap).see.push_back(&see);
  }
  for (const Edit& edit : options.edit) {
    QKV_CHECK(edit.function != nullptr, "no function was given for the taps ", edit.taps, Hint("give one"));
    for (const TapId& tap : parse_taps(spec, edit.taps)) {
      QKV_CHECK(can_change(tap.site), qkv::name_of(spec, tap), " can be read but not changed",
                Hint("it is worked out beside the pass: change attn.q, attn.k, attn.v or attn.z instead"));
      wanted(tap).edit.push_back(&edit);
    }
  }
}

Ask FunctionProbe::ask(Place place, Site site) const {
  const auto at = wanted_.find(key_of(place, site));
  if (at == wanted_.end()) return Ask::none;
  if (is_pattern(site)) return Ask::pattern;
  return at->second.edit.empty() ? Ask::read : Ask::edit;
}

void FunctionProbe::visit(Context& cx, const Tap& tap, Tensor& x) {
  const Wanted& want = wanted_.at(key_of(tap.place, tap.site));
  const std::string name = qkv::name_of(spec_, TapId{tap.place, tap.site});
  std::vector<int64_t> shape;
  for (int axis = 0; axis < x.rank(); ++axis) shape.push_back(x.dim(axis));
  if (!want.edit.empty()) {
    std::vector<float> values = numbers(x);
    for (const Edit* edit : want.edit) edit->function(name, shape, values);
    x = uploaded(cx, x, values);
  }
  if (want.keep) {
    arrays_.push_back({.name = name, .shape = shape, .values = numbers(x)});
    for (const See* see : want.see) see->function(name, shape, arrays_.back().values);
  } else if (!want.see.empty()) {
    std::vector<float> copy;
    const std::span<const float> values = shown(x, copy);
    for (const See* see : want.see) see->function(name, shape, values);
  }
}

qkv::Cut parsed_cut(const ModelSpec& spec, const Cut& cut) {
  QKV_CHECK(!cut.heads.empty() || !cut.experts.empty(), "the cut names neither heads nor experts",
            Hint("for example  heads = \"L0H1\""));
  qkv::Cut made{.ablation = cut.with == CutWith::zero   ? Ablation::zero
                            : cut.with == CutWith::mean ? Ablation::mean
                                                        : Ablation::resample};
  if (!cut.heads.empty()) made.heads = parse_heads(spec, cut.heads);
  if (!cut.experts.empty()) made.experts = parse_experts(spec, cut.experts);
  if (made.heads.empty()) made.ablation = Ablation::zero;  // experts are never chosen, whatever replaces heads
  return made;
}

Data data_of(const ModelSpec& spec, const Cut& cut) {
  if (cut.data) return *cut.data;
  Data data(usual_data(spec));
  data.tokens = 8000;
  return data;
}

MeasuredCut measured_cut(Reader& reader, const OpenModel& model, const Cut& cut) {
  MeasuredCut made{.cut = parsed_cut(model.spec(), cut), .outputs = nullptr};
  if (made.cut.ablation == Ablation::zero) return made;
  made.outputs =
      measure_outputs(reader, scored_texts(model, texts_of(model, data_of(model.spec(), cut))), made.cut.ablation);
  return made;
}

const Array& ReadResult::at(std::string_view name) const {
  std::string all;
  for (auto array = arrays.rbegin(); array != arrays.rend(); ++array) {  // of several, the last: the sum of its parts
    if (array->name == name) return *array;
  }
  for (const Array& array : arrays) all += (all.empty() ? "" : ", ") + array.name;
  QKV_FAIL("no array ", name, " was kept", Hint("kept are: ", all.empty() ? "none; name taps in keep" : all));
}

std::vector<v1::TapInfo> Model::taps() const {
  const auto open = impl().open();
  const std::vector<SiteInfo> sites = all_sites();
  std::vector<v1::TapInfo> out;
  for (const qkv::TapInfo& tap : all_taps(open->spec())) {
    const auto site =
        std::find_if(sites.begin(), sites.end(), [&](const SiteInfo& s) { return s.site == tap.id.site; });
    v1::TapInfo info{.name = tap.name,
                     .meaning = site->meaning,
                     .transformer_lens = site->transformer_lens,
                     .editable = can_change(tap.id.site)};
    for (const TapAxis& axis : tap.shape) {
      info.axes += (info.axes.empty() ? "" : " ") + axis.letter;
      info.sizes.push_back(axis.size);
    }
    out.push_back(std::move(info));
  }
  return out;
}

std::vector<std::string> Model::heads() const {
  const auto open = impl().open();
  std::vector<std::string> names;
  for (const HeadId& head : all_heads(open->spec())) names.push_back(qkv::name_of(open->spec(), head));
  return names;
}

ReadResult Model::read(const Text& text, const ReadOptions& options) const {
  const auto open = impl().looking();
  const TokenText tokens = tokens_of(*open, text);
  QKV_CHECK(!tokens.ids.empty(), "the text has no tokens", Hint("give one of at least a word"));
  FunctionProbe probe(open->spec(), options);
  const Impl::Turn turn(impl());
  // In one pass, so that every tap is there once.
  Reader reader(open->model(), open->engine(), {.precision = open->precision(), .rows = std::ssize(tokens.ids)});
  std::optional<CutProbe> cut;
  if (options.cut) {
    Reader measuring(open->model(), open->engine(), {.precision = open->precision()});
    MeasuredCut measured = measured_cut(measuring, *open, *options.cut);
    cut.emplace(open->spec(), std::move(measured.cut), std::move(measured.outputs));
  }
  std::optional<EditedReading> both;
  ReadingProbe* seen = &probe;
  if (cut) seen = &both.emplace(*cut, probe);
  ReadResult result{.ids = tokens.ids, .source = tokens.source, .arrays = {}, .losses = {}};
  if (options.losses) {
    result.losses = reader.losses({&tokens, 1}, seen).front();
  } else {
    reader.look({&tokens, 1}, *seen);
  }
  result.arrays = std::move(probe.arrays());
  return result;
}

}  // namespace qkv::v1
