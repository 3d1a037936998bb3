// CPU time of the threads of this process, by name.
#pragma once

#include <map>
#include <string>

namespace qkv::bench {

// Seconds of all living threads of each name, as /proc has them; empty where it is hidden.
std::map<std::string, double> cpu_by_thread_name();

// Of all threads of this process, those that have ended too.
double process_cpu_seconds();

}  // namespace qkv::bench
