#include "server/look/look_json.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "server/answers/answer.h"
#include "text/tokenizer/files/base64.h"

namespace qkv::server {
namespace {

template <class T>
std::string little_endian(std::span<const float> values) {
  std::string bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<T>(value));
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(bits >> shift & 0xff));
  }
  return bytes;
}

OrderedJson nested(std::span<const float> values, std::span<const int64_t> shape, bool whole) {
  OrderedJson list = OrderedJson::array();
  const size_t step = shape.front() > 0 ? values.size() / static_cast<size_t>(shape.front()) : 0;
  for (size_t i = 0; i < static_cast<size_t>(shape.front()); ++i) {
    const std::span<const float> part = values.subspan(i * step, step);
    if (shape.size() > 1) {
      list.push_back(nested(part, shape.subspan(1), whole));
    } else if (whole) {
      list.push_back(static_cast<int64_t>(part.front()));
    } else {
      list.push_back(short_double(part.front()));
    }
  }
  return list;
}

}  // namespace

double short_double(float value) {
  if (!std::isfinite(value)) return static_cast<double>(value);
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double read = 0;
  std::from_chars(text, end, read);
  return read;
}

LookForm::LookForm(LookRequest request, const ModelSpec& spec, Tokenizer tokenizer)
    : request_(std::move(request)), tokenizer_(std::move(tokenizer)) {
  for (const HeadId& head : request_.heads) names_.push_back(name_of(spec, head));
  for (const HeadId& head : request_.cut) cut_names_.push_back(name_of(spec, head));
}

OrderedJson LookForm::heads() const {
  return names_;
}

OrderedJson LookForm::array(std::span<const float> values, const std::vector<int64_t>& shape, bool whole) const {
  if (!request_.frames) return nested(values, shape, whole);
  return {{"dtype", whole ? "i32" : "f32"},
          {"shape", shape},
          {"data", encode_base64(whole ? little_endian<int32_t>(values) : little_endian<float>(values))}};
}

OrderedJson LookForm::rung(const Rung& rung, size_t level) const {
  OrderedJson guesses = OrderedJson::array();
  for (const Guess& guess : rung.guesses) {
    guesses.push_back({{"id", guess.id}, {"token", shown_token(guess.id, tokenizer_).text}, {"p", guess.p}});
  }
  return {{"level", level == 0 ? "embed" : std::to_string(level - 1)},
          {"guesses", std::move(guesses)},
          {"entropy", rung.entropy},
          {"kl", rung.kl},
          {"rank", rung.rank}};
}

OrderedJson LookForm::token(const TokenLook& look) const {
  const int64_t heads = std::ssize(names_);
  OrderedJson out{{"position", look.position}};
  for (size_t i = 0; i < request_.statistics.size(); ++i) {
    const auto which = request_.statistics[i];
    out["statistics"][std::string(kLookStatistics[static_cast<size_t>(which)])] =
        array(look.statistics[i], {heads}, which == LookStatistic::argmax);
  }
  if (request_.maps == LookMaps::top8) {
    out["maps"] = OrderedJson::array();
    for (const TokenLook::HeadRow& row : look.top) {
      out["maps"].push_back({{"head", names_[row.head]}, {"weights", array(row.weights, {std::ssize(row.weights)})}});
    }
  }
  if (request_.maps == LookMaps::full) {
    out["maps"] = {{"first", look.first_row}, {"rows", OrderedJson::array()}};
    for (const std::vector<float>& row : look.rows) {
      out["maps"]["rows"].push_back(array(row, {heads, std::ssize(row) / heads}));
    }
  }
  for (size_t level = 0; level < look.ladder.size(); ++level) {
    out["ladder"].push_back(rung(look.ladder[level], level));
  }
  return out;
}

OrderedJson LookForm::text(const TextLook& look) const {
  OrderedJson out = OrderedJson::object();
  if (request_.maps == LookMaps::thumbnails) {
    const int64_t side = look.side();
    out["thumbnails"] = {{"rows", look.rows},
                         {"pooled", look.pooled},
                         {"maps", array(look.thumbnails, {std::ssize(names_), side, side})}};
  }
  out["truncated"] = look.truncated;
  return out;
}

OrderedJson LookForm::attribution(const FoundAttribution& found) const {
  if (!found.error.empty()) return {{"position", found.position}, {"error", found.error}};
  const auto token = [&](int32_t id) -> OrderedJson {
    return {{"id", id}, {"token", shown_token(id, tokenizer_).text}};
  };
  OrderedJson out{{"position", found.position},      {"for", token(found.target)},
                  {"against", token(found.against)}, {"difference", found.parts.difference},
                  {"sum", found.parts.sum},          {"linearised", found.linearised},
                  {"parts", OrderedJson::array()}};
  for (const AttributedPart& part : found.parts.parts) {
    out["parts"].push_back({{"name", part.name}, {"share", part.share}});
  }
  return out;
}

OrderedJson LookForm::cut(const CutText& written) const {
  if (written.failed) return {{"heads", cut_names_}, {"error", "the model failed to write this text"}};
  return {
      {"heads", cut_names_}, {"text", written.text}, {"ids", written.ids}, {"finish_reason", written.finish_reason}};
}

}  // namespace qkv::server
