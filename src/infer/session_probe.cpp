#include "infer/session_probe.h"

#include <algorithm>

#include "base/error.h"
#include "core/context.h"

namespace qkv {
namespace {

bool wants_pattern(const SessionProbe& probe, Place place, Site site) {
  const Ask asked = probe.ask(place, site);
  return has(asked, Ask::rows) || has(asked, Ask::pattern);
}

// The rows of a part it asked for, counted from the first of the part.
std::vector<int32_t> wanted_of(const PassProbe::Part& part, Place place) {
  bool some = false, all = false;
  for (const Site site : {Site::attn_scores, Site::attn_probs}) {
    some = some || wants_pattern(*part.probe, place, site);
    all = all || has(part.probe->ask(place, site), Ask::pattern);
  }
  if (!some) return {};
  if (!all) return part.probe->rows_wanted(place);
  std::vector<int32_t> rows(static_cast<size_t>(part.rows));
  for (size_t r = 0; r < rows.size(); ++r) rows[r] = static_cast<int32_t>(r);
  return rows;
}

Rows own_rows(const PassProbe::Part& part, const Rows& all) {
  Rows own;
  for (Segment segment : all.list) {
    if (segment.first_row != part.first_row) continue;
    segment.first_row = 0;
    own.list.push_back(segment);
    own.longest_keys = segment.keys;
  }
  QKV_ASSERT(own.list.size() == 1, own.list.size(), " segments begin at row ", part.first_row);
  own.rows = part.rows;
  own.keys = all.keys;
  return own;
}

Tensor own_rows(const PassProbe::Part& part, const Tensor& x) {
  return x.defined() ? x.slice(0, part.first_row, part.rows) : x;
}

// Where a part's offsets begin in the list of all; equal lists are there once.
int64_t place_offsets(std::vector<int32_t>& all, const std::vector<int32_t>& own) {
  const auto found = std::search(all.begin(), all.end(), own.begin(), own.end());
  const auto at = found - all.begin();
  if (found == all.end()) all.insert(all.end(), own.begin(), own.end());
  return at;
}

// The same in memory of the host, held by `copies`: one copy for all sessions, a device takes its time for each.
AttentionStats on_host(const AttentionStats& stats, std::vector<Storage>& copies) {
  const auto copied = [&](const Tensor& x) {
    if (!x.defined() || &x.device() == &cpu_device()) return x;
    const Storage& copy = copies.emplace_back(cpu_device(), x.format(), x.shape());
    x.device().download(copy.data(), x.data(), copy.bytes());
    return Tensor(copy, x.shape());
  };
  return {.entropy = copied(stats.entropy),
          .distance = copied(stats.distance),
          .first = copied(stats.first),
          .highest = copied(stats.highest),
          .argmax = copied(stats.argmax),
          .offsets = copied(stats.offsets),
          .at_offset = copied(stats.at_offset)};
}

}  // namespace

Ask PassProbe::ask(Place place, Site site) const {
  Ask all = Ask::none;
  if (site == Site::logits) return all;
  for (const Part& part : parts_) all = all | part.probe->ask(place, site);
  if (has(all, Ask::pattern)) {
    all = static_cast<Ask>((static_cast<uint8_t>(all) & ~static_cast<uint8_t>(Ask::pattern)) |
                           static_cast<uint8_t>(Ask::rows));
  }
  return all;
}

StatsWanted PassProbe::stats_wanted(Place place) const {
  StatsWanted all;
  for (const Part& part : parts_) place_offsets(all.offsets, part.probe->stats_wanted(place).offsets);
  return all;
}

void PassProbe::visit_stats(Context& cx, const Tap& tap, const AttentionStats& on_device) {
  std::vector<Storage> copies;
  const AttentionStats stats = on_host(on_device, copies);
  std::vector<int32_t> offsets;
  for (const Part& part : parts_) {
    const std::vector<int32_t> own = part.probe->stats_wanted(tap.place).offsets;
    const int64_t at = place_offsets(offsets, own);
    if (!has(part.probe->ask(tap.place, Site::attn_probs), Ask::stats)) continue;
    const Rows rows = own_rows(part, *tap.rows);
    AttentionStats shown{.entropy = own_rows(part, stats.entropy),
                         .distance = own_rows(part, stats.distance),
                         .first = own_rows(part, stats.first),
                         .highest = own_rows(part, stats.highest),
                         .argmax = own_rows(part, stats.argmax)};
    if (!own.empty()) {
      shown.offsets = stats.offsets.slice(0, at, std::ssize(own));
      shown.at_offset = own_rows(part, stats.at_offset).slice(2, at, std::ssize(own));
    }
    part.probe->visit_stats(cx, {.place = tap.place, .site = tap.site, .rows = &rows}, shown);
  }
}

std::vector<int32_t> PassProbe::rows_wanted(Place place) const {
  std::vector<int32_t> all;
  for (const Part& part : parts_) {
    for (const int32_t row : wanted_of(part, place)) all.push_back(static_cast<int32_t>(part.first_row) + row);
  }
  return all;
}

// x [rows wanted of all parts, H, S]; a part sees its own rows, and as many keys as it has.
void PassProbe::visit_pattern(Context& cx, const Tap& tap, const Tensor& x) {
  int64_t at = 0;
  for (const Part& part : parts_) {
    const int64_t count = std::ssize(wanted_of(part, tap.place));
    if (count > 0 && wants_pattern(*part.probe, tap.place, tap.site)) {
      const Rows rows = own_rows(part, *tap.rows);
      Tensor own = x.slice(0, at, count).slice(2, 0, rows.longest_keys);
      part.probe->visit(cx, {.place = tap.place, .site = tap.site, .rows = &rows}, own);
    }
    at += count;
  }
}

void PassProbe::visit(Context& cx, const Tap& tap, Tensor& x) {
  if (tap.site == Site::attn_scores || tap.site == Site::attn_probs) return visit_pattern(cx, tap, x);
  for (const Part& part : parts_) {
    const Ask asked = part.probe->ask(tap.place, tap.site);
    if (!has(asked, Ask::read | Ask::edit)) continue;
    const Rows rows = own_rows(part, *tap.rows);
    const Tensor before = own_rows(part, x);
    Tensor own = before;
    part.probe->visit(cx, {.place = tap.place, .site = tap.site, .rows = &rows}, own);
    if (own.data() != before.data()) cx.kernels.copy(cx.exec, {.y = before, .x = own});
  }
}

}  // namespace qkv
