#include "train/prepare.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/progress.h"
#include "data/dataset_pack.h"
#include "data/dataset_tokenizer.h"
#include "model/checkpoint/convert.h"
#include "model/families/presets.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/training/tokenizer_training.h"
#include "text/unicode/utf8.h"
#include "world/labels.h"
#include "world/world.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// Special tokens by objective; in a trained tokenizer they have the first ids.
constexpr const char *kEnd = "<|end|>", *kPad = "<pad>", *kMask = "<mask>";

void write_text(const fs::path& path, std::string_view text) {
  write_file_atomic(path, std::as_bytes(std::span(text)));
}

struct Corpus {
  std::vector<std::string> train, validation;  // files; without validation files, a share of the training files
  SourceOptions source;
};

// --- the corpus ------------------------------------------------------------------------------------------------------

// Stories of the built-in world, one per line; or pairs of sentences.
Corpus world_corpus(const Recipe& recipe, const fs::path& folder) {
  const bool pairs = recipe.data.world == "pairs";
  const fs::path file = folder / (pairs ? "world.tsv" : "world.txt");
  Progress progress("writing stories", recipe.data.stories);
  std::ofstream out(file, std::ios::binary);
  const World world(recipe.seed);
  for (int64_t i = 0; i < recipe.data.stories; ++i) {
    const auto index = static_cast<uint64_t>(i);
    if (pairs) {
      out << to_pairs(world.story(index));
    } else {
      const bool chinese = recipe.data.world == "zh" || (recipe.data.world == "both" && i % 2 == 1);
      out << world.text(index, chinese ? Language::chinese : Language::english) << '\n';
    }
    progress.update(i + 1);
  }
  out.close();
  QKV_CHECK(out.good(), file.string(), ": could not be written", Hint("is the disk full?"));
  return {.train = {file.string()},
          .source = {.format = pairs ? DataFormat::tsv : DataFormat::text, .cut = DocumentCut::line}};
}

// The end of each file is for validation; the cut is at a character boundary.
Corpus tail_corpus(const Recipe& recipe, const fs::path& folder, Corpus corpus) {
  std::vector<std::string> train, validation;
  for (const std::string& file : corpus.train) {
    const std::string text = read_file(file, size_t{1} << 32);
    QKV_CHECK(is_utf8(text), file, ": is not UTF-8", Hint("convert it first"));
    auto cut = static_cast<size_t>(static_cast<double>(text.size()) * (1 - recipe.data.validation));
    while (cut < text.size() && is_utf8_continuation(text[cut])) ++cut;
    const std::string name = std::to_string(train.size());
    for (const auto& [list, part, prefix] : {std::tuple{&train, std::string_view(text).substr(0, cut), "train-"},
                                             {&validation, std::string_view(text).substr(cut), "validation-"}}) {
      const fs::path path = folder / (prefix + name + ".txt");
      write_text(path, part);
      list->push_back(path.string());
    }
  }
  corpus.train = std::move(train);
  corpus.validation = std::move(validation);
  return corpus;
}

Corpus corpus_of(const Recipe& recipe, const fs::path& folder) {
  if (!recipe.data.world.empty()) return world_corpus(recipe, folder);
  Corpus corpus{.train = recipe.data.files, .validation = recipe.data.validation_files};
  const std::string &format = recipe.data.format, &cut = recipe.data.document;
  corpus.source.format = format == "tsv" ? DataFormat::tsv : format == "jsonl" ? DataFormat::jsonl : DataFormat::text;
  corpus.source.cut = cut == "line" ? DocumentCut::line : cut == "file" ? DocumentCut::file : DocumentCut::blank_line;
  for (const auto* files : {&corpus.train, &corpus.validation}) {
    for (const std::string& file : *files) {
      QKV_CHECK(fs::exists(file), file, ": there is no such file", Hint("--data names the files to train on"));
      QKV_CHECK(!fs::is_empty(file), file, ": is empty", Hint("give a file with text in it"));
    }
  }
  return recipe.data.tail ? tail_corpus(recipe, folder, std::move(corpus)) : corpus;
}

