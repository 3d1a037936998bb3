#include "train/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/file_manifest.h"
#include "base/function_ref.h"
#include "base/path.h"
#include "base/printable.h"
#include "base/progress.h"
#include "data/dataset_pack.h"
#include "data/dataset_tokenizer.h"
#include "model/checkpoint/convert.h"
#include "model/families/presets.h"
#include "model/initialise.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/training/tokenizer_training.h"
#include "text/unicode/utf8.h"
#include "train/optimizer.h"
#include "train/prepared.h"
#include "world/labels.h"
#include "world/world.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// Special tokens by objective; in a trained tokenizer they have the first ids.
constexpr const char *kEnd = "<|end|>", *kPad = "<pad>", *kMask = "<mask>", *kBegin = "<|begin|>";

void write_text(const fs::path& path, std::string_view text) {
  write_file_atomic(path, std::as_bytes(std::span(text)));
}

std::string gigabytes(double bytes) {
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

struct Corpus {
  std::vector<std::string> train, validation;  // files; without validation files, a share of the training files
  SourceOptions source;
};

// --- the corpus ------------------------------------------------------------------------------------------------------

// An Error if so many stories and their tokens, about as many bytes again, cannot fit on the disk.
void check_space(const fs::path& folder, int64_t stories, FunctionRef<std::string(int64_t index)> story) {
  const int64_t looked_at = std::min<int64_t>(stories, 100);
  size_t bytes = 0;
  for (int64_t i = 0; i < looked_at; ++i) bytes += story(i).size();
  const double each = static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(looked_at, 1));
  const double need = 2 * each * static_cast<double>(stories);
  const auto have = static_cast<double>(fs::space(folder).available);
  QKV_CHECK(need <= have, stories, " stories and their tokens need about ", gigabytes(need), " but the disk of ",
            folder.parent_path().parent_path().string(), " has ", gigabytes(have), " free",
            Hint("set data.stories to less, or put the run on another disk"));
}

