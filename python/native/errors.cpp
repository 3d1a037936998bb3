// qkv::Error becomes the exception of the same name in qkv/errors.py.
#include <stdexcept>

#include "bindings.h"

namespace qkv_python {
namespace {

void raise(const qkv::Error& error) {
  const char* name = dynamic_cast<const qkv::ClosedError*>(&error) != nullptr ? "ClosedError"
                     : dynamic_cast<const qkv::BusyError*>(&error) != nullptr ? "BusyError"
                     : error.kind() == qkv::Error::Kind::input                ? "InputError"
                                                                              : "InternalError";
  const py::object type = py::module_::import("qkv.errors").attr(name);
  const std::string where = std::string(error.where().file) + ":" + std::to_string(error.where().line);
  const py::object spoken = py::module_::import("qkv.hints").attr("in_python");  // not of the program's options
  const py::object made = type(spoken(to_str(error.message())), spoken(to_str(error.hint())), where);
  PyErr_SetObject(type.ptr(), made.ptr());
}

}  // namespace

void add_errors() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const qkv::Error& error) {
      try {
        raise(error);
      } catch (py::error_already_set& other) {  // as when the interpreter ends
        other.restore();
      }
    } catch (const std::length_error&) {
      raise({qkv::Error::Kind::input,
             "out of memory: asked for more than any machine has",
             "one of the numbers given is far too large: a size, a length or a count",
             {__FILE__, __LINE__}});
    }
  });
}

Signals::Signals() {
  const py::object threading = py::module_::import("threading");
  main_thread_ = threading.attr("current_thread")().is(threading.attr("main_thread")());
}

void Signals::check() {
  constexpr auto kOften = std::chrono::milliseconds(50);
  if (!main_thread_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - asked_ < kOften) return;
  asked_ = now;
  const py::gil_scoped_acquire hold;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace qkv_python
