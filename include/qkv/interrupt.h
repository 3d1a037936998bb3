// Ending long work from outside: Ctrl-C in a notebook, a client that went away.
#pragma once

#include <qkv/export.h>

#include <functional>

namespace qkv::QKV_INLINE v1 {

// While it lives, this thread calls the function between the layers of its passes. What it throws ends the call and comes
// out of it; the model stays usable. For what reads and measures: read, look, cut, lens, roles, attribute, likelihood,
// embed. Texts that are written share passes with those of other threads: they are ended by Generation::cancel().
class QKV_API Interruptible {
 public:
  explicit Interruptible(std::function<void()> check);
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

 private:
  std::function<void()> check_;
  const std::function<void()>* before_;
};

}  // namespace qkv::QKV_INLINEv1
