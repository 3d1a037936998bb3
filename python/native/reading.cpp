// Arrays at named places of a pass, and functions that see or change them.
//
// A function of Python may keep what it is shown, so it is shown a copy that is its own: memory of the pass is gone when
// it returns. What read() returns is not copied.
#include <cstring>

#include "bindings.h"

namespace qkv_python {
namespace {

py::array_t<float> shown(qkv::Shape shape, std::span<const float> values) {
  py::array_t<float> made(std::vector<py::ssize_t>(shape.begin(), shape.end()));
  std::memcpy(made.mutable_data(), values.data(), values.size_bytes());
  return made;
}

std::string shape_text(const py::array& array) {
  std::string text = "[";
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(array.shape(axis));
  }
  return text + "]";
}

// What a function returned takes the place of what it was shown.
void put(const std::string& name, const py::object& returned, const py::array_t<float>& was, std::span<float> values) {
  using Plain = py::array_t<float, py::array::c_style | py::array::forcecast>;
  const Plain now = returned.is_none() ? Plain(was) : Plain::ensure(returned);
  if (!now) {
    PyErr_Clear();
    fail_type("what the function of " + name + " returned", returned, "an array, or None");
  }
  bool same = now.ndim() == was.ndim();
  for (py::ssize_t axis = 0; same && axis < now.ndim(); ++axis) same = now.shape(axis) == was.shape(axis);
  if (!same) {
    throw qkv::Error(
        qkv::Error::Kind::input,
        "the function of " + name + " returned an array of " + shape_text(now) + " for one of " + shape_text(was),
        "return one of the same shape, or change the one it is given", {__FILE__, __LINE__});
  }
  std::memcpy(values.data(), now.data(), values.size_bytes());
}

using Hook = std::pair<std::string, py::function>;

qkv::See see_of(const Hook& hook) {
  const py::function* function = &hook.second;
  return {hook.first, [function](const std::string& name, qkv::Shape shape, std::span<const float> values) {
            const py::gil_scoped_acquire hold;
            py::array_t<float> array = shown(shape, values);
            array.attr("flags").attr("writeable") = false;
            (*function)(name, array);
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
          }};
}

qkv::Edit edit_of(const Hook& hook) {
  const py::function* function = &hook.second;
  return {hook.first, [function](const std::string& name, qkv::Shape shape, std::span<float> values) {
            const py::gil_scoped_acquire hold;
            const py::array_t<float> array = shown(shape, values);
            put(name, (*function)(name, array), array, values);
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
          }};
}

py::dict read(const qkv::Model& model, py::handle given, const py::dict& values) {
  const qkv::Text text = text_of(given);
  const Options options(values);
  qkv::ReadOptions how;
  std::vector<Hook> see, edit;
  options.take("keep", how.keep, "a str of taps").take("losses", how.losses, "True or False");
  options.take("see", see, "a list of pairs (taps, function)").take("edit", edit, "a list of pairs (taps, function)");
  for (const Hook& hook : see) how.see.push_back(see_of(hook));
  for (const Hook& hook : edit) how.edit.push_back(edit_of(hook));
  how.cut = cut_of(options.get("cut"));
  qkv::ReadResult result = computed([&] { return model.read(text, how); });
  py::dict arrays;
  for (qkv::Array& array : result.arrays) {  // of several of one name, the last: the sum of its parts
    arrays[py::str(array.name)] = owned(std::move(array.values), array.shape);
  }
  const auto count = static_cast<int64_t>(result.losses.size());
  const py::object losses = how.losses ? py::object(owned(std::move(result.losses), {count})) : py::none();
  return py::dict("ids"_a = result.ids, "source"_a = result.source, "arrays"_a = arrays, "losses"_a = losses);
}

py::list taps(const qkv::Model& model) {
  std::vector<qkv::TapInfo> all;
  {
    const py::gil_scoped_release free;
    all = model.taps();
  }
  py::list out;
  for (const qkv::TapInfo& tap : all) {
    out.append(py::make_tuple(tap.name, tap.axes, tap.sizes, tap.meaning, tap.transformer_lens, tap.editable));
  }
  return out;
}

}  // namespace

void add_reading(ModelClass& model) {
  model.def("read", read).def("taps", taps).def("heads", &qkv::Model::heads, py::call_guard<py::gil_scoped_release>());
}

}  // namespace qkv_python
