// Python's values to those of the library, and back. Everything here needs the GIL.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <qkv/qkv.h>

#include <string>
#include <vector>

namespace qkv_python {

namespace py = pybind11;
using py::literals::operator""_a;

// Bytes that are not UTF-8, as of half a character, become replacement signs.
py::str to_str(std::string_view text);

// str, token ids (a sequence or a 1-D array of whole numbers), or a pair of them (source, target). TypeError otherwise.
qkv::Text text_of(py::handle value);
std::vector<qkv::Text> texts_of(py::handle values);
std::vector<int32_t> ids_of(py::handle value, const char* what);
std::vector<std::vector<int32_t>> rows_of_ids(py::handle values, const char* what);

// The name of a file or of the built-in world, or a list of texts.
qkv::Data data_of(py::handle value, int64_t tokens, int64_t window);

[[noreturn]] void fail_type(const std::string& what, py::handle value, const char* wanted);

// Settings by name, each read once. None leaves what is there.
class Options {
 public:
  explicit Options(py::dict values) : values_(std::move(values)) {}

  template <class T>
  const Options& take(const char* name, T& to, const char* wanted) const {
    if (!values_.contains(name)) return *this;
    const py::object value = values_[name];
    if (value.is_none()) return *this;
    try {
      to = value.cast<T>();
    } catch (const py::cast_error&) {
      fail_type(name, value, wanted);
    }
    return *this;
  }
  template <class T>
  const Options& number(const char* name, T& to) const {
    return take(name, to, "a whole number below 2**63");
  }
  template <class T>
  const Options& real(const char* name, T& to) const {
    return take(name, to, "a number");
  }
  py::object get(const char* name) const { return values_.contains(name) ? py::object(values_[name]) : py::none(); }

 private:
  py::dict values_;
};

// One of several words.
template <class T>
T word_of(const Options& options, const char* name, std::initializer_list<std::pair<const char*, T>> words,
          T otherwise) {
  std::string said;
  options.take(name, said, "a str");
  if (said.empty()) return otherwise;
  std::string all;
  for (const auto& [word, value] : words) {
    if (said == word) return value;
    all += (all.empty() ? "" : ", ") + std::string(word);
  }
  throw qkv::Error(qkv::Error::Kind::input, std::string(name) + " is '" + said + "'", "it is one of: " + all,
                   {__FILE__, __LINE__});
}
qkv::OpenOptions open_options(const Options& options);
std::optional<qkv::Cut> cut_of(py::handle dict);  // None: none

// The numbers change hands: no copy.
py::array owned(std::vector<float> values, const std::vector<int64_t>& shape);

py::tuple estimate(const qkv::Estimate& e);  // mean, low, high, n, texts

}  // namespace qkv_python
