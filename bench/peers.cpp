#include "peer.h"

namespace qkv::bench {

std::span<const Peer* const> peers() {
  static const std::vector<const Peer*> list {
#if defined(QKV_BENCH_ONEDNN)
    &onednn_peer,
#endif
#if defined(QKV_BENCH_OPENBLAS)
        &openblas_peer,
#endif
  };
  return list;
}

}  // namespace qkv::bench
