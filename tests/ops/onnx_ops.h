// ONNX operator vectors through our ops: what each op of a file gives, by the names of the file's outputs.
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

// Laid out as the file has them. Throws an Error for an operator it does not know.
std::map<std::string, Numbers> run_onnx(const GoldenFile& file, const OnnxSetting& setting);

}  // namespace qkv::test