// Stories of the built-in world, one per line; or pairs of sentences. A story depends on its number alone, so all threads
// make some and the file does not depend on how many there are.
Corpus world_corpus(const Recipe& recipe, const fs::path& folder, ThreadPool& pool) {
  const bool pairs = recipe.data.world == "pairs";
  const fs::path path = folder / (pairs ? "world.tsv" : "world.txt");
  const World world(recipe.seed, recipe.data.kinds);
  const auto story = [&](int64_t i) {
    const auto index = static_cast<uint64_t>(i);
    if (pairs) return to_pairs(world.story(index));
    const bool chinese = recipe.data.world == "zh" || (recipe.data.world == "both" && i % 2 == 1);
    return world.text(index, chinese ? Language::chinese : Language::english) + '\n';
  };
  check_space(folder, recipe.data.stories, story);
  Progress progress("writing stories", recipe.data.stories);
  AtomicFile file(path);
  constexpr int64_t kShare = 64;  // stories of one task
  std::vector<std::string> shares(static_cast<size_t>(pool.threads()) * 16);
  for (int64_t first = 0; first < recipe.data.stories;) {
    const int64_t last = std::min(recipe.data.stories, first + std::ssize(shares) * kShare);
    pool.run((last - first + kShare - 1) / kShare, [&](int64_t task, int) {
      std::string& share = shares[static_cast<size_t>(task)];
      share.clear();
      const int64_t begin = first + task * kShare;
      for (int64_t i = begin; i < std::min(last, begin + kShare); ++i) share += story(i);
    });
    for (int64_t at = first; at < last; at += kShare) {
      file.write(std::as_bytes(std::span(shares[static_cast<size_t>((at - first) / kShare)])));
    }
    progress.update(first = last);
  }
  file.commit();
  progress.finish();
  return {.train = {path.string()},
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

Corpus corpus_of(const Recipe& recipe, const fs::path& folder, ThreadPool& pool) {
  if (!recipe.data.world.empty()) return world_corpus(recipe, folder, pool);
  Corpus corpus{.train = recipe.data.files, .validation = recipe.data.validation_files};
  const std::string &format = recipe.data.format, &cut = recipe.data.document;
  corpus.source.format = format == "tsv" ? DataFormat::tsv : format == "jsonl" ? DataFormat::jsonl : DataFormat::text;
  corpus.source.cut = cut == "line" ? DocumentCut::line : cut == "file" ? DocumentCut::file : DocumentCut::blank_line;
  for (const auto* files : {&corpus.train, &corpus.validation}) {
    for (const std::string& file : *files) {
      const PathKind kind = kind_of_path(file);
      QKV_CHECK(kind != PathKind::absent, file, ": there is no such file", Hint("--data names the files to train on"));
      QKV_CHECK(kind == PathKind::file, file, ": is a folder, a pipe or a device but must be a file",
                Hint("texts to train on are read more than once: copy them to a file first"));
      QKV_CHECK(!fs::is_empty(file), file, ": is empty", Hint("give a file with text in it"));
    }
  }
  return recipe.data.tail ? tail_corpus(recipe, folder, std::move(corpus)) : corpus;
}

// --- the tokenizer ---------------------------------------------------------------------------------------------------

std::vector<std::string> specials_for(const Recipe& recipe) {
  std::vector<std::string> specials{kEnd, kPad};
  if (recipe.objective == Recipe::Objective::masked) specials.push_back(kMask);
  if (recipe.tokenizer.begin) specials.push_back(kBegin);
  specials.insert(specials.end(), recipe.tokenizer.specials.begin(), recipe.tokenizer.specials.end());
  return specials;
}

void train_tokenizer_into(const Recipe& recipe, const Corpus& corpus, const fs::path& folder, ThreadPool& pool) {
  const std::string& kind = recipe.tokenizer.train;
  TokenizerTraining training{.kind = kind == "char"      ? TokenizerKind::characters
                                     : kind == "unigram" ? TokenizerKind::unigram
                                                         : TokenizerKind::bpe,
                             .vocab = static_cast<size_t>(recipe.tokenizer.vocab),
                             .max_token_length = static_cast<size_t>(recipe.tokenizer.max_token_length),
                             .specials = specials_for(recipe),
                             .begin = recipe.tokenizer.begin ? kBegin : "",
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
  if (recipe.tokenizer.begin) config["bos_token"] = kBegin;
  if (training.kind != TokenizerKind::bpe) config["unk_token"] = kUnknownToken;
  write_text(folder / "tokenizer_config.json", config.dump(2) + "\n");
}

void copy_tokenizer(const fs::path& from, const fs::path& folder) {
  if (!is_folder(from)) {
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
  AtomicFile out(folder / "chats.jsonl");
  for (const std::string& file : corpus.train) {
    const std::string text = read_file(file, size_t{1} << 32);
    out.write(std::as_bytes(std::span(text)));
    if (!text.ends_with('\n')) out.write(std::as_bytes(std::span("\n", 1)));
  }
  out.commit();
}

// --- the model -------------------------------------------------------------------------------------------------------

// Before weights are written that could not be trained here.
void check_memory(const Recipe& recipe, const ModelSpec& spec, int64_t memory) {
  double need = recipe.zero == 0 ? static_cast<double>(Optimizer::bytes(spec, recipe.optimizer)) : 0;
  for (const WeightSpec& weight : weight_list(spec)) need += 4.0 * static_cast<double>(weight.shape.count());
  const auto have = static_cast<double>(memory);
  QKV_CHECK(need <= have, "the model's weights and the optimiser's tensors need ", gigabytes(need), " but ",
            gigabytes(have), " of memory are free", Hint("choose a smaller model"));
}

void write_start(const Recipe& recipe, const Tokenizer& tokenizer, const fs::path& start, ThreadPool& pool,
                 int64_t memory) {
  if (!recipe.from().empty()) {
    convert_model(recipe.from(), start, {.dtype = "F32"});  // masters are f32
    return;
  }
  const Json config = config_for(recipe, tokenizer);
  check_memory(recipe, read_spec(Config(config, "config.json")), memory);
  write_new_model(start, config, {.seed = recipe.seed}, pool);
}

}  // namespace

void prepare_run(const Recipe& recipe, const fs::path& folder, ThreadPool& pool, int64_t memory) {
  const std::string from = recipe.from();
  for (const fs::path& needed : {fs::path(from), fs::path(recipe.tokenizer.load)}) {
    QKV_CHECK(needed.empty() || is_there(needed), needed.string(), ": there is no such file or folder",
              Hint("--from names a model, tokenizer.load a tokenizer"));
  }
  if (!from.empty()) Tokenizer::load(from);  // throws if it is missing
  AtomicFolder made(folder);
  const fs::path root = made.path(), corpus_folder = root / "corpus";
  try {
    fs::create_directories(root / "tokenizer");
    fs::create_directories(root / "data");
    fs::create_directories(corpus_folder);
    const Corpus corpus = corpus_of(recipe, corpus_folder, pool);
    if (!recipe.tokenizer.load.empty()) {
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
    write_start(recipe, tokenizer, root / "start", pool, memory);
    fs::remove_all(corpus_folder);
  } catch (const fs::filesystem_error& e) {
    QKV_FAIL("cannot prepare ", folder.string(), ": ", e.what(), Hint("check the files named and the free space"));
  }
  write_text(root / kPreparedRecipe, to_json(recipe).dump(2) + "\n");
  write_manifest(root);
  made.commit();
}

}  // namespace qkv
