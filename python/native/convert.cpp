#include "convert.h"

namespace qkv_python {
namespace {

std::string type_name(py::handle value) {
  return py::str(py::type::handle_of(value).attr("__name__"));
}

// Whole numbers of an array, whatever their width. Its memory is read as it lies there.
std::vector<int32_t> ids_of_array(const py::array& array, const char* what) {
  const char kind = array.dtype().kind();
  if (kind != 'i' && kind != 'u') {
    throw py::type_error(std::string(what) + " are an array of " + std::string(py::str(array.dtype())) +
                         "; give one of whole numbers");
  }
  if (array.ndim() != 1) {
    throw qkv::Error(qkv::Error::Kind::input,
                     std::string(what) + " are an array of " + std::to_string(array.ndim()) + " dimensions",
                     "give one of 1 dimension; a batch is a list of texts", {__FILE__, __LINE__});
  }
  const py::array_t<int64_t, py::array::c_style | py::array::forcecast> wide(array);
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(wide.size()));
  for (py::ssize_t i = 0; i < wide.size(); ++i) {
    const int64_t id = wide.data()[i];
    if (id < INT32_MIN || id > INT32_MAX) {
      throw qkv::Error(qkv::Error::Kind::input, std::string(what) + " have the number " + std::to_string(id),
                       "ids are below 2147483648", {__FILE__, __LINE__});
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

// A UnicodeEncodeError for half a surrogate pair.
std::string utf8_of(py::handle text) {
  py::ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw py::error_already_set();
  return {data, static_cast<size_t>(size)};
}

bool is_list(py::handle value) {
  return py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value);
}

}  // namespace

py::str to_str(std::string_view text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(made);
}

void fail_type(const std::string& what, py::handle value, const char* wanted) {
  std::string shown = py::repr(value);
  constexpr size_t kMost = 60;
  if (shown.size() > kMost) shown = type_name(value);
  throw py::type_error(what + " is " + shown + " (" + type_name(value) + "); give " + wanted);
}

std::vector<int32_t> ids_of(py::handle value, const char* what) {
  if (py::isinstance<py::array>(value)) return ids_of_array(py::reinterpret_borrow<py::array>(value), what);
  if (!is_list(value)) {
    if (!py::hasattr(value, "__array__")) fail_type(what, value, "a list of token ids");
    return ids_of_array(py::array(py::module_::import("numpy").attr("asarray")(value)), what);  // torch and its like
  }
  std::vector<int32_t> ids;
  for (const py::handle id : value) {
    try {
      ids.push_back(id.cast<int32_t>());
    } catch (const py::cast_error&) {
      fail_type(std::string("one of ") + what, id, "a token id, a whole number below 2147483648");
    }
  }
  return ids;
}

qkv::Text text_of(py::handle value) {
  if (py::isinstance<py::str>(value)) return qkv::Text(utf8_of(value));
  if (py::isinstance<py::bytes>(value)) fail_type("the text", value, "a str: decode it, as with .decode('utf-8')");
  if (py::isinstance<py::tuple>(value) && py::len(value) == 2) {
    const auto pair = py::reinterpret_borrow<py::tuple>(value);
    const py::object first = pair[0], second = pair[1];
    if (py::isinstance<py::str>(first) && py::isinstance<py::str>(second)) {
      return qkv::Text::pair(utf8_of(first), utf8_of(second));
    }
    if (!py::isinstance<py::int_>(first) && !py::isinstance<py::str>(first)) {
      return qkv::Text::pair(ids_of(first, "the ids of the source"), ids_of(second, "the ids of the target"));
    }
    if (py::isinstance<py::str>(first) || py::isinstance<py::str>(second)) {
      fail_type("the pair", value, "two texts, or two lists of token ids");
    }
  }
  if (!is_list(value) && !py::hasattr(value, "__array__")) {
    fail_type("the text", value, "a str, a list of token ids, or a pair (source, target)");
  }
  return qkv::Text(ids_of(value, "the ids"));
}

std::vector<qkv::Text> texts_of(py::handle values) {
  if (py::isinstance<py::str>(values) || !py::hasattr(values, "__iter__")) {
    fail_type("the texts", values, "a list of texts");
  }
  std::vector<qkv::Text> all;
  for (const py::handle value : values) all.push_back(text_of(value));
  return all;
}

std::vector<std::vector<int32_t>> rows_of_ids(py::handle values, const char* what) {
  std::vector<std::vector<int32_t>> all;
  if (values.is_none()) return all;
  if (py::isinstance<py::str>(values) || !py::hasattr(values, "__iter__")) {
    fail_type(what, values, "a list of lists of token ids, or an array of 2 dimensions");
  }
  for (const py::handle row : values) all.push_back(ids_of(row, what));
  return all;
}

qkv::Data data_of(py::handle value, int64_t tokens, int64_t window) {
  qkv::Data data = py::isinstance<py::str>(value) ? qkv::Data(utf8_of(value)) : qkv::Data(texts_of(value));
  if (py::isinstance<py::str>(value) && data.name.empty()) {
    throw qkv::Error(qkv::Error::Kind::input, "the name of the data is empty", "give a file, or world",
                     {__FILE__, __LINE__});
  }
  data.tokens = tokens;
  data.window = window;
  return data;
}

qkv::OpenOptions open_options(const Options& options) {
  qkv::OpenOptions open;
  open.device = word_of(options, "device",
                        {{"auto", qkv::Device::automatic}, {"cpu", qkv::Device::cpu}, {"cuda", qkv::Device::cuda}},
                        qkv::Device::automatic);
  open.precision =
      word_of(options, "precision",
              {{"auto", qkv::Precision::automatic}, {"f32", qkv::Precision::f32}, {"bf16", qkv::Precision::bf16}},
              qkv::Precision::automatic);
  open.cache = word_of(options, "cache",
                       {{"auto", qkv::CacheType::automatic},
                        {"f32", qkv::CacheType::f32},
                        {"bf16", qkv::CacheType::bf16},
                        {"i8", qkv::CacheType::i8}},
                       qkv::CacheType::automatic);
  options.number("threads", open.threads).number("context", open.context).number("texts", open.texts);
  options.take("decoded", open.decoded, "True or False");
  return open;
}

std::optional<qkv::Cut> cut_of(py::handle dict) {
  if (dict.is_none()) return std::nullopt;
  const Options options(py::reinterpret_borrow<py::dict>(dict));
  qkv::Cut cut;
  options.take("heads", cut.heads, "a str such as 'L0H1,L2'").take("experts", cut.experts, "a str such as 'L1E3'");
  cut.with = word_of(options, "replace",
                     {{"zero", qkv::CutWith::zero}, {"mean", qkv::CutWith::mean}, {"resample", qkv::CutWith::resample}},
                     qkv::CutWith::zero);
  int64_t tokens = 8000, window = 256;
  options.number("tokens", tokens).number("window", window);
  if (const py::object data = options.get("data"); !data.is_none()) cut.data = data_of(data, tokens, window);
  return cut;
}

py::array owned(std::vector<float> values, const std::vector<int64_t>& shape) {
  auto kept = std::make_unique<std::vector<float>>(std::move(values));
  float* data = kept->data();
  const py::capsule base(kept.get(), [](void* held) { delete static_cast<std::vector<float>*>(held); });
  kept.release();  // NOLINT: the capsule has it
  return py::array_t<float>(std::vector<py::ssize_t>(shape.begin(), shape.end()), data, base);
}

py::tuple estimate(const qkv::Estimate& e) {
  return py::make_tuple(e.mean, e.low, e.high, e.n, e.texts);
}

}  // namespace qkv_python
