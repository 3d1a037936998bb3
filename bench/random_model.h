// Models with random weights on any device, and the choice of the device.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "core/engine.h"
#include "limits.h"
#include "model/model.h"

namespace qkv::bench {

// --device cpu|cuda
void add_device_option(CLI::App& app, std::string& device);
const Kernels& kernels_of(const std::string& device);
Limits::Of limits_of(const Engine& engine);

// Numbers as at the start of a training, drawn quickly.
std::unique_ptr<Model> random_model(ModelSpec spec, const Engine& engine, DType dtype);
// Of a built-in configuration.
ModelSpec preset_spec(const std::string& preset);

}  // namespace qkv::bench
