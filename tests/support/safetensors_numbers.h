// Goldens: tensors of a safetensors file as doubles.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/shape.h"
#include "support/pass.h"

namespace qkv::test {

struct Golden {
  Shape shape;
  DType dtype = DType::f32;  // BOOL reads as i8
  Numbers values;
};

struct GoldenFile {
  std::map<std::string, Golden> tensors;
  std::map<std::string, std::string> metadata;

  static GoldenFile read(const std::filesystem::path& path);
  const Golden& at(const std::string& name) const;  // throws an Error that names the tensor
  bool has(const std::string& name) const { return tensors.contains(name); }
};

// The names of all models in tests/golden.
std::vector<std::string> golden_models();
std::vector<std::string> golden_writers();  // those recorded with defaults for generation: all but encoders

}  // namespace qkv::test
