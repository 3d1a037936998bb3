// One text and everything that happens inside: arrays are views of what was seen, which lives as long as they do.
#include "bindings.h"

namespace qkv_python {
namespace {

py::array view(const qkv::Looked& looked, const std::string& name) {
  const qkv::Looked::View seen = looked.view(name);
  const py::capsule base(new qkv::Looked(looked), [](void* held) { delete static_cast<qkv::Looked*>(held); });
  py::array_t<float> array(std::vector<py::ssize_t>(seen.shape.begin(), seen.shape.end()), seen.values.data(), base);
  array.attr("flags").attr("writeable") = false;  // the report is made of it
  return array;
}

py::list tokens_of(const qkv::Looked& looked) {
  py::list out;
  for (const std::string& token : looked.tokens()) out.append(to_str(token));
  return out;
}

py::list ladder(const qkv::Looked& looked, int64_t level) {
  py::list out;
  for (const qkv::Rung& rung : looked.ladder(level)) {
    py::list guesses;
    for (const qkv::Guess& guess : rung.guesses) guesses.append(py::make_tuple(guess.id, guess.p, to_str(guess.text)));
    out.append(py::make_tuple(guesses, rung.entropy, rung.kl, rung.rank));
  }
  return out;
}

std::string without_gil(const qkv::Looked& looked, std::string (qkv::Looked::*made)() const) {
  const py::gil_scoped_release free;
  return (looked.*made)();
}

}  // namespace

void add_looked(py::module_& module) {
  py::class_<qkv::Looked>(module, "Looked")
      .def("tokens", tokens_of)
      .def("ids", &qkv::Looked::ids)
      .def("names", &qkv::Looked::names)
      .def("view", view)
      .def("levels", &qkv::Looked::levels)
      .def("ladder", ladder)
      .def("json", [](const qkv::Looked& self) { return to_str(without_gil(self, &qkv::Looked::json)); })
      .def("html", [](const qkv::Looked& self) { return to_str(without_gil(self, &qkv::Looked::html)); })
      .def("save_npz", [](const qkv::Looked& self, const std::string& path) {
        const py::gil_scoped_release free;
        self.save_npz(path);
      });
}

}  // namespace qkv_python
