// The results as a table or as JSON.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "measure.h"

namespace qkv::bench {

struct Machine {
  std::string cpu, table, peers;  // peers: empty if there are none
  int threads = 1;
};
Machine this_machine(const Engine& engine);

struct Report {
  Machine machine;
  const Limits& limits;
  const std::vector<Row>& rows;
  double seconds, preempted;  // duration of the run, and how often it was preempted
  bool busy() const { return preempted > kCalmPreemptions * seconds; }
};
void print_table(std::ostream& out, const Report& report, bool colour);
void print_json(std::ostream& out, const Report& report);

}  // namespace qkv::bench
