#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"

namespace {

template <class AnyJson>
std::string first_not_utf8(const AnyJson& json) {
  using Handler = nlohmann::detail::error_handler_t;
  const auto good = [](const AnyJson& text) {  // nothing to leave out, nothing to replace
    return text.dump(-1, ' ', false, Handler::ignore) == text.dump(-1, ' ', false, Handler::replace);
  };
  if (json.is_string()) return good(json) ? "" : json.template get<std::string>();
  for (auto at = json.begin(); json.is_structured() && at != json.end(); ++at) {
    if (json.is_object() && !good(AnyJson(at.key()))) return at.key();
    if (std::string found = first_not_utf8(*at); !found.empty()) return found;
  }
  return "";
}

// As in nlohmann/json.hpp.
template <class AnyJson>
std::string dump_json(const AnyJson& json, int indent, char indent_char, bool ensure_ascii,
                      nlohmann::detail::error_handler_t error_handler) {
  std::string text;
  nlohmann::detail::serializer<AnyJson> serializer(nlohmann::detail::output_adapter<char, std::string>(text),
                                                   indent_char, error_handler);
  try {
    serializer.dump(json, indent >= 0, ensure_ascii, indent >= 0 ? static_cast<unsigned>(indent) : 0);
  } catch (const nlohmann::json::type_error& error) {
    constexpr int kInvalidUtf8 = 316;
    if (error.id != kInvalidUtf8) throw;
    QKV_FAIL("a text is not UTF-8, which JSON needs: ", qkv::printable(first_not_utf8(json)),
             qkv::Hint("if it is the name of a file, rename it; otherwise convert it, for example with  iconv"));
  }
  return text;
}

}  // namespace

template <>
std::string nlohmann::json::dump(int indent, char indent_char, bool ensure_ascii, error_handler_t error_handler) const {
  return dump_json(*this, indent, indent_char, ensure_ascii, error_handler);
}
template <>
std::string nlohmann::ordered_json::dump(int indent, char indent_char, bool ensure_ascii,
                                         error_handler_t error_handler) const {
  return dump_json(*this, indent, indent_char, ensure_ascii, error_handler);
}

