#include "inspect/taps/recorder.h"

#include <algorithm>

#include "base/error.h"
#include "core/host_values.h"

namespace qkv {
namespace {

std::vector<float> numbers(const Tensor& x) {
  if (x.dtype() != DType::i32) return host_floats(x);
  const std::vector<int32_t> ids = host_ints(x);
  return {ids.begin(), ids.end()};
}

}  // namespace

Ask Recorder::ask(Place place, Site site) const {
  if (std::find(wanted_.begin(), wanted_.end(), TapId{place, site}) == wanted_.end()) return Ask::none;
  return site == Site::attn_scores || site == Site::attn_probs ? Ask::pattern : Ask::read;
}

void Recorder::visit(Context&, const Tap& tap, Tensor& x) {
  all_.push_back({.id = {tap.place, tap.site}, .shape = x.shape(), .values = numbers(x)});
  if (tap.rows != nullptr) all_.back().rows = tap.rows->list;
}

const RecordedTap& Recorder::last(const TapId& id) const {
  const auto at = std::find_if(all_.rbegin(), all_.rend(), [&](const RecordedTap& tap) { return tap.id == id; });
  QKV_CHECK(at != all_.rend(), "nothing was recorded at ", name_of(id.site), " of layer ", id.place.layer,
            Hint("request the tap before running a pass"));
  return *at;
}

}  // namespace qkv
