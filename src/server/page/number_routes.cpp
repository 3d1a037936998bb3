// /page/story, weight, tile and overview: numbers as they are.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "inspect/look/embedding_update.h"
#include "inspect/look/weight_slice.h"
#include "inspect/report/token_report.h"
#include "server/page/page_routes.h"

namespace qkv::server {
namespace {

constexpr int64_t kLargestTile = 256, kMostWeights = 65536, kMostStoryKeys = 2048, kMostTrained = 512;
constexpr int64_t kOverviewRows = 4;  // of each cell

// A frame: eight u32, then f32 row by row, all little-endian.
HttpResponse frame_of(const MapPart& part, int64_t keys) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint32_t kMagic = 0x54564B51, kVersion = 1;
  const uint32_t head[] = {kMagic,
                           kVersion,
                           static_cast<uint32_t>(part.rows),
                           static_cast<uint32_t>(part.columns),
                           static_cast<uint32_t>(part.first_row),
                           static_cast<uint32_t>(part.first_column),
                           static_cast<uint32_t>(part.pooled),
                           static_cast<uint32_t>(keys)};
  std::string body(sizeof head + part.cells.size() * sizeof(float), '\0');
  std::memcpy(body.data(), head, sizeof head);
  if (!part.cells.empty()) std::memcpy(body.data() + sizeof head, part.cells.data(), part.cells.size() * sizeof(float));
  return {.type = "application/octet-stream", .body = std::move(body)};
}

bool same(const Cut& a, const Cut& b) {
  return a.heads == b.heads && a.experts == b.experts;
}

}  // namespace

HeadId page_head_of(PageModel& model, const Fields& fields) {
  const std::string name = fields.need_text("head", {1, 32});
  try {
    const std::vector<HeadId> heads = parse_heads(model.spec(), name);
    if (heads.size() == 1) return heads.front();
  } catch (const Error& error) {
    throw ApiError(404, error.message(), "head");
  }
  throw ApiError(404, "names a layer, not a head: L3H7", "head");
}

PageRange page_range_of(const Fields& fields, std::string_view name, int64_t count) {
  const OrderedJson* list = fields.list(name, {2, 2});
  if (list == nullptr) return {.end = count};
  const bool whole = (*list)[0].is_number_integer() && (*list)[1].is_number_integer();
  const PageRange range{whole ? (*list)[0].get<int64_t>() : -1, whole ? (*list)[1].get<int64_t>() : -1};
  if (range.first < 0 || range.end <= range.first || range.first >= count) {
    fields.fail(name, "must be [first, end) with 0 <= first < end and first < " + std::to_string(count));
  }
  return {range.first, std::min(range.end, count)};
}

bool MapCache::keeps_all(const PageText& asked) const {
  if (std::ssize(asked.text.ids) <= kLongText) return false;
  const ModelSpec& spec = asked.model.spec();
  for (const Place place : all_attentions(spec)) {
    if (attention_at(spec, place).relative) return false;
  }
  return LayerMaps::bytes_of_all(spec, asked.text) <= kMostBytes;
}

bool MapCache::is_of(const Entry& entry, const PageText& asked) {
  return entry.model == asked.model.name() && entry.text.ids == asked.text.ids &&
         entry.text.source == asked.text.source && same(entry.cut, asked.cut);
}

bool MapCache::has(const PageText& asked) const {
  const auto kept = std::count_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return is_of(e, asked); });
  return kept == std::ssize(all_attentions(asked.model.spec()));
}

void MapCache::put(const PageText& asked, MapsReading& maps) {
  std::erase_if(entries_, [&](const Entry& e) { return is_of(e, asked); });
  for (auto& [place, one] : maps.all) {
    entries_.push_front({asked.model.name(), asked.text, asked.cut, place, std::move(one)});
  }
  maps.all.clear();
  drop_old();
}

void MapCache::drop_old() {
  size_t bytes = 0;
  for (auto at = entries_.begin(); at != entries_.end();) {
    bytes += at->maps->bytes();
    at = bytes > kMostBytes && at != entries_.begin() ? entries_.erase(at) : std::next(at);
  }
}

const LayerMaps& MapCache::get(const PageText& asked, Place place) {
  const auto find = [&] {
    return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
      return is_of(e, asked) && e.place.stack == place.stack && e.place.layer == place.layer;
    });
  };
  if (find() == entries_.end()) {
    const std::unique_ptr<CutProbe> probe = asked.model.probe_of(asked.cut);
    const MapOptions options{.precision = asked.model.precision(), .edit = probe.get()};
    // A pass over a long text takes seconds and goes through all layers anyway: what fits is kept of all of them.
    if (keeps_all(asked)) {
      MapsReading maps(asked.model.spec(), asked.text);
      read_maps(asked.model.model(), asked.model.engine(), asked.text, maps, options);
      put(asked, maps);
    } else {
      entries_.push_front(
          {asked.model.name(), asked.text, asked.cut, place,
           std::make_unique<LayerMaps>(asked.model.model(), asked.model.engine(), asked.text, place, options)});
      drop_old();
    }
  }
  entries_.splice(entries_.begin(), entries_, find());
  return *entries_.front().maps;
}

