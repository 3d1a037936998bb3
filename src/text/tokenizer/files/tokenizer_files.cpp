#include "text/tokenizer/files/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_members.h"
#include "base/json_reader.h"
#include "base/path.h"
#include "base/printable.h"
#include "io/gguf.h"
#include "text/tokenizer/files/tokenizer_json.h"
#include "text/tokenizer/models/bpe.h"
#include "text/tokenizer/models/word_models.h"
#include "text/tokenizer/sentencepiece/sentencepiece.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kLimits{.depth = 64, .bytes = kLargestTokenizerFile};

// The first bytes of a file.
std::string read_start(const fs::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes().first(std::min<size_t>(file.bytes().size(), 1024));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// The lines without their ends.
void for_lines(std::string_view text, FunctionRef<void(std::string_view)> take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    take(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

int32_t find_token(const TokenizerParts& parts, std::string_view content) {
  for (const AddedToken& token : parts.added) {
    if (token.content == content) return token.id;
  }
  return parts.model->vocab().find(content);
}

void add_special(TokenizerParts& parts, std::string_view content) {
  const int32_t id = parts.model->vocab().find(content);
  if (id >= 0) {
    parts.added.push_back({.id = id, .content = std::string(content), .normalized = false, .special = true});
  }
}

TemplatePiece special_piece(const Vocab& vocab, std::string_view token, int32_t type_id) {
  const int32_t id = vocab.find(token);
  QKV_CHECK(id >= 0, "vocab.txt has no token ", token, Hint("BERT puts it around every text; is this BERT's file?"));
  return {.kind = TemplatePiece::Kind::special, .type_id = type_id, .ids = {id}, .tokens = {std::string(token)}};
}

// SentencePiece itself adds no special tokens; models trained with it do, as their configuration says.
void put_around(const fs::path& folder, TokenizerParts& parts) {
  if (!is_there(folder / "tokenizer_config.json")) return;
  const fs::path file = folder / "tokenizer_config.json";
  const Json settings = read_tokenizer_settings(file);
  const JsonNode config(settings, file.string());
  const auto named_class = config.find("tokenizer_class");
  const std::string name = named_class ? named_class->string() : "";
  const auto special = [&](const char* flag, bool otherwise, std::optional<int32_t> id) {
    if (!config.flag_or(flag, otherwise) || !id) return;
    const std::string token(parts.model->vocab().token(*id));
    parts.post.single.push_back({.kind = TemplatePiece::Kind::special, .ids = {*id}, .tokens = {token}});
  };
  special("add_bos_token", name.starts_with("Llama"), parts.named.bos);
  parts.post.single.push_back({.kind = TemplatePiece::Kind::first_text});
  special("add_eos_token", name.starts_with("T5"), parts.named.eos);
}

// Two formats use the extension .model: SentencePiece and, for Llama 3, tiktoken.
TokenizerParts parts_of_model_file(const fs::path& file) {
  if (is_tiktoken_file(file)) return parts_of_tiktoken(file);
  TokenizerParts parts = parts_of_sentencepiece_file(file);
  put_around(file.parent_path(), parts);
  return parts;
}

}  // namespace

bool is_tiktoken_file(const fs::path& file) {
  return is_tiktoken(read_start(file));
}

Json read_tokenizer_settings(const fs::path& path) {
  const std::string name = path.string(), text = read_file(path, kLargestTokenizerFile);
  Json out = Json::object();
  scan_json_members(text, name, [&](const std::string& key, JsonText value) {
    if (key != "added_tokens_decoder") out[key] = parse_json(value, name, kLimits);
  });
  return out;
}

// The lists of tokens and merges are read from their text, after the rest: they depend on it and on each other.
TokenizerParts parts_of_json(std::string_view text, std::string_view what) {
  JsonText vocab, merges, added;
  Json json = Json::object();
  constexpr std::array<std::string_view, 6> kSteps{"normalizer", "pre_tokenizer", "post_processor",
                                                   "truncation", "padding",       "decoder"};
  scan_json_members(text, what, [&](const std::string& key, JsonText value) {
    if (key == "added_tokens") {
      added = value;
    } else if (std::ranges::find(kSteps, key) != kSteps.end() || (key == "model" && !value.text().starts_with('{'))) {
      json[key] = parse_json(value, what, kLimits);
    } else if (key == "model") {
      Json& model = json[key] = Json::object();
      scan_json_members(value, what, [&](const std::string& name, JsonText part) {
        if (name == "vocab" || name == "merges") {
          (name == "vocab" ? vocab : merges) = part;
        } else {
          model[name] = parse_json(part, what, kLimits);
        }
      });
    }
  });
  const JsonNode root(json, std::string(what));
  const auto pre_tokenizer = root.find("pre_tokenizer");
  const bool byte_letters = pre_tokenizer && ends_in_byte_level(*pre_tokenizer);
  const std::string merges_name = std::string(what) + ": model.merges";
  const auto give = [&](Bpe::TakeMerge take) { give_merges(merges, merges_name, take); };
  auto [model, reads_bytes] = read_model(root.at("model"), {.vocab = vocab,
                                                            .merges = {merges.items(), give},
                                                            .has_merges = merges.items() > 0,
                                                            .byte_letters = byte_letters});

  TokenizerParts parts{.what = std::string(what), .accepts_raw_bytes = reads_bytes};
  parts.model = std::move(model);
  if (const auto node = root.find("normalizer")) parts.normalizer = read_normalizer(*node);
  if (pre_tokenizer) parts.pre_tokenizer = read_pre_tokenizer(*pre_tokenizer, {.raw_bytes = reads_bytes});
  if (const auto node = root.find("post_processor")) read_post_processor(*node, parts.post);
  if (const auto node = root.find("truncation")) parts.post.truncation = read_truncation(*node);
  if (const auto node = root.find("padding")) parts.post.padding = read_padding(*node);
  if (const auto node = root.find("decoder")) {
    parts.decoder = read_decoder(*node);
    parts.byte_tokens = has_byte_fallback(*node);
  }
  if (!added.text().empty() && added.text() != "null") {
    parts.added = read_added_tokens(added, std::string(what) + ": added_tokens", parts.model->vocab());
  }
  return parts;
}

TokenizerParts parts_of_vocab_and_merges(const fs::path& vocab_file, const fs::path& merges_file) {
  const std::string name = vocab_file.string();
  const std::string vocab_text = read_file(vocab_file, kLargestTokenizerFile);
  JsonReader vocab(vocab_text, name, {.bytes = kLargestTokenizerFile});
  const JsonText whole = vocab.skip();
  vocab.end();
  const std::string merges_text = read_file(merges_file, kLargestTokenizerFile);
  const std::string both = name + " with " + merges_file.filename().string();
  const auto give = [&](Bpe::TakeMerge take) {
    uint32_t rank = 0;
    for_lines(merges_text, [&](std::string_view line) {
      if (line.empty() || line.starts_with("#version")) return;
      const size_t space = line.find(' ');
      QKV_CHECK(space != line.npos && line.find(' ', space + 1) == line.npos, both, ".merges[", rank,
                "] is not two tokens", Hint("each line is two tokens with a space between"));
      take(line.substr(0, space), line.substr(space + 1), rank++);
    });
  };
  const Json options{{"type", "BPE"}};
  const auto lines = static_cast<size_t>(std::ranges::count(merges_text, '\n')) + 1;
  auto [model, reads_bytes] = read_model(
      JsonNode(options, both), {.vocab = whole, .merges = {lines, give}, .has_merges = true, .byte_letters = true});
  TokenizerParts parts{.what = name, .accepts_raw_bytes = reads_bytes};
  parts.model = std::move(model);
  parts.pre_tokenizer =
      byte_level_pre_tokenizer({.add_prefix_space = false, .use_regex = true, .to_letters = !reads_bytes});
  parts.decoder = byte_level_decoder();
  add_special(parts, "<|endoftext|>");
  return parts;
}

TokenizerParts parts_of_vocab_txt(const fs::path& file, bool lowercase) {
  const std::string text = read_file(file, kLargestTokenizerFile);
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n')) + 1;
  Vocab vocab;
  vocab.reserve(lines, text.size() - std::min(text.size(), lines));
  for_lines(text, [&, id = int64_t{0}](std::string_view line) mutable {
    vocab.add(line, id++, {.what = file.string(), .tokens = lines});
  });
  TokenizerParts parts{.what = file.string()};
  parts.model = std::make_unique<WordPiece>(std::move(vocab), WordPieceOptions{.what = file.string()});
  parts.normalizer = bert_normalizer({.strip_accents = lowercase, .lowercase = lowercase});
  parts.pre_tokenizer = bert_pre_tokenizer();
  parts.decoder = word_piece_decoder({});
  using Kind = TemplatePiece::Kind;
  const Vocab& tokens = parts.model->vocab();
  const TemplatePiece cls = special_piece(tokens, "[CLS]", 0), sep = special_piece(tokens, "[SEP]", 0);
  const TemplatePiece first{.kind = Kind::first_text}, second{.kind = Kind::second_text, .type_id = 1};
  parts.post.single = {cls, first, sep};
  parts.post.pair = {cls, first, sep, second, special_piece(tokens, "[SEP]", 1)};
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) add_special(parts, token);
  return parts;
}

void read_named_tokens(const fs::path& folder, TokenizerParts& parts) {
  const std::array<std::pair<const char*, std::optional<int32_t>*>, 7> roles{{{"bos_token", &parts.named.bos},
                                                                              {"eos_token", &parts.named.eos},
                                                                              {"pad_token", &parts.named.pad},
                                                                              {"unk_token", &parts.named.unk},
                                                                              {"sep_token", &parts.named.sep},
                                                                              {"cls_token", &parts.named.cls},
                                                                              {"mask_token", &parts.named.mask}}};
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    if (!is_there(folder / name)) continue;
    const Json settings = read_tokenizer_settings(folder / name);
    const JsonNode file(settings, (folder / name).string());
    for (const auto& [key, slot] : roles) {
      const auto node = file.find(key);
      if (!node || *slot) continue;
      const std::string token = node->json().is_object() ? node->at("content").string() : node->string();
      if (const int32_t id = find_token(parts, token); id >= 0) *slot = id;
    }
  }
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view what) {
  return Tokenizer(parts_of_json(json, what));
}

