#include "train/prepare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/file_manifest.h"
#include "base/log.h"
#include "base/path.h"
#include "base/printable.h"
#include "data/chats.h"
#include "data/dataset_pack.h"
#include "data/dataset_tokenizer.h"
#include "model/checkpoint/convert.h"
#include "model/families/config_keys.h"
#include "model/families/presets.h"
#include "model/initialise.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/training/tokenizer_training.h"
#include "train/corpus.h"
#include "train/optimizer.h"
#include "train/prepared.h"

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
  QKV_CHECK(kind != "char" || training.vocab == 0, "tokenizer.vocab is ", training.vocab,
            " but a tokenizer of characters has those of the text", Hint("leave it out"));
  const std::string& pattern = recipe.tokenizer.pattern;
  if (kind == "bpe") {
    training.pattern = pattern_by_name(pattern);
    const std::string near = nearest_key(pattern, pattern_names());
    QKV_CHECK(training.pattern, "tokenizer.pattern is ", printable(pattern), ", which is not known",
              Hint(near.empty() ? "" : "did you mean '" + near + "'? ",
                   fmt::format("The patterns are {}", fmt::join(pattern_names(), ", "))));
  }
  QKV_CHECK(kind == "bpe" || pattern == Recipe::TokenizerSource().pattern, "tokenizer.pattern is ", printable(pattern),
            " but a tokenizer of kind ", kind, " has none", Hint("leave it out, or train a BPE tokenizer"));
  const TrainedTokenizer trained = train_tokenizer(training, pool);
  if (trained.vocab < training.vocab) {
    log_line(Log::warn, fmt::format("the tokenizer has {} tokens, not {}: the text has no more to offer", trained.vocab,
                                    training.vocab));
  }
  if (trained.stray_bytes > 0) {
    log_line(Log::warn, fmt::format("{} bytes were no UTF-8 and counted as U+FFFD", trained.stray_bytes));
  }
  write_text(folder / "tokenizer.json", trained.json);
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

Packed pack_files(const PackOptions& options, const Tokenizer& tokenizer, ThreadPool& pool) {
  const DocumentTokens around = document_tokens(tokenizer);
  const auto encode = [&](std::string_view text, std::vector<int32_t>& ids) {
    ids = tokenizer.encode(text, {.add_specials = false, .read_specials = false});
  };
  return pack_dataset(options,
                      {.encode = encode,
                       .vocabulary = tokenizer.vocab_size(),
                       .fingerprint = fingerprint(tokenizer),
                       .begin_token = around.begin,
                       .end_token = around.end},
                      pool);
}

// --- the config ------------------------------------------------------------------------------------------------------

// The recipe's model, with the keys of its preset.
Json model_of(const Recipe& recipe) {
  Json config = recipe.model;
  const auto preset = config.find("preset");
  if (preset == config.end()) return config;
  QKV_CHECK(preset->is_string(), "model.preset is ", preset->dump(), " but must be a name",
            Hint(fmt::format("presets are {}", fmt::join(preset_names(), ", "))));
  Json base = preset_config(preset->get<std::string>());
  config.erase("preset");
  base.merge_patch(config);
  if (!recipe.model.contains("vocab_size")) base.erase("vocab_size");
  return base;
}

// The context, where the family reads it under this name and the recipe gives it under none.
void add_context(Json& config, const Recipe& recipe) {
  for (const char* key : {"max_position_embeddings", "n_positions", "n_ctx", "seq_length"}) {
    if (config.contains(key)) return;
  }
  constexpr const char* kContext = "max_position_embeddings";
  Json with = config;
  with[kContext] = recipe.sequence;
  if (family_reads(with, "model", kContext)) config = std::move(with);
}

// A key that nobody reads is refused before anything is prepared.
void check_model_keys(const Recipe& recipe) {
  if (!recipe.from().empty()) return;
  Json config = model_of(recipe);
  add_context(config, recipe);
  check_keys_of_new_model(config, "model");
}

Json config_for(const Recipe& recipe, const Tokenizer& tokenizer) {
  Json config = model_of(recipe);
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
  add_context(config, recipe);
  return config;
}

int64_t context_of(const Recipe& recipe, const Tokenizer& tokenizer) {
  if (!recipe.from().empty()) return Checkpoint::open(recipe.from()).spec.context;
  return read_spec(Config(config_for(recipe, tokenizer), "config.json")).context;
}