HttpResponse page_tile(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  const HeadId head = page_head_of(asked.model, fields);
  const LayerMaps& maps = page.maps.get(asked, head.place());
  const PageRange rows = page_range_of(fields, "rows", maps.queries()),
                  columns = page_range_of(fields, "columns", maps.keys());
  if (rows.end - rows.first > kLargestTile) fields.fail("rows", "are more than 256");
  if (columns.end - columns.first > kLargestTile) fields.fail("columns", "are more than 256");
  return frame_of(maps.tile(head.head, {rows.first, rows.end, columns.first, columns.end}), maps.keys());
}

HttpResponse page_overview(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  const HeadId head = page_head_of(asked.model, fields);
  const LayerMaps& maps = page.maps.get(asked, head.place());
  return frame_of(maps.overview(head.head, kLargestTile, kOverviewRows), maps.keys());
}

HttpResponse page_story(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  PageModel& model = asked.model;
  if (std::ssize(asked.text.ids) > kMostStoryKeys)
    fields.fail("text", "has more than 2048 tokens: look at a part of it");
  const int64_t tokens = std::ssize(asked.text.ids);
  const int64_t token = fields.whole("token", {0, tokens - 1}).value_or(tokens - 1);
  const int64_t layers = std::ssize(model.spec().main_stack().layers);
  const auto layer = static_cast<int16_t>(fields.whole("layer", {0, layers - 1}).value_or(0));
  const int64_t heads = attention_at(model.spec(), {model.spec().main(), layer}).heads;
  const auto head = static_cast<int16_t>(fields.whole("head", {0, heads - 1}).value_or(0));
  const std::unique_ptr<CutProbe> probe = model.probe_of(asked.cut);
  const TokenNumbers numbers =
      token_numbers(model.model(), model.engine(), asked.text, token, {model.spec().main(), layer, head},
                    {.precision = model.precision(), .edit = probe.get()});
  return report_response(token_report(model.model(), model.engine(), numbers));
}

HttpResponse page_update(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  PageModel& model = asked.model;
  const int64_t tokens = std::ssize(asked.text.ids);
  const int64_t token = fields.whole("token", {0, tokens - 1}).value_or(tokens - 1);
  if (model.spec().kind != ModelSpec::Kind::decoder_only) fields.fail("model", "is no decoder");
  if (tokens < 2) fields.fail("text", "has one token: there is nothing to predict");
  if (tokens > kMostTrained) fields.fail("text", "has more than 512 tokens: train on a part of it");
  const EmbeddingUpdate found =
      embedding_update(model.own_model(), model.engine(), asked.text, token, model.precision());
  return report_response({{"token", token},
                          {"id", found.id},
                          {"uses", found.uses},
                          {"tied", found.tied},
                          {"loss", found.loss},
                          {"row", exact(found.row)},
                          {"gradient", exact(found.gradient)}});
}

HttpResponse page_weight(PageParts& page, const Fields& fields) {
  PageModel& model = page_model_of(page, fields);
  const std::optional<std::string> matrix =
      fields.word("matrix", {"q", "k", "v", "o", "gate", "up", "down", "router", "embed", "position", "head"});
  if (!matrix) fields.fail("matrix", "is missing");
  const int64_t layers = std::ssize(model.spec().main_stack().layers);
  const auto layer = static_cast<int16_t>(fields.whole("layer", {0, layers - 1}).value_or(0));
  const WeightMatrix found = weight_matrix(model.model(), {.matrix = *matrix,
                                                           .place = {model.spec().main(), layer},
                                                           .head = fields.whole("head", {0, 32767}),
                                                           .expert = fields.whole("expert", {0, 32767})});
  const PageRange rows = page_range_of(fields, "rows", found.rows),
                  columns = page_range_of(fields, "columns", found.columns);
  const int64_t count = (rows.end - rows.first) * (columns.end - columns.first);
  if (count > kMostWeights) {
    fields.fail("columns", "and rows are " + std::to_string(count) + " numbers; at most 65536 are sent");
  }
  Arena arena(model.engine().device());
  Context cx = model.engine().context(arena, Precision::f32());
  const std::vector<float> values = weight_values(cx, found, {rows.first, rows.end, columns.first, columns.end});
  Json list = Json::array();
  const auto width = static_cast<size_t>(columns.end - columns.first);
  for (size_t at = 0; at < values.size(); at += width) list.push_back(exact(std::span(values).subspan(at, width)));
  return report_response({{"matrix", *matrix},
                          {"name", found.name},
                          {"shape", {found.rows, found.columns}},
                          {"rows", {rows.first, rows.end}},
                          {"columns", {columns.first, columns.end}},
                          {"values", std::move(list)}});
}

}  // namespace qkv::server
