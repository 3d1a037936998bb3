#include "model/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_members.h"
#include "base/json_reader.h"
#include "base/printable.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargest = 100'000'000;

enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

std::string text_in(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

bool flag_in(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

[[noreturn]] void fail_damaged(const std::string& what) {
  QKV_FAIL("tokenizer.json: ", what, Hint("the file is damaged or of a kind that is not known"));
}

// --- tokens ----------------------------------------------------------------------------------------------------------

struct Tokens {
  std::vector<std::string> texts;
  std::vector<int32_t> types;

  explicit Tokens(int64_t count) : types(static_cast<size_t>(count), kUnused) {
    for (int64_t i = 0; i < count; ++i) texts.push_back("[PAD" + std::to_string(i) + "]");
  }
  void set(int64_t number, const std::string& text, int32_t type) {
    QKV_CHECK(number >= 0 && number < static_cast<int64_t>(texts.size()), "tokenizer.json: token ", printable(text),
              " has the id ", number, " but the model has ", texts.size(), " tokens",
              Hint("the tokenizer belongs to another model"));
    texts[static_cast<size_t>(number)] = text;
    types[static_cast<size_t>(number)] = type;
  }
};

bool is_byte_token(const std::string& text) {
  return text.size() == 6 && text.starts_with("<0x") && text.back() == '>';
}

// tokenizer.json without its long lists, which are kept as text: a tree of them would be too large.
struct TokenizerFile {
  std::string text;
  Json steps = Json::object(), model = Json::object();
  JsonText vocab, merges, added;

  explicit TokenizerFile(const fs::path& path) : text(read_file(path, kLargest)) {
    scan_json_members(text, kName, [&](const std::string& key, JsonText value) {
      if (key == "added_tokens") {
        added = value;
      } else if (key == "model") {
        scan_json_members(value, kName, [&](const std::string& name, JsonText part) {
          if (name == "vocab" || name == "merges") {
            (name == "vocab" ? vocab : merges) = part;
          } else {
            model[name] = parse_json(part, kName);
          }
        });
      } else if (key == "normalizer" || key == "pre_tokenizer") {
        steps[key] = parse_json(value, kName);
      }
    });
  }
  static constexpr const char* kName = "tokenizer.json";
};

JsonReader reader_of(JsonText list, JsonReader::Kind kind, const char* wrong) {
  JsonReader in(list, TokenizerFile::kName);
  if (list.text().empty() || in.kind() != kind) fail_damaged(wrong);
  return in;
}

Tokens read_tokens(const TokenizerFile& file, const ModelSpec& spec) {
  Tokens tokens(spec.vocabulary);
  const bool bytes = flag_in(file.model, "byte_fallback");
  JsonReader in = reader_of(file.vocab, JsonReader::Kind::object, "'vocab' must be an object");
  in.members([&](std::string_view key) {
    const std::string text(key);
    const JsonNumber id = in.number();
    if (id.kind != JsonNumber::Kind::integer) fail_damaged("the id of " + printable(text) + " is no whole number");
    tokens.set(id.integer, text, bytes && is_byte_token(text) ? kByte : kNormal);
  });
  const std::string unknown = text_in(file.model, "unk_token");
  if (file.added.text().empty() || file.added.text() == "null") return tokens;
  scan_json_elements(file.added, TokenizerFile::kName, [&](JsonText element) {
    const Json token = parse_json(element, TokenizerFile::kName);
    const std::string text = text_in(token, "content");
    const Json* id = member(token, "id");
    if (id == nullptr || !id->is_number_integer()) fail_damaged("the id of " + printable(text) + " is no whole number");
    const bool byte = bytes && is_byte_token(text);
    tokens.set(id->get<int64_t>(), text,
               byte                        ? kByte
               : text == unknown           ? kUnknown
               : flag_in(token, "special") ? kControl
                                           : kUserDefined);
  });
  return tokens;
}

std::vector<std::string> read_merges(JsonText list) {
  JsonReader in = reader_of(list, JsonReader::Kind::array, "'merges' must be a list");
  std::vector<std::string> out;
  out.reserve(list.items());
  std::string spare;
  in.elements([&] {
    if (in.kind() == JsonReader::Kind::string) {
      out.emplace_back(in.string(spare));
      return;
    }
    std::string pair;
    size_t parts = 0;
    in.elements([&] {
      pair += (parts++ == 0 ? "" : " ");
      pair += in.string(spare);
    });
    if (parts != 2) fail_damaged("a merge has " + std::to_string(parts) + " parts but must be a pair");
    out.push_back(std::move(pair));
  });
  return out;
}

// SentencePiece joins the pair with the highest score: earlier merges get higher scores.
std::vector<float> scores_from_merges(const Tokens& tokens, const std::vector<std::string>& merges) {
  std::map<std::string, float, std::less<>> made;
  for (size_t i = 0; i < merges.size(); ++i) {
    const size_t space = merges[i].find(' ', 1);
    if (space == std::string::npos) fail_damaged("a merge is " + printable(merges[i]) + " but must be a pair");
    made.try_emplace(merges[i].substr(0, space) + merges[i].substr(space + 1), -static_cast<float>(i));
  }
  std::vector<float> scores;
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const auto at = made.find(tokens.texts[i]);
    scores.push_back(at != made.end()             ? at->second
                     : tokens.types[i] == kNormal ? -static_cast<float>(merges.size())
                                                  : 0);
  }
  return scores;
}

// --- pre-tokenization ------------------------------------------------------------------------------------------------

struct Cut {
  bool byte_level = false;
  bool own_pattern = false;           // the byte-level step splits by GPT-2's pattern
  std::vector<std::string> patterns;  // of the steps before it
};

void read_cut(const Json& step, Cut& cut) {
  const std::string type = text_in(step, "type");
  if (type == "Sequence") {
    if (const Json* steps = member(step, "pretokenizers"); steps != nullptr && steps->is_array()) {
      for (const Json& one : *steps) {
        if (text_in(one, "type") != "Sequence") read_cut(one, cut);
      }
    }
  } else if (type == "ByteLevel") {
    cut.byte_level = true;
    cut.own_pattern = member(step, "use_regex") == nullptr || flag_in(step, "use_regex");
  } else if (type == "Split") {
    const Json* pattern = member(step, "pattern");
    cut.patterns.push_back(pattern == nullptr ? "" : text_in(*pattern, "Regex"));
  }
}

// llama.cpp's name of the pre-tokenizer; "" if none is known.
std::string name_of(const Cut& cut, bool ignores_merges) {
  if (cut.patterns.empty()) return cut.own_pattern ? "gpt-2" : "";
  static const std::string kWords = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)",
                           kRest = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string& first = cut.patterns.front();
  if (cut.patterns.size() == 1) {
    if (first == kWords + R"(\p{N}{1,3})" + kRest) return ignores_merges ? "llama-bpe" : "dbrx";
    if (first == kWords + R"(\p{N})" + kRest) return "qwen2";
    if (first.starts_with(R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"))
      return "gpt-4o";
  }
  if (cut.patterns.size() == 3 && first == R"(\p{N}{1,3})" && cut.patterns[1].starts_with("[一-龥"))
    return "deepseek-v3";
  return "";
}

bool prepends_space(const Json& tokenizer) {
  for (const char* key : {"normalizer", "pre_tokenizer"}) {
    const Json* step = member(tokenizer, key);
    if (step == nullptr) continue;
    Json steps = Json::array({*step});
    if (const Json* list = member(*step, "normalizers"); list != nullptr && list->is_array()) steps = *list;
    for (const Json& one : steps) {
      const std::string type = text_in(one, "type");
      if (type == "Prepend" || (type == "Metaspace" && text_in(one, "prepend_scheme") != "never")) return true;
    }
  }
  return false;
}

// --- the whole tokenizer ---------------------------------------------------------------------------------------------

void add_special_ids(GgufMetadata& out, const ModelSpec& spec) {
  const auto add = [&](const char* key, std::optional<int32_t> id) {
    if (id) out.add_u32(std::string("tokenizer.ggml.") + key, static_cast<uint32_t>(*id));
  };
  add("bos_token_id", spec.tokens.bos);
  if (!spec.tokens.eos.empty()) add("eos_token_id", spec.tokens.eos.front());
  add("padding_token_id", spec.tokens.pad);
}

void add_settings(GgufMetadata& out, const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  const std::string text = read_file(path, kLargest), name = path.filename().string();
  Json settings = Json::object();
  scan_json_members(text, name, [&](const std::string& key, JsonText value) {
    if (key != "added_tokens_decoder") settings[key] = parse_json(value, name);
  });
  for (const char* key : {"add_bos_token", "add_eos_token"}) {
    const Json* value = member(settings, key);
    if (value != nullptr && value->is_boolean()) out.add_flag(std::string("tokenizer.ggml.") + key, value->get<bool>());
  }
  const std::string chat = text_in(settings, "chat_template");
  if (!chat.empty()) out.add_text("tokenizer.chat_template", chat);
}

std::string add_none(GgufMetadata& out, const ModelSpec& spec, const std::string& why) {
  out.add_text("tokenizer.ggml.model", "none");
  add_special_ids(out, spec);
  return why + ": the GGUF has no tokenizer, so nothing can read text with it";
}

}  // namespace

std::string add_tokenizer_keys(GgufMetadata& out, const fs::path& folder, const ModelSpec& spec) {
  std::error_code ignored;
  if (folder.empty() || !fs::exists(folder / "tokenizer.json", ignored)) {
    return add_none(out, spec, "the model has no tokenizer.json");
  }
  const TokenizerFile file(folder / "tokenizer.json");
  if (file.model.empty()) fail_damaged("has no 'model'");
  Cut cut;
  if (const Json* step = member(file.steps, "pre_tokenizer")) read_cut(*step, cut);
  const bool falls_back = flag_in(file.model, "byte_fallback");
  const std::string type = text_in(file.model, "type");
  if (type != "BPE" || (!cut.byte_level && !falls_back)) {
    return add_none(out, spec, "tokenizer.json is of the kind " + printable(type) + ", not BPE over bytes");
  }
  const Tokens tokens = read_tokens(file, spec);
  const std::vector<std::string> merges = read_merges(file.merges);
  std::string pre = cut.byte_level ? name_of(cut, flag_in(file.model, "ignore_merges")) : "default", note;
  if (pre.empty()) {
    pre = "default";
    note =
        "tokenizer.json cuts text by a pattern that has no name in llama.cpp: its default is written, which may "
        "give other tokens";
  }
  out.add_text("tokenizer.ggml.model", cut.byte_level ? "gpt2" : "llama");
  out.add_text("tokenizer.ggml.pre", pre);
  out.add_texts("tokenizer.ggml.tokens", tokens.texts);
  if (!cut.byte_level) out.add_f32s("tokenizer.ggml.scores", scores_from_merges(tokens, merges));
  out.add_i32s("tokenizer.ggml.token_type", tokens.types);
  if (cut.byte_level) {
    out.add_texts("tokenizer.ggml.merges", merges);
  } else {
    out.add_flag("tokenizer.ggml.add_space_prefix", prepends_space(file.steps));
    const auto unknown = std::find(tokens.types.begin(), tokens.types.end(), kUnknown);
    if (unknown != tokens.types.end()) {
      out.add_u32("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(unknown - tokens.types.begin()));
    }
  }
  add_special_ids(out, spec);
  add_settings(out, folder / "tokenizer_config.json");
  return note;
}

}  // namespace qkv
