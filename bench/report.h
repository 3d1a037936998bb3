// The run as a table for people or as JSON for programs.
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
  double seconds, put_off;  // how long the run took, and how often other work took a CPU from it
  bool busy() const { return put_off > kCalm * seconds; }
};
void print_table(std::ostream& out, const Report& report, bool colour);
void print_json(std::ostream& out, const Report& report);

}  // namespace qkv::bench
