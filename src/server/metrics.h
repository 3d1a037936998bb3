// Counters and times for /metrics, in Prometheus' text format. From any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "infer/scheduler.h"

namespace qkv::server {

class Histogram {
 public:
  static constexpr std::array<double, 14> kEdges{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                 0.25,  0.5,    1,     2.5,  5,     10,   30};
  void add(double seconds);
  std::string text(const std::string& name, const std::string& labels) const;

 private:
  std::array<int64_t, kEdges.size() + 1> counts_{};
  double sum_ = 0;
  int64_t count_ = 0;
};

class Metrics {
 public:
  void answered(const std::string& route, int status);
  void rejected();                                             // for want of room
  void cancelled();                                            // by a client that left
  void first_token(const std::string& model, double seconds);  // since the request came
  void next_token(const std::string& model, double seconds);   // since the one before
  void tokens(const std::string& model, int64_t prompt, int64_t written);

  struct ModelNow {
    std::string name;
    Scheduler::Counts counts;
  };
  std::string text(const std::vector<ModelNow>& models, size_t busy) const;

 private:
  struct OfModel {
    Histogram first, next;
    int64_t prompt = 0, written = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> answers_;  // route and status
  std::map<std::string, OfModel> models_;
  int64_t rejected_ = 0, cancelled_ = 0;
};

}  // namespace qkv::server