// What fits into the model and a micro-batch.
TokenLimit limit_for(const Recipe& recipe, const Tokenizer& tokenizer) {
  TokenLimit limit{.cut = recipe.data.cut_long};
  if (recipe.objective == Recipe::Objective::chat) {
    limit.side = static_cast<uint64_t>(recipe.sequence);
  } else if (recipe.objective == Recipe::Objective::translate) {
    const int64_t context = context_of(recipe, tokenizer);
    if (context > 1) limit.side = static_cast<uint64_t>(context - 1);  // and the decoder's first token
    limit.pair = static_cast<uint64_t>(recipe.batch_tokens / recipe.micro_batches);
  }
  return limit;
}

void tell_too_long(const Packed& packed, const TokenLimit& limit) {
  const char* what = name_of_documents(packed.manifest);
  uint64_t all = packed.too_long;
  for (const Split split : kSplits) all += packed.manifest.of(split).documents;
  std::string most = fmt::format("{} tokens", limit.side);
  if (limit.pair > 0) {
    most = limit.side > 0 ? fmt::format("{} tokens on a side, {} in a micro-batch", limit.side, limit.pair)
                          : fmt::format("{} tokens in a micro-batch", limit.pair);
  }
  if (packed.too_long > 0) {
    log_line(Log::warn, fmt::format("{} of {} {} are too long and left out, over {}; the first is {}{}",
                                    packed.too_long, all, what, most, packed.first_too_long,
                                    limit.cut ? "" : " (data.too_long=cut keeps their beginning)"));
  }
  if (packed.cut > 0) {
    log_line(Log::warn, fmt::format("{} of {} {} are too long and cut, over {}; the first is {}", packed.cut, all, what,
                                    most, packed.first_too_long));
  }
}

// The folder train, and validation where that has files of its own.
void pack_corpus(const Recipe& recipe, const Corpus& corpus, const fs::path& root, ThreadPool& pool) {
  const Tokenizer tokenizer = Tokenizer::load(root / "tokenizer").without_truncation();
  const bool chat = recipe.objective == Recipe::Objective::chat, own_validation = !corpus.validation.empty();
  std::optional<ChatTemplate> chat_template;
  if (chat && !(chat_template = ChatTemplate::load(root / "tokenizer"))) {
    ChatTemplate::fail_missing(recipe.tokenizer.load.empty() ? "a trained tokenizer" : recipe.tokenizer.load);
  }
  const auto pack = [&](const std::vector<std::string>& files, const char* name, const SourceOptions& source) {
    const bool share = !own_validation && files == corpus.train;
    const PackOptions options{.files = files,
                              .out = root / "data" / name,
                              .source = source,
                              .validation = share ? recipe.data.validation : 0,
                              .seed = recipe.seed,
                              .tail = recipe.data.tail,
                              .limit = limit_for(recipe, tokenizer),
                              .validation_option = "data.validation"};
    const Packed packed = chat ? pack_chats(options, *chat_template, tokenizer) : pack_files(options, tokenizer, pool);
    tell_too_long(packed, options.limit);
  };
  pack(corpus.train, "train", corpus.source);
  if (own_validation) pack(corpus.validation, "validation", corpus.validation_source);
}

// --- the model -------------------------------------------------------------------------------------------------------

// Before weights are written that could not be trained here.
void check_memory(const Recipe& recipe, const ModelSpec& spec, int64_t memory) {
  double need = 0;
  const bool all_states = recipe.zero == 0 && recipe.frozen.empty();  // else the plan of the run says which
  for (const WeightSpec& weight : weight_list(spec)) {
    need += 4.0 * static_cast<double>(weight.shape.count());
    if (all_states) need += static_cast<double>(Optimizer::bytes(recipe.optimizer, weight));
  }
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
  for (const auto& [needed, hint] : {std::pair{fs::path(from), "model.from names a model"},
                                     {fs::path(recipe.tokenizer.load), "tokenizer.load names a tokenizer"}}) {
    QKV_CHECK(needed.empty() || is_there(needed), needed.string(), ": there is no such file or folder", Hint(hint));
  }
  check_model_keys(recipe);
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
    pack_corpus(recipe, corpus, root, pool);
    write_start(recipe, Tokenizer::load(root / "tokenizer").without_truncation(), root / "start", pool, memory);
    fs::remove_all(corpus_folder);
  } catch (const fs::filesystem_error& e) {
    QKV_FAIL("cannot prepare ", folder.string(), ": ", e.what(), Hint("check the files named and the free space"));
  }
  write_text(root / kPreparedRecipe, to_json(recipe).dump(2) + "\n");
  write_manifest(root);
  made.commit();
}

}  // namespace qkv
