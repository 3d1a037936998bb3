// Passes that are run again and again with the same shapes: the first is run, the second recorded, later ones replayed.
#pragma once

#include <map>
#include <vector>

#include "base/function_ref.h"
#include "core/tensor.h"

namespace qkv {

class PassRecorder {
 public:
  explicit PassRecorder(Device& device) : device_(&device) {}

  // The result of pass(), run or replayed. With the same key, pass() calls the same kernels on the same addresses:
  // the key holds all shapes and where the arena stands.
  using Key = std::vector<int64_t>;
  Tensor run(const Key& key, FunctionRef<Tensor()> pass);

 private:
  struct Entry {
    std::unique_ptr<Recording> recording;
    Tensor result;
    int left = kMostAttempts;
    int64_t since = 0;   // passes since it was last recorded
    bool never = false;  // it does what cannot be done again
  };
  static constexpr size_t kMostEntries = 256;
  // Where memory is released again and again, recording does not pay. It has paid once a recording was replayed kPays times;
  // after kMostAttempts in a row that were not, one pass in kPause is recorded.
  static constexpr int kMostAttempts = 4, kPays = 16, kPause = 256;

  void record(Entry& entry, FunctionRef<Tensor()> pass);

  Device* device_;
  std::map<Key, Entry> entries_;
};

}  // namespace qkv
