// Clients of a server in this process: plain sockets, one thread for all of them, so that they cost little and their
// cost is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::bench {

struct StreamTimes {
  double seconds = 0;         // from the first request to the end of the last answer
  double client_seconds = 0;  // CPU time of the clients
  int64_t tokens = 0;         // written, as the usage of the answers has it
  std::vector<double> first;  // from a request to its first event
  std::vector<double> next;   // between events of a text
};

// Sends the bodies to /v1/completions, the next as soon as one of so many connections is free, and reads the streams to
// their ends. An Error if one is not answered with 200 and usage.
StreamTimes ask_all(int port, size_t clients, const std::vector<std::string>& bodies);

// A number of /metrics, added up over its labels.
int64_t server_metric(int port, std::string_view name);

// So many of them are not larger, from 0 to 1.
double quantile(std::vector<double> values, double share);

}  // namespace qkv::bench
