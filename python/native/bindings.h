// The parts of the module, and what the calls of all of them share.
#pragma once

#include <chrono>
#include <cstring>
#include <new>

#include "convert.h"

namespace qkv_python {

void add_errors();
void add_tokenizer(py::module_& module);
void add_generation(py::module_& module);
void add_training(py::module_& module);
void add_looked(py::module_& module);
void add_patched(py::module_& module);

// An object that was made without its __init__, as by Class.__new__(Class), has zeros instead of whatever lay there: to
// the library that is one that was moved from, a ClosedError.
template <class T>
void empty_without_init() {
  py::detail::get_type_info(typeid(T), true)->operator_new = [](size_t size) {
    return std::memset(::operator new(size), 0, size);
  };
}

using ModelClass = py::class_<qkv::Model>;
void add_writing(ModelClass& model);
void add_judging(ModelClass& model);
void add_reading(ModelClass& model);
void add_measuring(ModelClass& model);

// Lets Ctrl-C through while the library computes: Python's own handlers run, in its main thread, at most 20 times a
// second. What they raise (KeyboardInterrupt) is thrown.
class Signals {
 public:
  Signals();     // with the GIL
  void check();  // without it
 private:
  bool main_thread_;
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
};

// Runs work that reads or measures, without the GIL; Ctrl-C ends it between two layers.
template <class Work>
auto computed(const Work& work) {
  Signals signals;
  const py::gil_scoped_release free;
  const qkv::Interruptible interruptible([&] { signals.check(); });
  return work();
}

}  // namespace qkv_python
