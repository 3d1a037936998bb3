// Text to ids and back.
#include "bindings.h"

namespace qkv_python {

void add_tokenizer(py::module_& module) {
  py::class_<qkv::Tokenizer>(module, "Tokenizer")
      .def(py::init([](const std::string& path) {
        const py::gil_scoped_release free;
        return qkv::Tokenizer(path);
      }))
      .def("encode",
           [](const qkv::Tokenizer& self, const std::string& text, bool plain) {
             const py::gil_scoped_release free;
             return self.encode(text, plain);
           })
      .def("decode", [](const qkv::Tokenizer& self, py::handle ids,
                        bool skip_specials) { return to_str(self.decode(ids_of(ids, "the ids"), skip_specials)); })
      .def("token", [](const qkv::Tokenizer& self, int32_t id) { return to_str(self.token(id)); })
      .def("bytes", [](const qkv::Tokenizer& self, int32_t id) { return py::bytes(self.bytes(id)); })
      .def("id", [](const qkv::Tokenizer& self, const std::string& token) { return self.id(token); })
      .def("has", &qkv::Tokenizer::has)
      .def("is_special", &qkv::Tokenizer::is_special)
      .def("size", &qkv::Tokenizer::size)
      .def("spans", [](const qkv::Tokenizer& self, py::handle ids) {
        py::list out;
        for (const qkv::TokenSpan& span : self.spans(ids_of(ids, "the ids"))) {
          out.append(py::make_tuple(to_str(span.text), span.first_token, span.tokens));
        }
        return out;
      });
}

}  // namespace qkv_python