// --- the tokenizer ---------------------------------------------------------------------------------------------------

std::vector<std::string> specials_for(const Recipe& recipe) {
  std::vector<std::string> specials{kEnd, kPad};
  if (recipe.objective == Recipe::Objective::masked) specials.push_back(kMask);
  specials.insert(specials.end(), recipe.tokenizer.specials.begin(), recipe.tokenizer.specials.end());
  return specials;
}

void train_tokenizer_into(const Recipe& recipe, const Corpus& corpus, const fs::path& folder, ThreadPool& pool) {
  const std::string& kind = recipe.tokenizer.train;
  TokenizerTraining training{.kind = kind == "char"      ? TokenizerKind::characters
                                     : kind == "unigram" ? TokenizerKind::unigram
                                                         : TokenizerKind::bpe,
                             .vocab = static_cast<size_t>(recipe.tokenizer.vocab),
                             .specials = specials_for(recipe),
                             .files = {corpus.train.begin(), corpus.train.end()}};
  QKV_CHECK(kind == "char" || training.vocab > 0, "the tokenizer is to be trained but has no size",
            Hint("give tokenizer.vocab"));
  if (kind == "bpe") {
    training.pattern = pattern_by_name(recipe.tokenizer.pattern);
    QKV_CHECK(training.pattern, "tokenizer.pattern is ", printable(recipe.tokenizer.pattern), ", which is not known",
              Hint("see  qkv tokenizer train --help"));
  }
  write_text(folder / "tokenizer.json", train_tokenizer(training, pool).json);
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"eos_token", kEnd}, {"pad_token", kPad}};
  if (recipe.objective == Recipe::Objective::masked) config["mask_token"] = kMask;
  write_text(folder / "tokenizer_config.json", config.dump(2) + "\n");
}

void copy_tokenizer(const fs::path& from, const fs::path& folder) {
  if (!fs::is_directory(from)) {
    fs::copy_file(from, folder / from.filename());
    return;
  }
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename();
    const bool weights = name.ends_with(".safetensors") || name.ends_with(".bin") || name.ends_with(".gguf");
    if (entry.is_regular_file() && !weights && name != "config.json" && name != "generation_config.json" &&
        name != "model.safetensors.index.json") {
      check_link_stays(from, entry.path());
      fs::copy_file(entry.path(), folder / name);
    }
  }
}

// --- token shards ----------------------------------------------------------------------------------------------------

void pack_files(const PackOptions& options, const Tokenizer& tokenizer, ThreadPool& pool) {
  const DocumentTokens around = document_tokens(tokenizer);
  const auto encode = [&](std::string_view text, std::vector<int32_t>& ids) {
    ids = tokenizer.encode(text, {.add_specials = false, .read_specials = false});
  };
  pack_dataset(options,
               {.encode = encode,
                .vocabulary = tokenizer.vocab_size(),
                .fingerprint = fingerprint(tokenizer),
                .begin_token = around.begin,
                .end_token = around.end},
               pool);
}

// --- the config ------------------------------------------------------------------------------------------------------

