// Numbers about texts and heads: likelihoods, vectors, cuts, guesses of layers, roles, parts of a logit.
#include "bindings.h"

namespace qkv_python {
namespace {

py::list likelihood(const qkv::Model& model, py::handle given) {
  const std::vector<qkv::Text> texts = texts_of(given);
  const std::vector<qkv::Likelihood> found = computed([&] { return model.likelihood(texts); });
  py::list out;
  for (const qkv::Likelihood& one : found) {
    const py::array_t<double> log_p(static_cast<py::ssize_t>(one.log_p.size()), one.log_p.data());
    out.append(py::make_tuple(one.ids, log_p, one.first, one.total, one.perplexity));
  }
  return out;
}

py::array embed(const qkv::Model& model, py::handle given, const py::dict& options) {
  const std::vector<qkv::Text> texts = texts_of(given);
  const auto pooling = word_of(Options(options), "pooling",
                               {{"usual", qkv::Pooling::usual},
                                {"mean", qkv::Pooling::mean},
                                {"first", qkv::Pooling::first},
                                {"last", qkv::Pooling::last}},
                               qkv::Pooling::usual);
  const std::vector<std::vector<float>> rows = computed([&] { return model.embed(texts, pooling); });
  std::vector<float> values;
  for (const std::vector<float>& row : rows) values.insert(values.end(), row.begin(), row.end());
  const auto count = static_cast<int64_t>(rows.size());
  const auto width = count == 0 ? 0 : static_cast<int64_t>(rows.front().size());
  return owned(std::move(values), {count, width});
}

qkv::Looked look(const qkv::Model& model, py::handle given, int64_t token, py::handle cut) {
  const qkv::Text text = text_of(given);
  qkv::LookOptions how;
  how.token = token;
  how.cut = cut_of(cut);
  return computed([&] { return model.look(text, how); });
}

py::dict cut(const qkv::Model& model, const py::dict& what) {
  const qkv::Cut one = *cut_of(what);
  const qkv::CutEffect effect = computed([&] { return model.cut(one); });
  py::dict out;
  out["before"] = estimate(effect.before);
  out["after"] = estimate(effect.after);
  out["delta"] = estimate(effect.delta);
  out["kl"] = estimate(effect.kl);
  out["same_guess"] = estimate(effect.same_guess);
  return out;
}

py::tuple lens(const qkv::Model& model, py::handle data, int64_t tokens, int64_t window) {
  const qkv::Data texts = data_of(data, tokens, window);
  const qkv::Lens found = computed([&] { return model.lens(texts); });
  py::list layers;
  for (const qkv::LensLayer& layer : found.layers) {
    py::dict row;
    row["name"] = layer.name;
    row["agrees"] = estimate(layer.agrees);
    row["rank"] = estimate(layer.rank);
    row["entropy"] = estimate(layer.entropy);
    row["kl"] = estimate(layer.kl);
    row["loss"] = estimate(layer.loss);
    row["settled"] = estimate(layer.settled);
    layers.append(row);
  }
  return py::make_tuple(layers, estimate(found.settled_at));
}

py::list roles(const qkv::Model& model, py::handle data, int64_t tokens, int64_t window) {
  const qkv::Data texts = data_of(data, tokens, window);
  const std::vector<qkv::HeadRoles> found = computed([&] { return model.roles(texts); });
  py::list out;
  for (const qkv::HeadRoles& head : found) {
    py::list named;
    for (const qkv::Role& role : head.roles) {
      named.append(py::make_tuple(role.name, estimate(role.score), estimate(role.coverage)));
    }
    py::dict measures;
    for (const auto& [name, value] : head.measures) measures[py::str(name)] = estimate(value);
    out.append(py::make_tuple(head.head, named, measures));
  }
  return out;
}

py::dict attribute(const qkv::Model& model, py::handle given, const py::dict& values) {
  const qkv::Text text = text_of(given);
  qkv::AttributeOptions how;
  Options(values).number("token", how.token).number("target", how.target).number("against", how.against);
  const qkv::Attribution found = computed([&] { return model.attribute(text, how); });
  py::list parts;
  for (const qkv::AttributedPart& part : found.parts) {
    parts.append(py::make_tuple(part.name, part.kind, part.share));
  }
  py::dict out;
  out["token"] = found.token;
  out["target"] = found.target;
  out["against"] = found.against;
  out["parts"] = parts;
  out["sum"] = found.sum;
  out["difference"] = found.difference;
  out["linearised"] = found.linearised;
  return out;
}

}  // namespace

void add_judging(ModelClass& model) {
  model.def("likelihood", likelihood).def("embed", embed);
}

void add_measuring(ModelClass& model) {
  model.def("look", look).def("cut", cut).def("lens", lens).def("roles", roles).def("attribute", attribute);
}

}  // namespace qkv_python
