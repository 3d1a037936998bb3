// From GGUF keys to the files of a folder.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/seeded_hash.h"
#include "text/tokenizer/files/base64.h"
#include "text/tokenizer/files/gguf_pre.h"
#include "text/tokenizer/files/gguf_tokenizer.h"
#include "text/tokenizer/files/tokenizer_files.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/sentencepiece/sentencepiece_model.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using TokenType = SentencePieceModel::Type;
using Ordered = nlohmann::ordered_json;

constexpr const char* kSpaceMark = "\xe2\x96\x81";  // ▁

std::string quoted(std::string_view text, const Gguf& file) {
  QKV_CHECK(is_utf8(text), file.name(), ": the token ", printable(text), " is not UTF-8, so JSON cannot hold it",
            Hint("keep the GGUF file, or take tokenizer.json of the original model"));
  return Json(text).dump();
}

// Lists are written as text: a tree of them would be too large.
class JsonOfGguf {
 public:
  explicit JsonOfGguf(const Gguf& file)
      : file_(file),
        parts_(parts_of_gguf(file)),
        kind_(file.text("tokenizer.ggml.model")),
        tokens_(file.texts("tokenizer.ggml.tokens")) {
    if (file.has("tokenizer.ggml.token_type")) types_ = file.integers("tokenizer.ggml.token_type");
    unk_ = parts_.named.unk.value_or(-1);
  }

