#include "inspect/heads/head_id.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/printable.h"

namespace qkv {
namespace {

// Parses and removes a leading number.
std::optional<int16_t> take_number(std::string_view& text) {
  int16_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::string head_range(const ModelSpec& spec, Place first, size_t layers, int64_t heads) {
  const std::string letter = name_of(spec, first).substr(0, 1);
  return letter + "0H0 to " + letter + std::to_string(layers - 1) + "H" + std::to_string(heads - 1);
}

std::string what_exists(const ModelSpec& spec) {
  std::string all;
  for (const Stack stack : {Stack::encoder, Stack::decoder, Stack::cross}) {
    size_t layers = 0;
    int64_t heads = 0;
    for (const Place place : all_attentions(spec)) {
      if (place.stack != stack) continue;
      ++layers;
      heads = std::max(heads, attention_at(spec, place).heads);
    }
    if (layers > 0) all += (all.empty() ? "" : ", ") + head_range(spec, {stack, 0}, layers, heads);
  }
  return all;
}

[[noreturn]] void fail_no_head(const ModelSpec& spec, std::string_view name) {
  QKV_FAIL("no head ", printable(std::string(name)), ": this ", spec.family, " has ", what_exists(spec),
           Hint("heads are written L3H7, several with commas; L3 alone is a whole layer"));
}

}  // namespace

std::string name_of(const ModelSpec& spec, Place attention) {
  const char* letter = attention.stack == Stack::cross ? "X" : attention.stack == spec.main() ? "L" : "E";
  return letter + std::to_string(attention.layer);
}

std::string name_of(const ModelSpec& spec, const HeadId& head) {
  return name_of(spec, head.place()) + "H" + std::to_string(head.head);
}

std::vector<Place> all_attentions(const ModelSpec& spec) {
  std::vector<Place> all;
  for (size_t i = 0; i < spec.encoder.layers.size(); ++i) all.push_back({Stack::encoder, static_cast<int16_t>(i)});
  for (size_t i = 0; i < spec.decoder.layers.size(); ++i) {
    all.push_back({Stack::decoder, static_cast<int16_t>(i)});
    if (spec.decoder.layers[i].cross) all.push_back({Stack::cross, static_cast<int16_t>(i)});
  }
  return all;
}

std::vector<HeadId> all_heads(const ModelSpec& spec) {
  std::vector<HeadId> all;
  for (const Place place : all_attentions(spec)) {
    for (int64_t h = 0; h < attention_at(spec, place).heads; ++h) {
      all.push_back({place.stack, place.layer, static_cast<int16_t>(h)});
    }
  }
  return all;
}

const AttentionSpec& attention_at(const ModelSpec& spec, Place place) {
  const StackSpec& stack = place.stack == Stack::encoder ? spec.encoder : spec.decoder;
  const LayerSpec& layer = stack.layers.at(static_cast<size_t>(place.layer));
  return place.stack == Stack::cross ? *layer.cross : layer.attention;
}

int64_t kv_head_of(const AttentionSpec& spec, int64_t head) {
  if (!spec.kv_map.empty()) return spec.kv_map.at(static_cast<size_t>(head));
  return head / (spec.heads / spec.kv_heads);
}

std::vector<HeadId> parse_heads(const ModelSpec& spec, std::string_view text) {
  std::vector<HeadId> found;
  const std::vector<HeadId> all = all_heads(spec);
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view name = text.substr(at, comma - at);
    at = comma + 1;
    std::string_view rest = name;
    if (rest.empty()) fail_no_head(spec, name);
    const char letter = static_cast<char>(rest.front() & ~0x20);  // to upper case
    if (letter != 'L' && letter != 'E' && letter != 'X') fail_no_head(spec, name);
    rest.remove_prefix(1);
    const Stack stack = letter == 'L' ? spec.main() : letter == 'E' ? Stack::encoder : Stack::cross;
    const std::optional<int16_t> layer = take_number(rest);
    std::optional<int16_t> head;
    if (!rest.empty() && (rest.front() == 'H' || rest.front() == 'h')) {
      rest.remove_prefix(1);
      head = take_number(rest);
      if (!head) fail_no_head(spec, name);
    }
    if (!layer || !rest.empty()) fail_no_head(spec, name);
    const size_t before = found.size();
    for (const HeadId& id : all) {
      if (id.stack == stack && id.layer == *layer && (!head || id.head == *head)) found.push_back(id);
    }
    if (found.size() == before) fail_no_head(spec, name);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace qkv
