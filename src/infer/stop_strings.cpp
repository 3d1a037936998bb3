#include "infer/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr size_t kMostStops = 16, kMostStopBytes = 256;

// Bytes at the end that more bytes could complete to a character.
size_t begun_character(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const std::string_view tail = text.substr(text.size() - n);
    if (!is_utf8_continuation(tail[0])) return is_utf8_prefix(tail) ? n : 0;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) {
  QKV_CHECK(stops.size() <= kMostStops, "there are ", stops.size(), " stop strings but at most ", kMostStops,
            " are possible", Hint("give the few that matter"));
  for (std::string& stop : stops) {
    QKV_CHECK(!stop.empty() && stop.size() <= kMostStopBytes, "a stop string has ", stop.size(),
              " bytes but must have from 1 to ", kMostStopBytes, Hint("a few words are enough to stop at"));
    QKV_CHECK(is_utf8(stop), "the stop string '", printable(stop), "' is not UTF-8", Hint("texts are UTF-8"));
    std::vector<size_t> shorter(stop.size() + 1);
    for (size_t n = 1, k = 0; n < stop.size(); ++n) {
      while (k > 0 && stop[n] != stop[k]) k = shorter[k];
      if (stop[n] == stop[k]) ++k;
      shorter[n + 1] = k;
    }
    stops_.push_back({.text = std::move(stop), .shorter = std::move(shorter)});
  }
}

// Knuth, Morris and Pratt, for all stop strings side by side.
const StopStrings::Stop* StopStrings::complete_with(char byte) {
  const Stop* complete = nullptr;
  for (Stop& stop : stops_) {
    while (stop.matched > 0 && stop.text[stop.matched] != byte) stop.matched = stop.shorter[stop.matched];
    if (stop.text[stop.matched] == byte) ++stop.matched;
    if (stop.matched < stop.text.size()) continue;
    if (complete == nullptr || stop.text.size() > complete->text.size()) complete = &stop;
  }
  return complete;
}

StopStrings::Fed StopStrings::feed(std::string_view text) {
  if (!which_.empty()) return {.show = {}, .stopped = true, .which = which_};
  for (const char byte : text) {
    held_ += byte;
    const Stop* complete = complete_with(byte);
    if (complete == nullptr) continue;
    which_ = complete->text;
    held_.resize(held_.size() - which_.size());
    return {.show = std::exchange(held_, {}), .stopped = true, .which = which_};
  }
  size_t back = 0;
  for (const Stop& stop : stops_) back = std::max(back, stop.matched);
  const std::string_view certain(held_.data(), held_.size() - back);
  Fed fed{.show = std::string(certain.substr(0, certain.size() - begun_character(certain)))};
  held_.erase(0, fed.show.size());
  return fed;
}

std::string StopStrings::finish() {
  return std::exchange(held_, {});
}

}  // namespace qkv