  const TokenizerParts& parts() const { return parts_; }
  std::string_view token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }

  std::string text() const {
    Ordered normalizer, pre, decoder;
    std::string model;
    if (kind_ == "gpt2") {
      const bool named = file_.has("tokenizer.ggml.pre");
      const GgufPre cut = find_gguf_pre(named ? file_.text("tokenizer.ggml.pre") : "default").value();
      Ordered steps = Ordered::array();
      for (const std::string_view regex : cut.steps) {
        steps.push_back(
            {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}});
      }
      steps.push_back(
          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
      pre = {{"type", "Sequence"}, {"pretokenizers", steps}};
      decoder = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
      model = bpe_model(fmt::format(R"("unk_token":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":{})",
                                    cut.ignore_merges),
                        file_merges());
    } else if (kind_ == "llama") {
      normalizer = spaces();
      decoder = sentence_decoder();
      model = bpe_model(fmt::format(R"("unk_token":{},"fuse_unk":true,"byte_fallback":{},"ignore_merges":false)",
                                    quoted(token(unk_), file_), parts_.byte_tokens),
                        made_merges());
    } else {
      normalizer = unigram_normalizer();
      pre = decoder = {{"type", "Metaspace"},
                       {"replacement", kSpaceMark},
                       {"prepend_scheme", prefix() ? "always" : "never"},
                       {"split", true}};
      model = unigram_model();
    }
    return fmt::format(
        "{{\n\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":{},\n\"normalizer\":{},\n"
        "\"pre_tokenizer\":{},\n\"post_processor\":{},\n\"decoder\":{},\n\"model\":{}\n}}\n",
        added(), normalizer.dump(), pre.dump(), post().dump(), decoder.dump(), model);
  }

 private:
  TokenType type(size_t i) const {
    if (static_cast<int32_t>(i) == unk_ && kind_ != "gpt2") return TokenType::unknown;
    return types_.empty() ? TokenType::normal : static_cast<TokenType>(types_[i]);
  }
  bool is_padding(size_t i) const { return type(i) == TokenType::unused && tokens_[i] == fmt::format("[PAD{}]", i); }
  bool is_added(size_t i) const {
    return type(i) == TokenType::control || type(i) == TokenType::user_defined || type(i) == TokenType::unknown;
  }
  bool prefix() const {
    return !file_.has("tokenizer.ggml.add_space_prefix") || file_.flag("tokenizer.ggml.add_space_prefix");
  }

  std::string added() const {
    std::string out;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!is_added(i) || tokens_[i].empty()) continue;
      out += fmt::format(
          "{}\n{{\"id\":{},\"content\":{},\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
          "\"normalized\":false,\"special\":{}}}",
          out.empty() ? "" : ",", i, quoted(tokens_[i], file_), type(i) != TokenType::user_defined);
    }
    return "[" + out + "]";
  }

  // In byte-level BPE special tokens are no part of the model.
  std::string bpe_model(const std::string& options, const std::string& merges) const {
    std::string vocab;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (is_padding(i) || (kind_ == "gpt2" && is_added(i))) continue;
      vocab += fmt::format("{}{}:{}", vocab.empty() ? "" : ",", quoted(tokens_[i], file_), i);
    }
    return fmt::format("{{\"type\":\"BPE\",\"dropout\":null,{},\n\"vocab\":{{{}}},\n\"merges\":[{}]}}", options, vocab,
                       merges);
  }

  std::string file_merges() const {
    std::string out;
    for (const std::string_view line : file_.texts("tokenizer.ggml.merges")) {
      const size_t space = line.find(' ', 1);
      out += fmt::format("{}[{},{}]", out.empty() ? "" : ",", quoted(line.substr(0, space), file_),
                         quoted(line.substr(space + 1), file_));
    }
    return out;
  }

  // Every way to join two pieces into a third, best score first; of equal scores the longer left part, then right part.
  std::string made_merges() const {
    const std::vector<float> scores = file_.floats("tokenizer.ggml.scores");
    std::unordered_map<std::string_view, size_t, SeededHash> ids;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (type(i) == TokenType::normal) ids.emplace(tokens_[i], i);
    }
    struct Pair {
      size_t whole, left, right;
    };
    std::vector<Pair> pairs;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (type(i) != TokenType::normal) continue;
      const size_t first = pairs.size();
      for (size_t cut = 1; cut < tokens_[i].size(); ++cut) {
        if (is_utf8_continuation(tokens_[i][cut])) continue;
        const auto left = ids.find(tokens_[i].substr(0, cut)), right = ids.find(tokens_[i].substr(cut));
        if (left != ids.end() && right != ids.end()) pairs.push_back({i, left->second, right->second});
      }
      std::sort(pairs.begin() + static_cast<std::ptrdiff_t>(first), pairs.end(),
                [](const Pair& a, const Pair& b) { return std::tie(a.left, a.right) < std::tie(b.left, b.right); });
    }
    const auto characters = [&](size_t id) {
      return std::ranges::count_if(tokens_[id], [](char c) { return !is_utf8_continuation(c); });
    };
    std::ranges::stable_sort(pairs, [&](const Pair& a, const Pair& b) {
      return std::tuple(scores[a.whole], characters(a.left), characters(a.right)) >
             std::tuple(scores[b.whole], characters(b.left), characters(b.right));
    });
    std::string out;
    for (const Pair& pair : pairs) {
      out += fmt::format("{}[{},{}]", out.empty() ? "" : ",", quoted(tokens_[pair.left], file_),
                         quoted(tokens_[pair.right], file_));
    }
    return out;
  }

  std::string unigram_model() const {
    const std::vector<float> scores = file_.floats("tokenizer.ggml.scores");
    std::string vocab;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      vocab += fmt::format("{}[{},{}]", i == 0 ? "" : ",", quoted(tokens_[i], file_), static_cast<double>(scores[i]));
    }
    return fmt::format("{{\"type\":\"Unigram\",\"unk_id\":{},\"byte_fallback\":{},\n\"vocab\":[{}]}}", unk_,
                       parts_.byte_tokens, vocab);
  }

  Ordered spaces() const {
    Ordered steps = Ordered::array();
    if (prefix()) steps.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}});
    return {{"type", "Sequence"}, {"normalizers", steps}};
  }

  Ordered unigram_normalizer() const {
    Ordered steps = Ordered::array();
    if (file_.has("tokenizer.ggml.precompiled_charsmap")) {
      const std::string map = file_.bytes("tokenizer.ggml.precompiled_charsmap");
      if (!map.empty()) steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(map)}});
    }
    const char* const key = "tokenizer.ggml.remove_extra_whitespaces";
    if (file_.has(key) && file_.flag(key)) {
      steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
      steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", kSpaceMark}});
    }
    if (steps.empty()) return nullptr;
    return {{"type", "Sequence"}, {"normalizers", steps}};
  }

  Ordered sentence_decoder() const {
    Ordered steps = Ordered::array({{{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}}});
    if (parts_.byte_tokens) steps.push_back({{"type", "ByteFallback"}});
    steps.push_back({{"type", "Fuse"}});
    if (prefix()) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    return {{"type", "Sequence"}, {"decoders", steps}};
  }

  // The tokens around a text, as the GGUF's own reader puts them.
  Ordered post() const {
    const auto pieces = [&](const std::vector<TemplatePiece>& list, Ordered& specials) {
      Ordered out = Ordered::array();
      for (const TemplatePiece& piece : list) {
        if (piece.kind != TemplatePiece::Kind::special) {
          const bool first = piece.kind == TemplatePiece::Kind::first_text;
          out.push_back({{"Sequence", {{"id", first ? "A" : "B"}, {"type_id", piece.type_id}}}});
          continue;
        }
        const std::string& name = piece.tokens.front();
        out.push_back({{"SpecialToken", {{"id", name}, {"type_id", piece.type_id}}}});
        specials[name] = {{"id", name}, {"ids", piece.ids}, {"tokens", piece.tokens}};
      }
      return out;
    };
    Ordered specials = Ordered::object();
    const Ordered single = pieces(parts_.post.single, specials), pair = pieces(parts_.post.pair, specials);
    if (specials.empty()) return nullptr;
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
  }

  const Gguf& file_;
  TokenizerParts parts_;
  std::string kind_;
  std::vector<std::string_view> tokens_;
  std::vector<int64_t> types_;
  int32_t unk_ = -1;
};

