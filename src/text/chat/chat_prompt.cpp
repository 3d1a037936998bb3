#include "text/chat/chat_prompt.h"

#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "text/tokenizer/pipeline/replace_all.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr EncodeOptions kRead{.add_specials = false, .unit = OffsetUnit::bytes};
constexpr EncodeOptions kAsText{.add_specials = false, .read_specials = false};

// One of Unicode's 32 noncharacters U+FDD0 to U+FDEF that no message contains.
std::string unused_mark(const std::string& messages) {
  for (int byte = 0x90; byte <= 0xaf; ++byte) {
    const std::string mark{'\xef', '\xb7', static_cast<char>(byte)};
    if (messages.find(mark) == messages.npos) return mark;
  }
  QKV_FAIL("the messages hold all 32 of Unicode's noncharacters U+FDD0 to U+FDEF",
           Hint("leave one out: it is needed to tell messages from the template"));
}

bool contains_special(const Tokenizer& tokenizer, int32_t id, std::string_view text) {
  return tokenizer.is_special(id) && text.find(tokenizer.token(id)) != text.npos;
}

// Inserts the mark into every special token in the text. True if there was one.
bool break_up(const Tokenizer& tokenizer, const std::string& mark, std::string& text) {
  constexpr int kRounds = 4;  // breaking up one token may expose another
  bool any = false;
  for (int round = 0; tokenizer.encode(text, kRead) != tokenizer.encode(text, kAsText); ++round) {
    QKV_CHECK(round < kRounds, "the message ", printable(text), " holds special tokens that cannot be told from text",
              Hint("write them in another way"));
    const Encoding read = tokenizer.encode_full(text, kRead);
    for (size_t i = read.ids.size(); i-- > 0;) {
      if (!tokenizer.is_special(read.ids[i])) continue;
      const auto [begin, end] = read.offsets[i];
      const size_t found = text.find(tokenizer.token(read.ids[i]), begin);
      const size_t at = found < end ? found : begin;
      text.insert(at + first_character(std::string_view(text).substr(at)).size(), mark);
    }
    any = true;
  }
  return any;
}

bool break_up(const Tokenizer& tokenizer, const std::string& mark, OrderedJson& value) {
  if (value.is_string()) return break_up(tokenizer, mark, value.get_ref<std::string&>());
  bool any = false;
  if (value.is_structured()) {
    for (OrderedJson& below : value) any = break_up(tokenizer, mark, below) || any;
  }
  return any;
}

}  // namespace

std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 ChatTemplate::Input input) {
  const std::string mark = unused_mark(input.messages.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  const bool broken_up = break_up(tokenizer, mark, input.messages);
  const std::string text = chat_template.render(input);
  if (!broken_up) return tokenizer.encode(text, kRead);

  // Text between the template's special tokens that contains a mark is encoded again, without it and as plain text.
  const Encoding read = tokenizer.encode_full(text, kRead);
  std::vector<int32_t> ids, between;
  size_t from = 0;
  const auto finish = [&](size_t to) {
    std::string piece = text.substr(from, to - from);
    if (piece.find(mark) != piece.npos) {
      replace_all(piece, mark, "");
      between = tokenizer.encode(piece, kAsText);
    }
    ids.insert(ids.end(), between.begin(), between.end());
    between.clear();
  };
  for (size_t i = 0; i < read.ids.size(); ++i) {
    const auto [begin, end] = read.offsets[i];
    if (!contains_special(tokenizer, read.ids[i], std::string_view(text).substr(begin, end - begin))) {
      between.push_back(read.ids[i]);
      continue;
    }
    finish(begin);
    ids.push_back(read.ids[i]);
    from = end;
  }
  finish(text.size());
  return ids;
}

}  // namespace qkv
