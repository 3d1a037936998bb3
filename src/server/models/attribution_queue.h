// Direct logit attributions of texts that were written, one after the other between passes. Each is one pass over the
// tokens up to the row, so their length and their number are limited.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "inspect/look/attribution.h"
#include "open/open_model.h"

namespace qkv::server {

inline constexpr int64_t kMostAttributedTokens = 512;

struct FoundAttribution {
  int64_t position = 0;
  int32_t target = 0, against = 0;
  bool linearised = false;
  Attribution parts = {};
  std::string error = {};  // instead of all this
};

class AttributionQueue {
 public:
  struct Job {
    std::vector<int32_t> ids = {};                      // up to the row, which is the last
    bool has_row = true;                                // false: the text ended before it
    std::optional<int32_t> target = {}, against = {};   // none: the likeliest, and the likeliest other
    std::function<bool()> wanted = {};                  // still
    std::function<void(FoundAttribution)> on_end = {};  // once, by step()
  };
  AttributionQueue(const OpenModel& model, int64_t most) : model_(model), most_(most) {}

  // Before the texts are written: room for so many, until what is returned is gone. QueueFull if there is none.
  std::shared_ptr<const void> reserve(int64_t count);
  void submit(Job job);  // from any thread
  bool step();           // one of them; false if there was nothing to do

 private:
  FoundAttribution attribute(const Job& job) const;

  const OpenModel& model_;
  const int64_t most_;  // reserved at once
  std::atomic<int64_t> reserved_ = 0;
  std::mutex mutex_;
  std::list<Job> waiting_;
};

}  // namespace qkv::server