Ordered settings_of(const Gguf& file, const JsonOfGguf& made) {
  Ordered out{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  const NamedTokens& named = made.parts().named;
  for (const auto& [role, id] : {std::pair{"bos_token", named.bos},
                                 {"eos_token", named.eos},
                                 {"pad_token", named.pad},
                                 {"unk_token", named.unk},
                                 {"sep_token", named.sep},
                                 {"cls_token", named.cls},
                                 {"mask_token", named.mask}}) {
    if (id) out[role] = made.token(*id);
  }
  const auto& single = made.parts().post.single;
  const auto has = [&](std::optional<int32_t> id) {
    return id && std::ranges::any_of(
                     single, [&](const TemplatePiece& p) { return std::ranges::find(p.ids, *id) != p.ids.end(); });
  };
  out["add_bos_token"] = has(named.bos);
  out["add_eos_token"] = has(named.eos);
  const std::string plain = "tokenizer.chat_template", list = "tokenizer.chat_templates";
  if (file.has(list)) {
    Ordered templates = Ordered::array();
    if (file.has(plain)) templates.push_back({{"name", "default"}, {"template", file.text(plain)}});
    for (const std::string_view name : file.texts(list)) {
      const std::string key = plain + "." + std::string(name);
      if (file.has(key)) templates.push_back({{"name", name}, {"template", file.text(key)}});
    }
    out["chat_template"] = templates;
  } else if (file.has(plain)) {
    out["chat_template"] = file.text(plain);
  }
  return out;
}

}  // namespace

std::vector<MadeFile> tokenizer_files_of(const Gguf& file, Notes& notes) {
  std::vector<MadeFile> out;
  Ordered generation{{"_from_model_config", true}};
  for (const auto& [theirs, ours] : {std::pair{"bos_token_id", "bos_token_id"},
                                     {"eos_token_id", "eos_token_id"},
                                     {"padding_token_id", "pad_token_id"}}) {
    const std::string key = std::string("tokenizer.ggml.") + theirs;
    if (file.has(key) && file.integer(key) >= 0 && file.integer(key) != UINT32_MAX)
      generation[ours] = file.integer(key);
  }
  out.push_back({"generation_config.json", generation.dump(2) + "\n"});
  if (!file.has("tokenizer.ggml.tokens")) {
    notes.emplace_back("the GGUF has no tokenizer, so none is written");
    return out;
  }
  const JsonOfGguf made(file);
  out.push_back({"tokenizer.json", made.text()});
  out.push_back({"tokenizer_config.json", settings_of(file, made).dump(2) + "\n"});
  return out;
}

}  // namespace qkv
