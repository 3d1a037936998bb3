#include "core/pass_recorder.h"

#include "base/error.h"

namespace qkv {

Tensor PassRecorder::run(const Key& key, FunctionRef<Tensor()> pass) {
  if (!device_->can_record()) return pass();
  if (entries_.size() >= kMostEntries && !entries_.contains(key)) entries_.clear();
  const auto [at, fresh] = entries_.try_emplace(key);
  if (fresh) return pass();  // makes what lasts: weights in the pass' dtype, tables, memory of the arena
  Entry& entry = at->second;
  if (entry.recording && entry.recording->replay()) return entry.result;
  if (entry.left == 0) return pass();
  record(entry, pass);
  QKV_ASSERT(!entry.recording || entry.recording->replay(), "a recording cannot be replayed at once");
  return entry.result;
}

// Without a recording, the pass was run.
void PassRecorder::record(Entry& entry, FunctionRef<Tensor()> pass) {
  --entry.left;
  entry.recording = nullptr;
  device_->begin_recording();
  try {
    entry.result = pass();
  } catch (...) {
    device_->end_recording();
    throw;
  }
  entry.recording = device_->end_recording();
  if (!entry.recording) entry.left = 0;
}

}  // namespace qkv
