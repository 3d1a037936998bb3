#include "common/compute_options.h"

#include "model/weight_list.h"

namespace qkv::app {

kernels::DeviceChoice ComputeOptions::device() const {
  return device_name == "cpu"    ? kernels::DeviceChoice::cpu
         : device_name == "cuda" ? kernels::DeviceChoice::cuda
                                 : kernels::DeviceChoice::automatic;
}

void add_compute_options(Command command, ComputeOptions& options) {
  command
      .add_option("--device", options.device_name,
                  "Where to compute; auto: on an NVIDIA GPU if there is one and the model fits into its memory")
      .one_of({"auto", "cpu", "cuda"})
      .show_default();
  command.add_threads(options.threads);
}

const Kernels& kernels_for(const ComputeOptions& options, int64_t bytes) {
  return kernels::table_for(options.device(), bytes);
}

const Kernels& kernels_for(const ComputeOptions& options, const ModelSpec& spec, int64_t copies) {
  int64_t bytes = 0;
  for (const WeightSpec& weight : weight_list(spec)) bytes += weight.shape.count() * size_of(DType::f32);
  return kernels_for(options, copies * bytes);
}

}  // namespace qkv::app
