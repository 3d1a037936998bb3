// The library beside us: oneDNN where it is installed (peer_onednn.cpp), nobody elsewhere (peer_none.cpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace qkv::bench {

std::string peer_name();  // "oneDNN 2.6.3", or empty
void set_peer_threads(int threads);

enum class Product { forward, input_gradient, weight_gradient };

// One product of a linear op on the very bytes ours reads; weights are packed before, as the peer likes them.
struct PeerLinear {
  Product product = Product::forward;
  Tensor x;   // [M, K]
  Tensor w;   // [O, K]
  Tensor dy;  // [M, O]: forward takes shape and dtype of its result from it
};
struct PeerRun {
  std::function<void()> run;                   // empty where there is no peer
  std::function<std::vector<float>()> result;  // of the last run, row-major
};
PeerRun make_peer(const PeerLinear& linear);

}  // namespace qkv::bench
