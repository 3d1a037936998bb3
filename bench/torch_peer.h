// PyTorch at the same work, measured in the same run where python3 has it.
#pragma once

#include <string>

#include "base/json.h"

namespace qkv::bench {

// What torch_peer.py prints for `work` and `spec`; null, with a line on stderr that says why, where it cannot run.
// `script`: its path; empty: not wanted.
Json torch_peer(const std::string& script, const std::string& work, const Json& spec);

}  // namespace qkv::bench
