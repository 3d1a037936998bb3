// Components of tokenizer.json that act outside the model: added tokens, post-processors, truncation and padding.
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/json_members.h"
#include "base/printable.h"
#include "text/tokenizer/files/tokenizer_json.h"

namespace qkv {
namespace {

constexpr int64_t kLongestSequence = 1 << 24;  // so that padding cannot exhaust memory
constexpr size_t kMostAddedTokens = 150'000;   // one takes about 150 bytes, more than its text may have

int32_t read_id(const JsonNode& node) {
  return narrow<int32_t>(node.integer(), node.where());
}

// ["[SEP]", 102]
TemplatePiece read_special_pair(const JsonNode& node, int32_t type_id) {
  QKV_CHECK(node.size() == 2, node.where(), " has ", node.size(), " elements but must be a token and its id",
            Hint("the file is damaged"));
  return {.kind = TemplatePiece::Kind::special,
          .type_id = type_id,
          .ids = {read_id(node.at(size_t{1}))},
          .tokens = {node.at(size_t{0}).string()}};
}

TemplatePiece text_piece(TemplatePiece::Kind kind, int32_t type_id) {
  return {.kind = kind, .type_id = type_id};
}

std::vector<TemplatePiece> read_template(const JsonNode& list, const JsonNode& specials) {
  std::vector<TemplatePiece> pieces;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonNode node = list.at(i);
    if (const auto sequence = node.find("Sequence")) {
      const std::string id = sequence->at("id").string();
      QKV_CHECK(id == "A" || id == "B", sequence->where(), ".id is ", printable(id), " but must be A or B",
                Hint("the file is damaged"));
      const auto kind = id == "A" ? TemplatePiece::Kind::first_text : TemplatePiece::Kind::second_text;
      pieces.push_back(text_piece(kind, static_cast<int32_t>(read_id(sequence->at("type_id")))));
      continue;
    }
    const JsonNode special = node.at("SpecialToken");
    const JsonNode token = specials.at(special.at("id").string());
    TemplatePiece piece{.kind = TemplatePiece::Kind::special, .type_id = read_id(special.at("type_id"))};
    const JsonNode ids = token.at("ids"), tokens = token.at("tokens");
    QKV_CHECK(ids.size() == tokens.size(), token.where(), " has ", ids.size(), " ids but ", tokens.size(), " tokens",
              Hint("each id needs its token"));
    for (size_t k = 0; k < ids.size(); ++k) {
      piece.ids.push_back(read_id(ids.at(k)));
      piece.tokens.push_back(tokens.at(k).string());
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

void set_templates(const JsonNode& node, PostProcessor& post, std::vector<TemplatePiece> single,
                   std::vector<TemplatePiece> pair) {
  QKV_CHECK(post.single.empty() && post.pair.empty(), node.where(), ": a second post-processor that adds tokens",
            Hint("only one step of a Sequence may add special tokens"));
  const auto uses_second = [](const std::vector<TemplatePiece>& pieces) {
    for (const TemplatePiece& piece : pieces) {
      if (piece.kind == TemplatePiece::Kind::second_text) return true;
    }
    return false;
  };
  QKV_CHECK(!uses_second(single), node.where(), ".single names the second text B", Hint("only .pair has one"));
  post.single = std::move(single);
  post.pair = std::move(pair);
}

void read_bert(const JsonNode& node, PostProcessor& post) {
  const auto cls = read_special_pair(node.at("cls"), 0), sep = read_special_pair(node.at("sep"), 0);
  const auto second_sep = read_special_pair(node.at("sep"), 1);
  set_templates(node, post, {cls, text_piece(TemplatePiece::Kind::first_text, 0), sep},
                {cls, text_piece(TemplatePiece::Kind::first_text, 0), sep,
                 text_piece(TemplatePiece::Kind::second_text, 1), second_sep});
}

void read_roberta(const JsonNode& node, PostProcessor& post) {
  if (node.flag_or("trim_offsets", true)) {
    post.trims.push_back({.add_prefix_space = node.flag_or("add_prefix_space", true)});
  }
  const auto cls = read_special_pair(node.at("cls"), 0), sep = read_special_pair(node.at("sep"), 0);
  set_templates(node, post, {cls, text_piece(TemplatePiece::Kind::first_text, 0), sep},
                {cls, text_piece(TemplatePiece::Kind::first_text, 0), sep, sep,
                 text_piece(TemplatePiece::Kind::second_text, 0), sep});
}

Side read_side(const JsonNode& node) {
  const std::string name = node.string_or("direction", "Right");
  QKV_CHECK(name == "Right" || name == "Left", node.where(), ": unknown direction ", printable(name),
            Hint("Left or Right"));
  return name == "Right" ? Side::right : Side::left;
}

size_t read_length(const JsonNode& node) {
  const int64_t length = node.integer();
  QKV_CHECK(length >= 0 && length <= kLongestSequence, node.where(), " is ", length, " but must lie in [0, ",
            kLongestSequence, "]", Hint("the file is damaged"));
  return static_cast<size_t>(length);
}

}  // namespace

void read_post_processor(const JsonNode& node, PostProcessor& post) {
  const std::string type = type_of(node);
  if (type == "ByteLevel") {
    if (node.flag_or("trim_offsets", true)) {
      post.trims.push_back({.add_prefix_space = node.flag_or("add_prefix_space", true)});
    }
  } else if (type == "TemplateProcessing") {
    const JsonNode specials = node.at("special_tokens");
    set_templates(node, post, read_template(node.at("single"), specials), read_template(node.at("pair"), specials));
  } else if (type == "BertProcessing") {
    read_bert(node, post);
  } else if (type == "RobertaProcessing") {
    read_roberta(node, post);
  } else if (type == "Sequence") {
    const JsonNode steps = node.at("processors");
    for (size_t i = 0; i < steps.size(); ++i) read_post_processor(steps.at(i), post);
  } else {
    constexpr std::array<std::string_view, 5> kKnown{"ByteLevel", "TemplateProcessing", "BertProcessing",
                                                     "RobertaProcessing", "Sequence"};
    unknown_type(node, "post-processor", kKnown);
  }
}

Truncation read_truncation(const JsonNode& node) {
  const std::string strategy = node.string_or("strategy", "LongestFirst");
  Truncation rule{.max_length = read_length(node.at("max_length")), .direction = read_side(node)};
  if (strategy == "OnlyFirst") {
    rule.strategy = Truncation::Strategy::only_first;
  } else if (strategy == "OnlySecond") {
    rule.strategy = Truncation::Strategy::only_second;
  } else {
    QKV_CHECK(strategy == "LongestFirst", node.where(), ": unknown strategy ", printable(strategy),
              Hint("one of LongestFirst, OnlyFirst, OnlySecond"));
  }
  return rule;
}

Padding read_padding(const JsonNode& node) {
  Padding rule{.direction = read_side(node),
               .id = narrow<int32_t>(node.integer_or("pad_id", 0), node.where() + ".pad_id"),
               .type_id = narrow<int32_t>(node.integer_or("pad_type_id", 0), node.where() + ".pad_type_id"),
               .token = node.string_or("pad_token", "[PAD]")};
  const JsonNode strategy = node.at("strategy");
  if (strategy.json().is_object()) {
    rule.fixed = read_length(strategy.at("Fixed"));
  } else {
    QKV_CHECK(strategy.string() == "BatchLongest", strategy.where(), ": unknown strategy ",
              printable(strategy.string()), Hint("BatchLongest or {\"Fixed\": length}"));
  }
  if (const auto multiple = node.find("pad_to_multiple_of")) rule.multiple_of = read_length(*multiple);
  return rule;
}

std::vector<AddedToken> read_added_tokens(JsonText list, const std::string& where, const Vocab& vocab) {
  QKV_CHECK(list.items() <= kMostAddedTokens, where, " holds ", list.items(), " tokens but may hold at most ",
            kMostAddedTokens, Hint("no real file has so many: it is damaged or made to do harm"));
  std::vector<AddedToken> tokens;
  tokens.reserve(list.items());
  const size_t limit = 4 * (vocab.count() + list.items()) + 65536;
  std::vector<bool> taken(limit);
  size_t index = 0;
  scan_json_elements(list, where, [&](JsonText element) {
    const std::string here = where + "[" + std::to_string(index++) + "]";
    const Json json = parse_json(element, here);
    const JsonNode node(json, here);
    AddedToken token{.content = node.at("content").string(),
                     .single_word = node.flag_or("single_word", false),
                     .lstrip = node.flag_or("lstrip", false),
                     .rstrip = node.flag_or("rstrip", false),
                     .special = node.flag_or("special", false)};
    if (token.content.empty()) return;
    token.normalized = node.flag_or("normalized", !token.special);
    const int64_t id = node.at("id").integer();
    QKV_CHECK(id >= 0 && id < static_cast<int64_t>(limit), node.where(), ".id is ", id, " but must lie in [0, ",
              limit - 1, "]", Hint("ids count from 0 with few gaps; the file is damaged"));
    token.id = static_cast<int32_t>(id);
    QKV_CHECK(!taken[static_cast<size_t>(id)], node.where(), ": the id ", id,
              " is given to two added tokens, the second is ", printable(token.content),
              Hint("every token needs an id of its own"));
    taken[static_cast<size_t>(id)] = true;
    const int32_t in_model = vocab.find(token.content);
    QKV_CHECK(in_model < 0 || in_model == token.id, node.where(), ": ", printable(token.content), " has the id ", id,
              " here but ", in_model, " in the vocabulary", Hint("make the two equal"));
    QKV_CHECK(in_model == token.id || !vocab.has(token.id), node.where(), ": ", printable(token.content),
              " has the id ", id, " which is ", printable(vocab.token(token.id)), " in the vocabulary",
              Hint("give it an id of its own"));
    tokens.push_back(std::move(token));
  });
  return tokens;
}

}  // namespace qkv