namespace qkv {
namespace {

// Tells the handler how far the parser has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

std::string shortened(std::string_view text) {
  constexpr size_t kShown = 160;
  if (text.size() <= kShown) return std::string(text);
  size_t end = kShown;
  while (end > 0 && is_continuation(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

// nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 2: reason; last read: '...'" without the
// frame and without the "last read" part, which can be as long as the text and hold broken UTF-8.
std::string reason_of(std::string_view text) {
  if (const size_t bracket = text.find("] "); bracket != text.npos) text.remove_prefix(bracket + 2);
  if (text.starts_with("parse error")) {
    if (const size_t colon = text.find(": "); colon != text.npos) text.remove_prefix(colon + 2);
  }
  return std::string(text.substr(0, text.find("; last read: ")));
}

class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, std::string_view what, JsonLimits limits, std::span<TapedPart> taped)
      : text_(text), what_(what), limits_(limits), furthest_(text.data()), taped_(taped) {}

  Json parse() {
    Json::sax_parse(CountingIterator(text_.data(), &furthest_),
                    CountingIterator(text_.data() + text_.size(), &furthest_), this);
    return std::move(root_);
  }

  using Kind = JsonTape::Kind;

  bool null() override { return tape_ ? taped(Kind::null) : add(nullptr); }
  bool boolean(bool value) override { return tape_ ? taped_integer(Kind::boolean, value) : add(value); }
  bool number_integer(number_integer_t value) override {
    return tape_ ? taped_integer(Kind::integer, value) : add(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!tape_) return add(value);
    if (std::in_range<int64_t>(value)) return taped_integer(Kind::integer, static_cast<int64_t>(value));
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(number_float_t value, const string_t&) override {
    if (!tape_) return add(value);
    tape_->add_number(value);
    return true;
  }
  bool string(string_t& value) override {
    if (!tape_) return add(std::move(value));
    tape_->add_text(Kind::string, value);
    return true;
  }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_array(size_t) override { return tape_ ? open_taped(Kind::open_array) : open(Json::value_t::array); }
  bool start_object(size_t) override { return tape_ ? open_taped(Kind::open_object) : open(Json::value_t::object); }
  bool end_array() override { return tape_ ? close_taped(Kind::close_array) : close(); }
  bool end_object() override { return tape_ ? close_taped(Kind::close_object) : close(); }

  bool key(string_t& name) override {
    if (tape_) {
      tape_->add_text(Kind::key, name);
      return true;
    }
    if (!taped_.empty()) keys_.back() = name;
    auto [slot, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name));
    QKV_CHECK(is_new, what_, ": the key ", printable(slot->first), " appears twice in one object, ", place(read()),
              Hint("keep one of the two"));
    value_of_key_ = &slot->second;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& failure) override {
    constexpr int kNumberOverflow = 406;
    const std::string reason = reason_of(failure.what());
    const char* hint = "JSON has no comments, no trailing commas, no NaN and nothing after its one value";
    if (failure.id == kNumberOverflow) hint = "numbers must fit in a double, up to about 1.8e308";
    if (reason.find("UTF-8") != reason.npos) hint = "save the text as UTF-8";
    if (reason.find("unexpected end of input") != reason.npos) hint = "the text is cut off: was it written completely?";
    // The parser counts the offending byte as read.
    QKV_FAIL(what_, ": not valid JSON, ", place(position - 1), ": ", shortened(reason), Hint(hint));
  }

  // Line and column (in characters) for people, the byte for programs.
  std::string place(size_t offset) const {
    const std::string_view before = text_.substr(0, offset);
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
    const auto columns = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                       [](char c) { return !is_continuation(c); });
    return fmt::format("line {}, column {} (byte {})", lines + 1, columns + 1, offset);
  }

 private:
  // The byte read last: the bracket just opened, the closing quote of a key.
  size_t read() const { return static_cast<size_t>(furthest_ - text_.data()) - 1; }

  template <class Value>
  bool add(Value&& value) {
    insert(Json(std::forward<Value>(value)));
    return true;
  }

  Json* insert(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
    *value_of_key_ = std::move(value);
    return value_of_key_;
  }

  bool open(Json::value_t kind) {
    check_depth(open_.size());
    for (TapedPart& part : taped_) {
      if (std::ranges::equal(part.keys, keys_)) {
        insert(nullptr);
        tape_ = &part.tape;
        return open_taped(kind == Json::value_t::array ? Kind::open_array : Kind::open_object);
      }
    }
    open_.push_back(insert(Json(kind)));
    if (!taped_.empty()) keys_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    if (!taped_.empty()) keys_.pop_back();
    return true;
  }

  bool taped(Kind kind) {
    tape_->add(kind);
    return true;
  }

  bool taped_integer(Kind kind, int64_t value) {
    tape_->add_integer(kind, value);
    return true;
  }

  bool open_taped(Kind kind) {
    check_depth(open_.size() + taped_depth_++);
    return taped(kind);
  }

  bool close_taped(Kind kind) {
    tape_->add(kind);
    if (--taped_depth_ == 0) tape_ = nullptr;
    return true;
  }

  void check_depth(size_t depth) const {
    QKV_CHECK(std::cmp_less(depth, limits_.depth), what_, ": nested more than ", limits_.depth, " levels deep, ",
              place(read()), Hint("no real file nests so deep: it is damaged or made to do harm"));
  }

  std::string_view text_, what_;
  JsonLimits limits_;
  const char* furthest_;
  Json root_;
  std::vector<Json*> open_;  // arrays and objects not yet closed; only the last one grows, so the pointers hold
  Json* value_of_key_ = nullptr;
  std::span<TapedPart> taped_;
  std::vector<std::string> keys_;  // path of the value being read; empty for array elements
  JsonTape* tape_ = nullptr;       // where tokens go now
  size_t taped_depth_ = 0;
};

// Edit distance: insert, delete or replace a byte, or swap two neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> older(b.size() + 1), old(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    older.swap(old);
    old.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({old[j] + 1, row[j - 1] + 1, old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], older[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

void JsonTape::add_text(Kind kind, std::string_view text) {
  items_.push_back(
      {.kind = kind, .size = narrow<uint32_t>(text.size(), "bytes of a JSON string"), .begin = texts_.size()});
  texts_ += text;
}

Json parse_json(std::string_view text, std::string_view what, JsonLimits limits) {
  return parse_json(text, what, limits, {});
}

Json parse_json(std::string_view text, std::string_view what, JsonLimits limits, std::span<TapedPart> taped) {
  QKV_CHECK(text.size() <= limits.bytes, what, ": the JSON text has ", text.size(), " bytes but the limit is ",
            limits.bytes, Hint("this is probably not the file you meant"));
  Builder builder(text, what, limits, taped);
  // The parser takes a zero byte as the end of the text and would accept anything after it.
  const size_t zero = text.find('\0');
  QKV_CHECK(zero == text.npos, what, ": not valid JSON, ", builder.place(zero), ": a zero byte",
            Hint("this is a binary file or UTF-16 text; save it as UTF-8"));
  return builder.parse();
}

std::string nearest_key(std::string_view word, std::span<const std::string_view> known) {
  std::string_view nearest;
  size_t smallest = SIZE_MAX;
  for (const std::string_view candidate : known) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    const size_t limit = longer / 3;
    // The length difference is a lower bound; this also avoids a huge table for a huge word.
    if (longer - shorter > limit) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance <= limit && distance < smallest) {
      nearest = candidate;
      smallest = distance;
    }
  }
  return std::string(nearest);
}

}  // namespace qkv
