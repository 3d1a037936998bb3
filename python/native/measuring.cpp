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
  return py::dict("before"_a = estimate(effect.before), "after"_a = estimate(effect.after),
                  "delta"_a = estimate(effect.delta), "kl"_a = estimate(effect.kl),
                  "same_guess"_a = estimate(effect.same_guess));
}

py::tuple lens(const qkv::Model& model, py::handle data, int64_t tokens, int64_t window) {
  const qkv::Data texts = data_of(data, tokens, window);
  const qkv::Lens found = computed([&] { return model.lens(texts); });
  py::list layers;
  for (const qkv::LensLayer& layer : found.layers) {
    layers.append(py::dict("name"_a = layer.name, "agrees"_a = estimate(layer.agrees), "rank"_a = estimate(layer.rank),
                           "entropy"_a = estimate(layer.entropy), "kl"_a = estimate(layer.kl),
                           "loss"_a = estimate(layer.loss), "settled"_a = estimate(layer.settled)));
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
  return py::dict("token"_a = found.token, "target"_a = found.target, "against"_a = found.against, "parts"_a = parts,
                  "sum"_a = found.sum, "difference"_a = found.difference, "linearised"_a = found.linearised);
}

qkv::Patched patch(const qkv::Model& model, py::handle given_clean, py::handle given_corrupt, const py::dict& values) {
  const qkv::Text clean = text_of(given_clean), corrupt = text_of(given_corrupt);
  qkv::PatchOptions how;
  const Options options(values);
  options.number("token", how.token).number("answer", how.answer).number("wrong", how.wrong);
  options.take("heads", how.heads, "a str such as 'L1H2,L3'");
  return computed([&] { return model.patch(clean, corrupt, how); });
}

// Each map as its site, stack, what its columns are, the names of its rows, and [rows, columns].
py::list maps_of(const qkv::Patched& found) {
  py::list maps;
  for (const qkv::PatchMap& map : found.maps) {
    const std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(map.rows.size()),
                                         static_cast<py::ssize_t>(map.columns)};
    maps.append(
        py::make_tuple(map.site, map.stack, map.across, map.rows, py::array_t<double>(shape, map.restored.data())));
  }
  return maps;
}

py::str page_of(const qkv::Patched& report) {
  std::string page;
  {
    const py::gil_scoped_release free;
    page = report.html();
  }
  return to_str(page);
}

}  // namespace

void add_judging(ModelClass& model) {
  model.def("likelihood", likelihood).def("embed", embed);
}

void add_patched(py::module_& module) {
  py::class_<qkv::Patched>(module, "Patched")
      .def_readonly("clean_ids", &qkv::Patched::clean_ids)
      .def_readonly("corrupt_ids", &qkv::Patched::corrupt_ids)
      .def_readonly("token", &qkv::Patched::token)
      .def_readonly("answer", &qkv::Patched::answer)
      .def_readonly("wrong", &qkv::Patched::wrong)
      .def_readonly("clean", &qkv::Patched::clean)
      .def_readonly("corrupt", &qkv::Patched::corrupt)
      .def("maps", maps_of)
      .def("json", [](const qkv::Patched& self) { return to_str(self.json); })
      .def("html", page_of);
  // Of any report: one that was pickled has nothing else.
  module.def("report_html", [](std::string json) {
    qkv::Patched report;
    report.json = std::move(json);
    return page_of(report);
  });
}

void add_measuring(ModelClass& model) {
  model.def("look", look).def("cut", cut).def("lens", lens).def("roles", roles).def("attribute", attribute);
  model.def("patch", patch);
}

}  // namespace qkv_python