Tokenizer Tokenizer::load(const fs::path& path) {
  QKV_CHECK(is_there(path), path.string(), ": no such file or folder",
            Hint("give a tokenizer.json, a folder that has one, or an older tokenizer file"));
  const bool in_folder = is_folder(path);
  const fs::path folder = in_folder ? path : path.parent_path();
  const auto wanted = [&](const char* name) { return in_folder ? is_there(folder / name) : path.filename() == name; };
  const auto finish = [&](TokenizerParts parts) {
    read_named_tokens(folder, parts);
    return Tokenizer(std::move(parts));
  };
  if (wanted("tokenizer.json") || (!in_folder && path.extension() == ".json" && !wanted("vocab.json"))) {
    const fs::path file = in_folder ? folder / "tokenizer.json" : path;
    return finish(parts_of_json(read_file(file, kLargestTokenizerFile), file.string()));
  }
  if (!in_folder && path.extension() == ".gguf") return Tokenizer(parts_of_gguf(Gguf::open(path)));
  if (!in_folder && path.extension() == ".tiktoken") return finish(parts_of_tiktoken(path));
  if (wanted("source.spm") || (!in_folder && path.extension() == ".spm")) {
    return finish(parts_of_marian(in_folder ? folder / "source.spm" : path));
  }
  if (wanted("tokenizer.model") || (!in_folder && path.extension() == ".model")) {
    return finish(parts_of_model_file(in_folder ? folder / "tokenizer.model" : path));
  }
  if (wanted("vocab.json") || wanted("merges.txt")) {
    return finish(parts_of_vocab_and_merges(folder / "vocab.json", folder / "merges.txt"));
  }
  if (wanted("vocab.txt")) {
    bool lowercase = true;
    if (is_there(folder / "tokenizer_config.json")) {
      const fs::path file = folder / "tokenizer_config.json";
      lowercase = JsonNode(read_tokenizer_settings(file), file.string()).flag_or("do_lower_case", true);
    }
    return finish(parts_of_vocab_txt(in_folder ? folder / "vocab.txt" : path, lowercase));
  }
  QKV_FAIL(
      path.string(), in_folder ? ": the folder has no tokenizer" : ": not a tokenizer file",
      Hint("known are tokenizer.json, vocab.json with merges.txt, vocab.txt, SentencePiece's .model, Marian's .spm, "
           "tiktoken's ranks and .gguf"));
}

}  // namespace qkv
