// qkv._core: the library as Python sees it, without its manners; qkv/*.py has those.
#include "bindings.h"

namespace qkv_python {
namespace {

py::dict info_of(const qkv::Model& model) {
  qkv::ModelInfo info;
  {
    const py::gil_scoped_release free;
    info = model.info();
  }
  return py::dict("path"_a = to_str(info.path), "family"_a = info.family, "kind"_a = info.kind,
                  "parameters"_a = info.parameters, "layers"_a = info.layers, "width"_a = info.width,
                  "heads"_a = info.heads, "vocabulary"_a = info.vocabulary, "context"_a = info.context,
                  "device"_a = info.device, "precision"_a = info.precision, "looking"_a = info.looking,
                  "threads"_a = info.threads);
}

void add_model(py::module_& module) {
  ModelClass model(module, "Model");
  model
      .def(py::init([](const std::string& path, const py::dict& options) {
        const qkv::OpenOptions open = open_options(Options(options));
        const py::gil_scoped_release free;
        return qkv::Model(path, open);
      }))
      .def("info", info_of)
      .def(
          "tokenizer", [](const qkv::Model& self) { return self.tokenizer(); },
          py::call_guard<py::gil_scoped_release>())
      .def(
          "target_tokenizer", [](const qkv::Model& self) { return self.target_tokenizer(); },
          py::call_guard<py::gil_scoped_release>())
      .def("has_tokenizer", &qkv::Model::has_tokenizer, py::call_guard<py::gil_scoped_release>())
      .def("close", &qkv::Model::close, py::call_guard<py::gil_scoped_release>())
      .def("closed", &qkv::Model::closed)
      .def("save",
           [](const qkv::Model& self, const std::string& folder) {
             const py::gil_scoped_release free;
             return self.save(folder);
           })
      .def("save_without", [](const qkv::Model& self, const py::dict& cut, const std::string& folder) {
        const qkv::Cut what = *cut_of(cut);
        return computed([&] { return self.save_without(what, folder); });
      });
  add_writing(model);
  add_judging(model);
  add_reading(model);
  add_measuring(model);
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  add_errors();
  add_tokenizer(module);
  add_generation(module);
  add_looked(module);
  add_patched(module);
  add_model(module);
  add_training(module);
  empty_without_init<qkv::Model>();
  empty_without_init<qkv::Tokenizer>();
  empty_without_init<qkv::Generation>();
  empty_without_init<qkv::Looked>();
  empty_without_init<qkv::Patched>();
  empty_without_init<qkv::Trainer>();
  module.def("version", &qkv::version);
  module.def("builtin_models", [] {
    py::list out;
    for (const qkv::BuiltinModel& one : qkv::builtin_models()) {
      out.append(py::make_tuple(one.name, one.about, one.languages));
    }
    return out;
  });
}

}  // namespace qkv_python
