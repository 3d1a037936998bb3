// Other libraries to compare with, if installed: peer_onednn.cpp, peer_openblas.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace qkv::bench {

enum class Product { forward, input_gradient, weight_gradient };

// One product of a linear op on the same bytes as ours; weights are packed in advance in the peer's format.
struct PeerLinear {
  Product product = Product::forward;
  Tensor x;   // [M, K]
  Tensor w;   // [O, K]
  Tensor dy;  // [M, O]: forward takes shape and dtype of its result from it
};
struct PeerRun {
  std::function<void()> run;                   // empty if the peer has no such product
  std::function<std::vector<float>()> result;  // of the last run, row-major
};

struct Peer {
  const char* name;
  std::string (*about)();  // its version, and the CPU it detects
  void (*set_threads)(int threads);
  PeerRun (*make)(const PeerLinear& linear);
};
extern const Peer onednn_peer, openblas_peer;

std::span<const Peer* const> peers();  // those of this build

}  // namespace qkv::bench
