// Options of every command that computes: on what device, with how many threads.
#pragma once

#include <string>

#include "common/command.h"
#include "kernels/tables.h"
#include "model/spec.h"

namespace qkv::app {

struct ComputeOptions {
  std::string device_name = "auto";
  int threads = 0;

  kernels::DeviceChoice device() const;
};
// --device and --threads.
void add_compute_options(Command command, ComputeOptions& options);

// Kernels for a command that needs about so many bytes, or so many copies of a model's weights in f32.
const Kernels& kernels_for(const ComputeOptions& options, int64_t bytes);
const Kernels& kernels_for(const ComputeOptions& options, const ModelSpec& spec, int64_t copies);

}  // namespace qkv::app