Json config_for(const Recipe& recipe, const Tokenizer& tokenizer) {
  Json config = recipe.model;
  if (const auto preset = config.find("preset"); preset != config.end()) {
    QKV_CHECK(preset->is_string(), "model.preset is ", preset->dump(), " but must be a name",
              Hint("qkv info --help lists them"));
    Json base = preset_config(preset->get<std::string>());
    config.erase("preset");
    base.merge_patch(config);
    if (!recipe.model.contains("vocab_size")) base["vocab_size"] = tokenizer.vocab_size();
    config = std::move(base);
  }
  if (!config.contains("vocab_size")) config["vocab_size"] = tokenizer.vocab_size();
  QKV_CHECK(config["vocab_size"].is_number_integer() && config["vocab_size"].get<int64_t>() >= tokenizer.vocab_size(),
            "the model's vocabulary has ", config["vocab_size"].dump(), " tokens but the tokenizer has ",
            tokenizer.vocab_size(), Hint("leave vocab_size out of the recipe's model, or make it larger"));
  const NamedTokens& named = tokenizer.named();
  const auto role = [&](const char* key, const std::optional<int32_t>& id) {
    if (!recipe.model.contains(key)) config[key] = id ? Json(*id) : Json();
  };
  role("eos_token_id", named.eos);
  role("bos_token_id", named.bos);
  role("pad_token_id", named.pad);
  if (recipe.objective == Recipe::Objective::translate) {
    role("decoder_start_token_id", named.pad);
    role("forced_eos_token_id", named.eos);
  }
  if (!config.contains("max_position_embeddings")) config["max_position_embeddings"] = recipe.sequence;
  return config;
}

void pack_corpus(const Recipe& recipe, const Corpus& corpus, const Tokenizer& tokenizer, const fs::path& folder,
                 ThreadPool& pool) {
  const bool own_validation = !corpus.validation.empty();
  pack_files({.files = corpus.train,
              .out = folder / "train",
              .source = corpus.source,
              .validation = own_validation ? 0 : recipe.data.validation,
              .seed = recipe.seed},
             tokenizer, pool);
  if (!own_validation) return;
  pack_files({.files = corpus.validation, .out = folder / "validation", .source = corpus.source}, tokenizer, pool);
}

// Conversations are copied as they are; the chat template is applied when they are read.
void pack_chats(const Corpus& corpus, const fs::path& folder) {
  std::ofstream out(folder / "chats.jsonl", std::ios::binary);
  for (const std::string& file : corpus.train) {
    const std::string text = read_file(file, size_t{1} << 32);
    out << text << (text.ends_with('\n') ? "" : "\n");
  }
  out.close();
  QKV_CHECK(out.good(), (folder / "chats.jsonl").string(), ": could not be written", Hint("is the disk full?"));
}

}  // namespace

void prepare_run(const Recipe& recipe, const fs::path& from, const fs::path& folder, ThreadPool& pool) {
  for (const fs::path& needed : {from, fs::path(recipe.tokenizer.load)}) {
    QKV_CHECK(needed.empty() || fs::exists(needed), needed.string(), ": there is no such file or folder",
              Hint("--from names a model, tokenizer.load a tokenizer"));
  }
  if (!from.empty()) Tokenizer::load(from);  // throws if it is missing
  AtomicFolder made(folder);
  const fs::path root = made.path(), corpus_folder = root / "corpus";
  fs::create_directories(root / "tokenizer");
  fs::create_directories(root / "data");
  fs::create_directories(corpus_folder);
  const Corpus corpus = corpus_of(recipe, corpus_folder);
  if (!from.empty()) {
    copy_tokenizer(from, root / "tokenizer");
  } else if (!recipe.tokenizer.load.empty()) {
    copy_tokenizer(recipe.tokenizer.load, root / "tokenizer");
  } else {
    train_tokenizer_into(recipe, corpus, root / "tokenizer", pool);
  }
  const Tokenizer tokenizer = Tokenizer::load(root / "tokenizer").without_truncation();
  if (recipe.objective == Recipe::Objective::chat) {
    pack_chats(corpus, root / "data");
  } else {
    pack_corpus(recipe, corpus, tokenizer, root / "data", pool);
  }
  const Json config = from.empty() ? config_for(recipe, tokenizer)
                                   : parse_json(read_file(from / "config.json", 16 << 20), "config.json");
  write_text(root / "config.json", config.dump(2) + "\n");
  fs::remove_all(corpus_folder);
  made.commit();
}

}  // namespace qkv
