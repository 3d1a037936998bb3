#include "text/sentencepiece_normalizer.h"

#include "base/checked.h"
#include "text/utf8.h"

namespace qkv {
namespace {

class Normalization {
 public:
  Normalization(const SentencePieceModel& model, const ByteTrie& user_defined, std::string_view input)
      : model_(model), user_defined_(user_defined), input_(input) {}

  NormalizedText run() {
    if (model_.remove_extra_whitespaces) skip_leading_spaces();
    if (at_ == input_.size()) return {};
    out_.text.reserve(input_.size() - at_ + 16);
    out_.origin.reserve(input_.size() - at_ + 16);
    if (model_.add_dummy_prefix && !model_.whitespace_as_suffix) put_space();
    bool after_space = model_.remove_extra_whitespaces;
    while (at_ < input_.size()) {
      auto [length, text] = replacement();
      while (after_space && text.starts_with(' ')) text.remove_prefix(1);
      for (const char c : text) c == ' ' ? put_space() : put(std::string_view(&c, 1));
      if (!text.empty()) after_space = model_.remove_extra_whitespaces && text.ends_with(' ');
      at_ += length;
    }
    if (model_.remove_extra_whitespaces) cut_trailing_spaces();
    if (model_.add_dummy_prefix && model_.whitespace_as_suffix) put_space();
    out_.origin.push_back(static_cast<uint32_t>(at_));
    return std::move(out_);
  }

 private:
  struct Step {
    uint32_t length;  // bytes of the input
    std::string_view text;
  };

  Step replacement() const {
    const std::string_view rest = input_.substr(at_);
    if (const auto own = user_defined_.longest(rest); own.length > 0) return {own.length, rest.substr(0, own.length)};
    if (model_.charsmap) {
      if (const auto rule = model_.charsmap->longest(rest); rule.length > 0) return {rule.length, rule.replacement};
    }
    const size_t length = utf8_length(rest);
    if (length == 0) return {1, kReplacementCharacter};
    return {static_cast<uint32_t>(length), rest.substr(0, length)};
  }

  void skip_leading_spaces() {
    while (at_ < input_.size()) {
      const Step step = replacement();
      if (step.text != " ") break;
      at_ += step.length;
    }
  }

  // The input from the first space cut off on belongs to no piece.
  void cut_trailing_spaces() {
    const std::string_view space = space_symbol();
    while (out_.text.ends_with(space)) {
      out_.text.resize(out_.text.size() - space.size());
      at_ = out_.origin[out_.text.size()];
      out_.origin.resize(out_.text.size());
    }
  }

  std::string_view space_symbol() const { return model_.escape_whitespaces ? kSpaceSymbol : " "; }
  void put_space() { put(space_symbol()); }
  void put(std::string_view bytes) {
    out_.text.append(bytes);
    out_.origin.insert(out_.origin.end(), bytes.size(), static_cast<uint32_t>(at_));
  }

  const SentencePieceModel& model_;
  const ByteTrie& user_defined_;
  std::string_view input_;
  size_t at_ = 0;
  NormalizedText out_;
};

}  // namespace

NormalizedText normalize(const SentencePieceModel& model, const ByteTrie& user_defined, std::string_view input) {
  narrow<uint32_t>(input.size(), "length of the text");
  return Normalization(model, user_defined, input).run();
}

}  // namespace qkv
