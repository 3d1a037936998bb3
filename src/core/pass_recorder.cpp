#include "core/pass_recorder.h"

#include <algorithm>

#include "base/error.h"

namespace qkv {

Tensor PassRecorder::run(const Key& key, FunctionRef<Tensor()> pass) {
  if (!device_->can_record()) return pass();
  if (entries_.size() >= kMostEntries && !entries_.contains(key)) entries_.clear();
  const auto [at, fresh] = entries_.try_emplace(key);
  if (fresh) return pass();  // makes what lasts: weights in the pass' dtype, tables, memory of the arena
  Entry& entry = at->second;
  ++entry.since;
  if (entry.recording && entry.recording->replay()) {
    if (entry.since == kPays) entry.left = kMostAttempts;
    return entry.result;
  }
  if (entry.never || (entry.left == 0 && entry.since < kPause)) return pass();
  record(entry, pass);
  QKV_ASSERT(!entry.recording || entry.recording->replay(), "a recording cannot be replayed at once");
  return entry.result;
}

// Without a recording, the pass was run.
void PassRecorder::record(Entry& entry, FunctionRef<Tensor()> pass) {
  entry.left = std::max(entry.left - 1, 0);
  entry.since = 0;
  entry.recording = nullptr;
  device_->begin_recording();
  try {
    entry.result = pass();
  } catch (...) {
    device_->end_recording();
    throw;
  }
  entry.recording = device_->end_recording();
  entry.never = !entry.recording;
}

}  // namespace qkv
