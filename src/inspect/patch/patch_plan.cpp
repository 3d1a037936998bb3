// Which sites qkv patch tries, and where they stand in its maps.
#include <algorithm>
#include <limits>

#include "inspect/patch/patch.h"

namespace qkv {
namespace {

class PlanMaker {
 public:
  PlanMaker(const ModelSpec& spec, const TokenText& text) : spec_(spec), text_(text) {}

  void by_layer(Stack stack, Site site) {
    const std::vector<LayerSpec>& layers = (stack == Stack::encoder ? spec_.encoder : spec_.decoder).layers;
    PatchMap& map = begin(stack, site, positions(stack));
    for (size_t i = 0; i < layers.size(); ++i) {
      if (stack == Stack::cross && !layers[i].cross) continue;
      if (site == Site::mlp_out && layers[i].feed.absent()) continue;
      const Place place{stack, static_cast<int16_t>(i)};
      row(map, name_of(spec_, place),
          [&](int32_t at) { return PatchSite{.place = place, .site = site, .position = at}; });
    }
    if (map.rows.empty()) plan_.maps.pop_back();
  }

  // Single heads, all positions at once.
  void by_head(Stack stack) {
    int64_t most = 0;
    std::vector<Place> places;
    for (const Place place : all_attentions(spec_)) {
      if (place.stack != stack) continue;
      places.push_back(place);
      most = std::max(most, attention_at(spec_, place).heads);
    }
    if (places.empty()) return;
    PatchMap& map = begin(stack, Site::attn_z, most);
    map.across = PatchMap::Across::heads;
    for (const Place place : places) {
      row(
          map, name_of(spec_, place),
          [&](int32_t head) {
            return PatchSite{.place = place, .site = Site::attn_z, .head = static_cast<int16_t>(head)};
          },
          attention_at(spec_, place).heads);
    }
  }

  void head_by_position(std::span<const HeadId> heads, Stack stack) {
    PatchMap& map = begin(stack, Site::attn_z, positions(stack));
    for (const HeadId& head : heads) {
      if (head.stack != stack) continue;
      row(map, name_of(spec_, head), [&](int32_t at) {
        return PatchSite{.place = head.place(), .site = Site::attn_z, .head = head.head, .position = at};
      });
    }
    if (map.rows.empty()) plan_.maps.pop_back();
  }

  PatchPlan take() { return std::move(plan_); }

 private:
  int64_t positions(Stack stack) const {
    return std::ssize(stack == Stack::encoder && !text_.source.empty() ? text_.source : text_.ids);
  }
  PatchMap& begin(Stack stack, Site site, int64_t columns) {
    const bool source = stack == Stack::encoder && !text_.source.empty();
    plan_.maps.push_back({.site = site,
                          .stack = stack,
                          .across = source ? PatchMap::Across::source : PatchMap::Across::tokens,
                          .rows = {},
                          .columns = columns});
    return plan_.maps.back();
  }
  template <class Make>
  void row(PatchMap& map, std::string name, const Make& make, int64_t there = std::numeric_limits<int64_t>::max()) {
    map.rows.push_back(std::move(name));
    const size_t first = map.restored.size();
    map.restored.resize(first + static_cast<size_t>(map.columns), std::numeric_limits<double>::quiet_NaN());
    for (int64_t i = 0; i < std::min(there, map.columns); ++i) {
      plan_.patches.push_back({make(static_cast<int32_t>(i))});
      plan_.targets.emplace_back(plan_.maps.size() - 1, first + static_cast<size_t>(i));
    }
  }

  const ModelSpec& spec_;
  const TokenText& text_;
  PatchPlan plan_;
};

}  // namespace

PatchPlan patch_plan(const ModelSpec& spec, const TokenText& text, std::span<const HeadId> by_position) {
  PlanMaker maker(spec, text);
  std::vector<Stack> stacks;
  if (spec.has_source()) stacks = {Stack::encoder, Stack::decoder, Stack::cross};
  if (stacks.empty()) stacks = {spec.main()};
  for (const Stack stack : stacks) {
    maker.by_layer(stack, Site::resid_pre);
    maker.by_layer(stack, Site::attn_out);
    if (stack != Stack::cross) maker.by_layer(stack, Site::mlp_out);
    maker.by_head(stack);
    maker.head_by_position(by_position, stack);
  }
  return maker.take();
}

std::vector<PatchMap> filled(PatchPlan plan, const PatchOutcome& outcome) {
  for (size_t i = 0; i < plan.targets.size(); ++i) {
    const auto [map, cell] = plan.targets[i];
    plan.maps[map].restored[cell] = outcome.restored(i);
  }
  return std::move(plan.maps);
}

}  // namespace qkv
