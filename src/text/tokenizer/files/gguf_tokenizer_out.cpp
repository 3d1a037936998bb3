// From a folder to GGUF keys.
#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_members.h"
#include "base/json_reader.h"
#include "base/path.h"
#include "base/printable.h"
#include "text/tokenizer/files/base64.h"
#include "text/tokenizer/files/gguf_pre.h"
#include "text/tokenizer/files/gguf_tokenizer.h"
#include "text/tokenizer/files/tokenizer_files.h"
#include "text/tokenizer/files/tokenizer_json.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/sentencepiece/sentencepiece_model.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using TokenType = SentencePieceModel::Type;

const Json* member_of(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

std::string text_in(const Json& object, const char* key) {
  const Json* value = member_of(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

bool flag_in(const Json& object, const char* key) {
  const Json* value = member_of(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

[[noreturn]] void fail_not_read(const std::string& what) {
  QKV_FAIL("tokenizer.json: ", what, Hint("the file is damaged or of a kind that is not known"));
}

// --- the tokens ------------------------------------------------------------------------------------------------------

// As many as the model has; those no file names are padding.
struct OutTokens {
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  std::vector<float> scores;

  explicit OutTokens(int64_t count) {
    for (int64_t i = 0; i < count; ++i) texts.push_back("[PAD" + std::to_string(i) + "]");
    types.assign(texts.size(), static_cast<int32_t>(TokenType::unused));
  }
  void set(int64_t id, std::string_view text, TokenType type, const char* file = "tokenizer.json") {
    QKV_CHECK(id >= 0 && id < static_cast<int64_t>(texts.size()), file, ": token ", printable(text), " has the id ", id,
              " but the model has ", texts.size(), " tokens", Hint("the tokenizer belongs to another model"));
    texts[static_cast<size_t>(id)] = text;
    types[static_cast<size_t>(id)] = static_cast<int32_t>(type);
  }
  std::optional<int32_t> find(std::string_view text) const {
    const auto at = std::ranges::find(texts, text);
    if (at == texts.end()) return std::nullopt;
    return static_cast<int32_t>(at - texts.begin());
  }
};

// tokenizer.json with its long lists as text: a tree of them would be too large.
struct SourceFile {
  std::string text;
  Json steps = Json::object(), model = Json::object();
  JsonText vocab, merges, added;

  explicit SourceFile(const fs::path& path) : text(read_file(path, kLargestTokenizerFile)) {
    scan_json_members(text, kName, [&](const std::string& key, JsonText value) {
      if (key == "added_tokens" && value.text() != "null") added = value;
      if (key == "normalizer" || key == "pre_tokenizer") steps[key] = parse_json(value, kName);
      if (key != "model") return;
      scan_json_members(value, kName, [&](const std::string& name, JsonText part) {
        if (name == "vocab" || name == "merges") {
          (name == "vocab" ? vocab : merges) = part;
        } else {
          model[name] = parse_json(part, kName);
        }
      });
    });
    if (vocab.text().empty()) fail_not_read("has no 'model' with a 'vocab'");
  }
  static constexpr const char* kName = "tokenizer.json";
};

// Tokens of a file beyond its model's vocabulary.
void set_added(OutTokens& tokens, JsonText list, const std::string& unknown, bool bytes) {
  if (list.text().empty()) return;
  scan_json_elements(list, SourceFile::kName, [&](JsonText element) {
    const Json token = parse_json(element, SourceFile::kName);
    const std::string text = text_in(token, "content");
    const Json* id = member_of(token, "id");
    if (id == nullptr || !id->is_number_integer())
      fail_not_read("the id of added token " + printable(text) + " is no whole number");
    tokens.set(id->get<int64_t>(), text,
               bytes && byte_of_token(text) >= 0 ? TokenType::byte
               : text == unknown                 ? TokenType::unknown
               : flag_in(token, "special")       ? TokenType::control
                                                 : TokenType::user_defined);
  });
}

void set_vocab(OutTokens& tokens, JsonText list, bool bytes) {
  const Vocab vocab = read_vocab(list, "tokenizer.json: model.vocab");
  for (int32_t id = 0; id < vocab.size(); ++id) {
    if (!vocab.has(id)) continue;
    const bool byte = bytes && byte_of_token(vocab.token(id)) >= 0;
    tokens.set(id, vocab.token(id), byte ? TokenType::byte : TokenType::normal);
  }
}

// SentencePiece joins the pair with the highest score: earlier merges get higher scores.
void set_scores(OutTokens& tokens, JsonText merges) {
  std::map<std::string, float, std::less<>> made;
  give_merges(merges, "tokenizer.json: model.merges",
              [&](std::string_view left, std::string_view right, uint32_t rank) {
                made.try_emplace(std::string(left) + std::string(right), -static_cast<float>(rank));
              });
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const auto at = made.find(tokens.texts[i]);
    const bool normal = tokens.types[i] == static_cast<int32_t>(TokenType::normal);
    tokens.scores.push_back(at != made.end() ? at->second : normal ? -static_cast<float>(merges.items()) : 0);
  }
}

void set_unigram(OutTokens& tokens, JsonText list, int64_t unk_id, bool bytes) {
  tokens.scores.assign(tokens.texts.size(), 0);
  int64_t id = 0;
  scan_json_elements(list, SourceFile::kName, [&](JsonText element) {
    const Json pair = parse_json(element, SourceFile::kName);
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number()) {
      fail_not_read("model.vocab[" + std::to_string(id) + "] is not a piece and its score");
    }
    const auto text = pair[0].get<std::string>();
    tokens.set(id, text,
               id == unk_id                        ? TokenType::unknown
               : bytes && byte_of_token(text) >= 0 ? TokenType::byte
                                                   : TokenType::normal);
    tokens.scores[static_cast<size_t>(id++)] = pair[1].get<float>();
  });
}

// --- steps of tokenizer.json -----------------------------------------------------------------------------------------

// A step, or the steps of a sequence.
Json flat(const Json* step, const char* list) {
  Json out = Json::array();
  if (step == nullptr) return out;
  if (text_in(*step, "type") != "Sequence") return Json::array({*step});
  if (const Json* steps = member_of(*step, list)) {
    for (const Json& one : *steps) {
      for (const Json& inner : flat(&one, list)) out.push_back(inner);
    }
  }
  return out;
}

struct OutSteps {
  bool byte_level = false, prefix = false;
  std::vector<std::string> patterns;
  std::string charsmap;
  bool remove_spaces = false;
  std::string lost;  // normalizers GGUF cannot say

  explicit OutSteps(const Json& steps) {
    for (const Json& step : flat(member_of(steps, "pre_tokenizer"), "pretokenizers")) {
      const std::string type = text_in(step, "type");
      if (type == "ByteLevel") {
        byte_level = true;
        if (member_of(step, "use_regex") == nullptr || flag_in(step, "use_regex")) {
          patterns.emplace_back(pattern_regexes(Pattern::gpt2)[0]);
        }
      } else if (type == "Split") {
        const Json* pattern = member_of(step, "pattern");
        patterns.push_back(pattern == nullptr ? "" : text_in(*pattern, "Regex"));
      } else if (type == "Digits") {
        patterns.emplace_back(flag_in(step, "individual_digits") ? R"(\p{N})" : R"(\p{N}+)");
      } else if (type == "Metaspace") {
        prefix = prefix || text_in(step, "prepend_scheme") != "never";
      } else {
        patterns.emplace_back(type);  // no pattern of a known name
      }
    }
    for (const Json& step : flat(member_of(steps, "normalizer"), "normalizers")) {
      const std::string type = text_in(step, "type");
      const std::string regex = type == "Replace" ? text_in(step.value("pattern", Json()), "Regex") : "";
      const bool to_mark = type == "Replace" && regex.empty() && text_in(step, "content") == "\xe2\x96\x81";
      if (type == "Prepend") {
        prefix = true;
      } else if (type == "Precompiled") {
        charsmap = decode_base64(text_in(step, "precompiled_charsmap"), "tokenizer.json: precompiled_charsmap");
      } else if (type == "Strip" || regex == " {2,}") {
        remove_spaces = true;
      } else if (!to_mark) {
        lost += (lost.empty() ? "" : ", ") + type;
      }
    }
  }
};

// --- settings --------------------------------------------------------------------------------------------------------

class OutSettings {
 public:
  OutSettings(GgufMetadata& out, const fs::path& folder, Notes& notes) : out_(out), folder_(folder), notes_(notes) {
    for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {  // the second wins
      if (is_there(folder / name)) settings_.update(read_tokenizer_settings(folder / name));
    }
  }

  void add_ids(const OutTokens* tokens, const ModelTokens& model) {
    const auto named = [&](const char* role) -> std::optional<int32_t> {
      const Json* value = member_of(settings_, role);
      if (value == nullptr || tokens == nullptr) return std::nullopt;
      return tokens->find(value->is_object()   ? text_in(*value, "content")
                          : value->is_string() ? value->get<std::string>()
                                               : "");
    };
    const auto add = [&](const char* key, std::optional<int32_t> id) {
      if (id) out_.add_u32(std::string("tokenizer.ggml.") + key, static_cast<uint32_t>(*id));
    };
    const auto first_of = [](std::optional<int32_t> a, std::optional<int32_t> b) { return a ? a : b; };
    bos_ = first_of(named("bos_token"), model.bos);
    eos_ = named("eos_token");
    if (!eos_ && !model.eos.empty()) eos_ = model.eos.front();
    add("bos_token_id", bos_);
    add("eos_token_id", eos_);
    add("padding_token_id", first_of(named("pad_token"), model.pad));
    if (tokens != nullptr) {
      const auto type = static_cast<int32_t>(TokenType::unknown);
      const auto marked = std::ranges::find(tokens->types, type);
      const std::optional<int32_t> unknown =
          marked == tokens->types.end() ? named("unk_token") : static_cast<int32_t>(marked - tokens->types.begin());
      add("unknown_token_id", unknown);
    }
    add("seperator_token_id", named("sep_token"));  // llama.cpp's spelling
    add("mask_token_id", named("mask_token"));
    std::string others;
    for (const int32_t id : model.eos) {
      if (id != eos_) others += (others.empty() ? "" : ", ") + std::to_string(id);
    }
    if (!others.empty()) {
      notes_.push_back("the model's config also ends texts at " + others + ": GGUF holds one end token, " +
                       std::to_string(eos_.value_or(-1)));
    }
  }

  // What the tokenizer puts around a text, unless the settings say it.
  void add_flags() {
    std::vector<int32_t> around;
    try {
      around = Tokenizer::load(folder_).encode("");
    } catch (const Error& error) {
      notes_.push_back("the tokenizer cannot be tried, so GGUF does not say what is put around texts: " +
                       error.message());
      return;
    }
    const bool bos = bos_ && !around.empty() && around.front() == *bos_;
    const bool eos = eos_ && around.size() > (bos ? 1U : 0U) && around.back() == *eos_;
    if (around.size() > (bos ? 1U : 0U) + (eos ? 1U : 0U)) {
      notes_.emplace_back("the tokenizer puts other tokens than begin and end around texts, which GGUF cannot say");
    }
    for (const auto& [key, found] : {std::pair{"add_bos_token", bos}, std::pair{"add_eos_token", eos}}) {
      const Json* value = member_of(settings_, key);
      out_.add_flag(std::string("tokenizer.ggml.") + key,
                    value != nullptr && value->is_boolean() ? value->get<bool>() : found);
    }
  }

  void add_chat() {
    const Json* value = member_of(settings_, "chat_template");
    std::map<std::string, std::string> named;
    if (value != nullptr && value->is_string()) named["default"] = value->get<std::string>();
    if (value != nullptr && value->is_array()) {
      for (const Json& one : *value) named[text_in(one, "name")] = text_in(one, "template");
    }
    if (is_there(folder_ / "chat_template.jinja")) {
      named["default"] = read_file(folder_ / "chat_template.jinja", kLargestTokenizerFile);
    }
    std::vector<std::string> names;
    for (const auto& [name, text] : named) {
      if (name.empty() || text.empty()) continue;
      out_.add_text(name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + name, text);
      if (name != "default") names.push_back(name);
    }
    if (!names.empty()) out_.add_texts("tokenizer.chat_templates", names);
  }

 private:
  GgufMetadata& out_;
  const fs::path& folder_;
  Notes& notes_;
  Json settings_ = Json::object();
  std::optional<int32_t> bos_, eos_;
};

void add_lists(GgufMetadata& out, const OutTokens& tokens) {
  out.add_texts("tokenizer.ggml.tokens", tokens.texts);
  if (!tokens.scores.empty()) out.add_f32s("tokenizer.ggml.scores", tokens.scores);
  out.add_i32s("tokenizer.ggml.token_type", tokens.types);
}

void add_spaces(GgufMetadata& out, bool prefix, bool removes, const std::string& charsmap) {
  out.add_flag("tokenizer.ggml.add_space_prefix", prefix);
  out.add_flag("tokenizer.ggml.remove_extra_whitespaces", removes);
  if (!charsmap.empty()) out.add_bytes("tokenizer.ggml.precompiled_charsmap", charsmap);
}

// --- the two kinds of files ------------------------------------------------------------------------------------------

// False, with a note, if GGUF cannot hold it.
bool add_json(GgufMetadata& out, const fs::path& file, OutTokens& tokens, Notes& notes) {
  const SourceFile source(file);
  const OutSteps steps(source.steps);
  const std::string type = text_in(source.model, "type");
  const bool bytes = flag_in(source.model, "byte_fallback"), unigram = type == "Unigram";
  if (!unigram && (type != "BPE" || (!steps.byte_level && !bytes))) {
    notes.push_back("tokenizer.json is of the kind " + printable(type) + ", not BPE over bytes or Unigram");
    return false;
  }
  if (unigram) {
    const Json* unk = member_of(source.model, "unk_id");
    set_unigram(tokens, source.vocab, unk != nullptr && unk->is_number_integer() ? unk->get<int64_t>() : -1, bytes);
    set_added(tokens, source.added, unk != nullptr ? tokens.texts[unk->get<size_t>()] : "", bytes);
  } else {
    set_vocab(tokens, source.vocab, bytes);
    set_added(tokens, source.added, text_in(source.model, "unk_token"), bytes);
    if (!steps.byte_level) set_scores(tokens, source.merges);
  }
  out.add_text("tokenizer.ggml.model", unigram ? "t5" : steps.byte_level ? "gpt2" : "llama");
  std::string_view pre = "default";
  if (!unigram && steps.byte_level) {
    pre = gguf_pre_of(steps.patterns, flag_in(source.model, "ignore_merges"));
    if (pre.empty()) {
      pre = "default";
      notes.emplace_back(
          "tokenizer.json cuts text by a pattern that has no name in llama.cpp: its default is written, "
          "which may give other tokens");
    }
  }
  out.add_text("tokenizer.ggml.pre", pre);
  add_lists(out, tokens);
  if (!unigram && steps.byte_level) {
    std::vector<std::string> merges;
    merges.reserve(source.merges.items());
    give_merges(source.merges, "tokenizer.json: model.merges",
                [&](std::string_view left, std::string_view right, uint32_t) {
                  merges.push_back(std::string(left) + " " + std::string(right));
                });
    out.add_texts("tokenizer.ggml.merges", merges);
  } else {
    add_spaces(out, steps.prefix, steps.remove_spaces, steps.charsmap);
  }
  if (!steps.lost.empty()) {
    notes.push_back("tokenizer.json changes text before it is cut (" + steps.lost +
                    "), which GGUF cannot say: such texts get other tokens");
  }
  return true;
}

bool add_sentencepiece(GgufMetadata& out, const fs::path& folder, OutTokens& tokens, Notes& notes) {
  const fs::path file = folder / "tokenizer.model";
  const SentencePieceModel model = SentencePieceModel::parse(read_file(file, kLargestTokenizerFile), file.string());
  const bool bpe = model.kind == SentencePieceModel::Kind::bpe;
  if (!bpe && model.kind != SentencePieceModel::Kind::unigram) {
    notes.emplace_back("tokenizer.model looks words or characters up, which GGUF cannot hold");
    return false;
  }
  tokens.scores.assign(tokens.texts.size(), -1000);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const auto& piece = model.pieces[i];
    tokens.set(static_cast<int64_t>(i), piece.text, piece.type, "tokenizer.model");
    tokens.scores[i] = piece.score;
  }
  if (is_there(folder / "added_tokens.json")) {
    const std::string text = read_file(folder / "added_tokens.json", kLargestTokenizerFile);
    parse_json_members(text, "added_tokens.json", [&](const std::string& token, const Json& id) {
      if (!id.is_number_integer())
        fail_not_read("added_tokens.json: the id of " + printable(token) + " is no whole number");
      if (id.get<int64_t>() >= static_cast<int64_t>(model.pieces.size())) {
        tokens.set(id.get<int64_t>(), token, TokenType::user_defined, "added_tokens.json");
      }
    });
  }
  out.add_text("tokenizer.ggml.model", bpe ? "llama" : "t5");
  out.add_text("tokenizer.ggml.pre", "default");
  add_lists(out, tokens);
  add_spaces(out, model.add_dummy_prefix, model.remove_extra_whitespaces, model.charsmap_bytes);
  return true;
}

}  // namespace

Notes add_gguf_tokenizer(GgufMetadata& out, const fs::path& folder, const ModelTokens& model) {
  Notes notes;
  OutTokens tokens(model.vocabulary);
  bool added = false;
  if (!folder.empty() && is_there(folder / "tokenizer.json")) {
    added = add_json(out, folder / "tokenizer.json", tokens, notes);
  } else if (!folder.empty() && is_there(folder / "tokenizer.model") && !is_tiktoken_file(folder / "tokenizer.model")) {
    added = add_sentencepiece(out, folder, tokens, notes);
  } else {
    notes.emplace_back("the model has no tokenizer.json and no SentencePiece tokenizer.model");
  }
  if (!added) {
    out.add_text("tokenizer.ggml.model", "none");
    notes.back() += ": the GGUF has no tokenizer, so nothing can read text with it";
  }
  OutSettings settings(out, folder, notes);
  settings.add_ids(added ? &tokens : nullptr, model);
  if (added) {
    settings.add_flags();
    settings.add_chat();
  }
  return notes;
}

}  // namespace qkv
