// Runs ONNX operator test vectors through our ops: outputs by the names of the file.
#pragma once

#include <map>
#include <string>

#include "support/safetensors_numbers.h"

namespace qkv::test {

struct OnnxSetting {
  const Kernels* kernels = nullptr;
  int threads = 1;
  bool pages = false;  // attention: keys and values in pages instead of rows
};

// In the layout of the file. An Error for an unknown operator.
std::map<std::string, Numbers> run_onnx(const GoldenFile& file, const OnnxSetting& setting);

}  // namespace qkv::test
