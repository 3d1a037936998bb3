#include "random_model.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "kernels/tables.h"
#include "model/families/family.h"
#include "model/families/presets.h"
#include "model/initialise.h"
#include "model/weight_list.h"
#include "random.h"

namespace qkv::bench {
namespace {

// Of one matrix: uniform with the deviation of GPT-2's first weights.
constexpr float kDeviation = 0.02F, kRootThree = 1.7320508F;

void fill_weight(Param& param, const WeightSpec& weight, uint64_t seed, ThreadPool& pool) {
  constexpr int64_t kPiece = int64_t{1} << 24;
  std::vector<float> numbers;
  std::vector<Bf16> rounded;
  Device& device = param.device();
  for (int64_t first = 0; first < weight.shape.count(); first += kPiece) {
    const int64_t count = std::min(kPiece, weight.shape.count() - first);
    numbers.resize(static_cast<size_t>(count));
    if (weight.shape.rank() >= 2) {
      fill(pool, numbers.data(), count,
           [&](uint64_t i) { return kDeviation * kRootThree * random_float(seed, static_cast<uint64_t>(first) + i); });
    } else {
      initial_numbers(weight, 1, first, numbers);
    }
    const Tensor to = param.master();
    std::byte* at = to.data() + first * size_of(to.dtype());
    if (to.dtype() == DType::f32) {
      device.upload(at, numbers.data(), count * size_of(DType::f32));
      continue;
    }
    rounded.resize(numbers.size());
    fill(pool, rounded.data(), count, [&](uint64_t i) { return to_bf16(numbers[i]); });
    device.upload(at, rounded.data(), count * size_of(DType::bf16));
  }
}

}  // namespace

void add_device_option(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "Where it runs: cpu, or cuda for an NVIDIA GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

const Kernels& kernels_of(const std::string& device) {
  if (device == "cpu") return kernels::best_table();
#if defined(QKV_WITH_CUDA)
  const char* why = nullptr;
  QKV_CHECK(kernels::cuda::available(&why), "there is no GPU to measure: ", why, Hint("use --device cpu"));
  return kernels::cuda::table();
#else
  QKV_FAIL("this program was built without kernels for NVIDIA GPUs",
           Hint("install the CUDA toolkit and build again, or use --device cpu"));
#endif
}

Limits::Of limits_of(const Engine& engine) {
  return &engine.device() == &cpu_device() ? Limits::Of::cpu : Limits::Of::gpu;
}

std::unique_ptr<Model> random_model(ModelSpec spec, const Engine& engine, DType dtype) {
  Weights weights;
  uint64_t seed = 0;
  for (const WeightSpec& weight : weight_list(spec)) {
    Param& made = weights.add(Param(weight.name, engine.device(), Format(dtype), weight.shape));
    fill_weight(made, weight, ++seed, *engine.exec().pool);
  }
  return Model::make(std::move(spec), std::move(weights));
}

ModelSpec preset_spec(const std::string& preset) {
  return read_spec(Config(preset_config(preset), preset));
}

}  // namespace qkv::bench
