#include "train/recipe.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"

namespace qkv {
namespace {

// What other programs, or other objects of a recipe, call a key; empty: nothing does.
std::string elsewhere(const std::string& key) {
  static const std::vector<std::pair<const char*, std::vector<std::string_view>>> kNames{
      {"schedule.peak", {"lr", "learning_rate", "max_lr", "peak"}},
      {"schedule.last", {"min_lr", "final_lr", "last"}},
      {"schedule.warmup", {"warmup", "warmup_steps", "warmup_iters", "num_warmup_steps"}},
      {"schedule.decay", {"decay_steps", "lr_decay_iters"}},
      {"schedule.kind", {"lr_scheduler_type", "scheduler"}},
      {"optimizer.kind", {"optim"}},
      {"optimizer.decay", {"weight_decay"}},
      {"optimizer.clip", {"clip", "grad_clip", "max_grad_norm"}},
      {"optimizer.beta1", {"beta1", "adam_beta1"}},
      {"optimizer.beta2", {"beta2", "adam_beta2"}},
      {"optimizer.eps", {"eps", "adam_epsilon"}},
      {"optimizer.momentum", {"momentum"}},
      {"steps", {"max_steps", "num_steps", "max_iters", "iterations", "epochs", "num_train_epochs"}},
      {"batch_tokens", {"batch", "batch_size", "per_device_train_batch_size"}},
      {"micro_batches", {"gradient_accumulation_steps", "grad_accum"}},
      {"sequence", {"block_size", "seq_len", "max_length", "max_seq_length", "context"}},
      {"precision", {"dtype", "bf16", "fp16"}},
      {"recompute", {"gradient_checkpointing"}},
      {"loss.smoothing", {"label_smoothing", "label_smoothing_factor", "smoothing"}},
      {"loss.balance", {"router_aux_loss_coef"}},
      {"tokenizer.vocab", {"vocab", "vocab_size"}},
      {"data.files", {"files", "train_file", "train_files"}},
      {"data.validation_files", {"validation_files", "validation_file", "eval_file"}},
      {"data.validation", {"validation", "validation_split"}},
      {"data.world", {"world"}},
      {"data.stories", {"stories"}},
      {"evaluate.every", {"eval_steps", "eval_interval", "eval_every"}},
      {"evaluate.patience", {"patience", "early_stopping_patience"}},
      {"evaluate.samples", {"samples"}},
      {"evaluate.prompts", {"prompts"}},
      {"checkpoint.every", {"save_steps", "save_every"}},
      {"checkpoint.keep", {"keep", "save_total_limit"}},
      {"model.hidden_size", {"hidden_size", "n_embd", "d_model"}},
      {"model.num_hidden_layers", {"num_hidden_layers", "n_layer", "layers"}},
      {"model.num_attention_heads", {"num_attention_heads", "n_head", "heads"}}};
  for (const auto& [path, names] : kNames) {
    if (std::find(names.begin(), names.end(), key) != names.end()) return path;
  }
  return {};
}

// One object of the recipe. Keys are read by name; a key that was never read is an Error.
class Fields {
 public:
  Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    QKV_CHECK(json.is_object(), where_, " is ", json.type_name(), " but must be an object",
              Hint("see docs/training.md"));
  }

  const Json* find(const std::string& key) {
    known_.push_back(key);
    const auto at = json_.find(key);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }
  void whole(const std::string& key, int64_t& value, int64_t low, int64_t high = int64_t{1} << 50) {
    const Json* given = find(key);
    if (given == nullptr) return;
    check(given->is_number(), key, *given, "a whole number");
    // What 64 bits cannot hold was read as a double, and what an int64_t cannot as a uint64_t.
    const bool fits =
        given->is_number_integer() && (!given->is_number_unsigned() || std::in_range<int64_t>(given->get<uint64_t>()));
    if (fits) value = given->get<int64_t>();
    QKV_CHECK(fits && value >= low && value <= high, where_, ".", key, " is ", given->dump(),
              " but must be a whole number from ", low, " to ", high, Hint("see docs/training.md"));
  }
  void number(const std::string& key, double& value, double low, double high) {
    const Json* given = find(key);
    if (given == nullptr) return;
    check(given->is_number(), key, *given, "a number");
    value = given->get<double>();
    QKV_CHECK(std::isfinite(value) && value >= low && value <= high, where_, ".", key, " is ", value, " but must be ",
              low, " to ", high, Hint("see docs/training.md"));
  }
  void flag(const std::string& key, bool& value) {
    const Json* given = find(key);
    if (given == nullptr) return;
    check(given->is_boolean(), key, *given, "true or false");
    value = given->get<bool>();
  }
  void text(const std::string& key, std::string& value) {
    const Json* given = find(key);
    if (given == nullptr) return;
    check(given->is_string(), key, *given, "a text");
    value = given->get<std::string>();
  }
  void texts(const std::string& key, std::vector<std::string>& value) {
    const Json* given = find(key);
    if (given == nullptr) return;
    check(given->is_array() && std::all_of(given->begin(), given->end(), [](const Json& t) { return t.is_string(); }),
          key, *given, "a list of texts");
    value = given->get<std::vector<std::string>>();
  }
  // The index of the value in a list of words.
  template <class Enum>
  void word(const std::string& key, Enum& value, std::initializer_list<const char*> words) {
    std::string given;
    text(key, given);
    if (given.empty()) return;
    const auto at = std::find(words.begin(), words.end(), given);
    std::string all;
    for (const char* each : words) all += std::string(all.empty() ? "" : ", ") + each;
    QKV_CHECK(at != words.end(), where_, ".", key, " is ", printable(given), " but must be one of ", all,
              Hint("see docs/training.md"));
    value = static_cast<Enum>(at - words.begin());
  }
  // A nested object, read by f.
  template <class F>
  void inside(const std::string& key, F&& f) {
    const Json* given = find(key);
    if (given == nullptr) return;
    Fields fields(*given, where_ + "." + key);
    f(fields);
    fields.done();
  }

  void done() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const std::vector<std::string_view> known(known_.begin(), known_.end());
      std::string near = elsewhere(key);
      if (near.empty()) near = nearest_key(key, known);
      QKV_FAIL(where_, " has an unknown key ", printable(key), " with the value ", value.dump().substr(0, 60),
               near.empty() ? Hint("see docs/training.md") : Hint("did you mean '", near, "'?"));
    }
  }

 private:
  void check(bool right, const std::string& key, const Json& given, const char* wanted) const {
    QKV_CHECK(right, where_, ".", key, " is ", given.dump().substr(0, 60), " but must be ", wanted,
              Hint("see docs/training.md"));
  }

  const Json& json_;
  std::string where_;
  std::vector<std::string> known_;
};

constexpr std::initializer_list<const char*> kObjectives{"causal", "translate", "masked", "chat"};
constexpr std::initializer_list<const char*> kRules{"adamw", "muon", "sgd"};
constexpr std::initializer_list<const char*> kSchedules{"constant", "cosine", "inverse_sqrt", "stable_decay"};

void read_tokenizer(Fields& f, Recipe::TokenizerSource& t) {
  f.text("train", t.train);
  f.whole("vocab", t.vocab, 1, 10'000'000);
  f.whole("max_token_length", t.max_token_length, 1, 1 << 20);
  f.text("pattern", t.pattern);
  f.texts("specials", t.specials);
  f.flag("begin", t.begin);
  f.text("load", t.load);
}

void read_data(Fields& f, Recipe::DataSource& d) {
  f.text("world", d.world);
  f.whole("stories", d.stories, 1);
  f.texts("kinds", d.kinds);
  f.texts("files", d.files);
  f.text("format", d.format);
  f.text("document", d.document);
  f.flag("reversed", d.reversed);
  f.flag("both_ways", d.both_ways);
  f.number("validation", d.validation, 0, 0.9);
  f.flag("tail", d.tail);
  f.texts("validation_files", d.validation_files);
  f.word("too_long", d.cut_long, {"skip", "cut"});
}

bool one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Checks that involve several keys.
void check_together(const Recipe& r, const std::string& what) {
  QKV_CHECK(r.steps > 0, what, ".steps is ", r.steps, Hint("say for how many steps to train"));
  QKV_CHECK(r.model.is_object() && !r.model.empty(), what, " has no model",
            Hint("give a config as Hugging Face writes it, or {\"preset\": \"gpt2\"}"));
  const auto from = r.model.find("from");
  QKV_CHECK(from == r.model.end() || (from->is_string() && !r.from().empty() && r.model.size() == 1), what,
            ".model.from is ", from == r.model.end() ? "" : from->dump().substr(0, 60), " beside ", r.model.size() - 1,
            " other keys", Hint("it is a model's folder and stands alone: the model is as it is there"));
  QKV_CHECK(r.from().empty() || r.tokenizer.load == r.from(), what, ".model.from is ", printable(r.from()),
            " but the tokenizer is another", Hint("leave \"tokenizer\" out: the model's own is taken"));
  QKV_CHECK(std::has_single_bit(static_cast<uint64_t>(r.micro_batches)), what, ".micro_batches is ", r.micro_batches,
            " but must be a power of two", Hint("ranks divide them: 1, 2, 4, 8 ..."));
  QKV_CHECK(r.batch_tokens >= r.micro_batches, what, ".batch_tokens is ", r.batch_tokens, " for ", r.micro_batches,
            " micro-batches", Hint("each has at least one token"));
  const bool windows = r.objective == Recipe::Objective::causal || r.objective == Recipe::Objective::masked;
  QKV_CHECK(!windows || r.batch_tokens % (r.micro_batches * r.sequence) == 0, what, ".batch_tokens is ", r.batch_tokens,
            " but ", r.micro_batches, " micro-batches of whole windows of ", r.sequence, " do not add up to it",
            Hint("batch_tokens = micro_batches * windows * sequence"));
  const bool world = !r.data.world.empty();
  QKV_CHECK(world != !r.data.files.empty(), what, ".data names ", world ? "the world and " : "neither the world nor ",
            r.data.files.size(), " files", Hint("give either \"world\" or \"files\" (or --data)"));
  QKV_CHECK(!world || one_of(r.data.world, {"en", "zh", "both", "pairs"}), what, ".data.world is ",
            printable(r.data.world), " but must be en, zh, both or pairs", Hint("see docs/world.md"));
  QKV_CHECK(one_of(r.data.format, {"text", "jsonl", "tsv"}) && one_of(r.data.document, {"blank", "line", "file"}), what,
            ".data is ", printable(r.data.format), " cut at ", printable(r.data.document),
            Hint("formats are text, jsonl and tsv; documents end at blank, line or file"));
  QKV_CHECK(r.tokenizer.train.empty() != r.tokenizer.load.empty(), what, ".tokenizer is to be ",
            r.tokenizer.train.empty() ? "neither trained nor loaded" : "both trained and loaded",
            Hint("give {\"train\": \"bpe\", \"vocab\": 4096} or {\"load\": FILE}"));
  QKV_CHECK(r.tokenizer.train.empty() || one_of(r.tokenizer.train, {"bpe", "unigram", "char"}), what,
            ".tokenizer.train is ", printable(r.tokenizer.train), " but must be bpe, unigram or char",
            Hint("see docs/tokenizer-training.md"));
  const bool pairs = r.data.world == "pairs" || r.data.format == "tsv";
  QKV_CHECK((r.objective == Recipe::Objective::translate) == pairs, what, " is to ", name_of(r.objective),
            " but its data ", pairs ? "are pairs" : "are not pairs",
            Hint("translation reads pairs: world pairs, or format tsv"));
  QKV_CHECK(!r.data.both_ways || (pairs && !r.data.reversed), what, ".data.both_ways is true but ",
            pairs ? "data.reversed names one direction" : "the data are not pairs",
            Hint("leave one of them out; both_ways is for pairs"));
  QKV_CHECK(!r.data.cut_long || pairs || r.objective == Recipe::Objective::chat, what,
            ".data.too_long is cut but texts are cut into windows anyway", Hint("it is for pairs and conversations"));
  QKV_CHECK(world || r.data.kinds.empty(), what, ".data.kinds names ", r.data.kinds.size(),
            " kinds of stories but the data are files", Hint("kinds are those of the built-in world"));
  validate(r.optimizer);
  r.schedule.validate();
}

}  // namespace

const char* name_of(Recipe::Objective objective) {
  return std::data(kObjectives)[static_cast<size_t>(objective)];
}

Recipe read_recipe(const Json& json, const std::string& what, int ranks) {
  Recipe r;
  if (std::has_single_bit(static_cast<unsigned>(ranks)))
    r.micro_batches = ranks;  // others are refused by who knows why
  Fields f(json, what);
  f.text("name", r.name);
  f.text("about", r.about);
  f.word("objective", r.objective, kObjectives);
  if (const Json* model = f.find("model")) r.model = *model;
  f.inside("tokenizer", [&](Fields& in) { read_tokenizer(in, r.tokenizer); });
  const bool from = r.model.is_object() && r.model.contains("from") && r.model["from"].is_string();
  if (from && f.find("tokenizer") == nullptr) r.tokenizer.load = r.from();
  f.inside("data", [&](Fields& in) { read_data(in, r.data); });
  f.whole("sequence", r.sequence, 2, 1 << 20);
  f.whole("batch_tokens", r.batch_tokens, 1, int64_t{1} << 31);
  f.whole("micro_batches", r.micro_batches, 1, kMaxMicroBatches);
  f.whole("steps", r.steps, 1);
  int precision = r.bf16 ? 1 : 0;
  f.word("precision", precision, {"f32", "bf16"});
  r.bf16 = precision == 1;
  f.flag("recompute", r.recompute);
  f.whole("zero", r.zero, 0, 2);
  auto seed = static_cast<int64_t>(r.seed);
  f.whole("seed", seed, 0, INT64_MAX);
  r.seed = static_cast<uint64_t>(seed);
  f.number("masking", r.masking, 0.01, 0.9);
  f.texts("frozen", r.frozen);
  f.inside("optimizer", [&](Fields& in) {
    in.word("kind", r.optimizer.kind, kRules);
    in.number("beta1", r.optimizer.beta1, 0, 1);
    in.number("beta2", r.optimizer.beta2, 0, 1);
    in.number("eps", r.optimizer.eps, 0, 1);
    in.number("momentum", r.optimizer.momentum, 0, 1);
    in.number("decay", r.optimizer.decay, 0, 100);
    in.number("clip", r.optimizer.clip, 0, 1e30);
  });
  f.inside("schedule", [&](Fields& in) {
    in.word("kind", r.schedule.kind, kSchedules);
    in.number("peak", r.schedule.peak, 0, 1e3);
    in.number("last", r.schedule.last, 0, 1e3);
    in.whole("warmup", r.schedule.warmup, 0);
    in.whole("decay", r.schedule.decay, 0);
  });
  r.schedule.steps = r.steps;
  f.inside("loss", [&](Fields& in) {
    in.number("smoothing", r.loss.smoothing, 0, 0.9);
    in.number("z_loss", r.loss.z_loss, 0, 1);
    in.number("balance", r.loss.balance, 0, 10);
  });
  f.inside("evaluate", [&](Fields& in) {
    in.whole("every", r.evaluate.every, 0);
    in.whole("batches", r.evaluate.batches, 0);
    in.whole("patience", r.evaluate.patience, 0);
    in.whole("samples", r.evaluate.samples, 0, 1000);
    in.texts("prompts", r.evaluate.prompts);
  });
  f.inside("checkpoint", [&](Fields& in) {
    in.whole("every", r.checkpoint.every, 0);
    in.whole("keep", r.checkpoint.keep, 1, 1 << 20);
  });
  f.flag("watch", r.watch);
  f.done();
  check_together(r, what);
  return r;
}

Json to_json(const Recipe& r) {
  const auto word = [](std::initializer_list<const char*> words, auto value) {
    return std::data(words)[static_cast<size_t>(value)];
  };
  Json tokenizer{{"specials", r.tokenizer.specials}};
  if (!r.tokenizer.load.empty()) tokenizer["load"] = r.tokenizer.load;
  if (!r.tokenizer.train.empty()) {
    tokenizer.update({{"train", r.tokenizer.train}, {"pattern", r.tokenizer.pattern}});
    if (r.tokenizer.vocab > 0) tokenizer["vocab"] = r.tokenizer.vocab;
    if (r.tokenizer.max_token_length > 0) tokenizer["max_token_length"] = r.tokenizer.max_token_length;
    if (r.tokenizer.begin) tokenizer["begin"] = true;
  }
  Json data{{"format", r.data.format},     {"document", r.data.document},
            {"reversed", r.data.reversed}, {"validation", r.data.validation},
            {"tail", r.data.tail},         {"validation_files", r.data.validation_files}};
  if (!r.data.world.empty()) data["world"] = r.data.world;
  if (r.data.stories > 0) data["stories"] = r.data.stories;
  if (!r.data.kinds.empty()) data["kinds"] = r.data.kinds;
  if (r.data.both_ways) data["both_ways"] = true;
  if (r.data.cut_long) data["too_long"] = "cut";
  if (!r.data.files.empty()) data["files"] = r.data.files;
  return {{"name", r.name},
          {"about", r.about},
          {"objective", name_of(r.objective)},
          {"model", r.model},
          {"tokenizer", tokenizer},
          {"data", data},
          {"sequence", r.sequence},
          {"batch_tokens", r.batch_tokens},
          {"micro_batches", r.micro_batches},
          {"steps", r.steps},
          {"precision", r.bf16 ? "bf16" : "f32"},
          {"recompute", r.recompute},
          {"zero", r.zero},
          {"seed", r.seed},
          {"masking", r.masking},
          {"frozen", r.frozen},
          {"optimizer",
           {{"kind", word(kRules, r.optimizer.kind)},
            {"beta1", r.optimizer.beta1},
            {"beta2", r.optimizer.beta2},
            {"eps", r.optimizer.eps},
            {"momentum", r.optimizer.momentum},
            {"decay", r.optimizer.decay},
            {"clip", r.optimizer.clip}}},
          {"schedule",
           {{"kind", word(kSchedules, r.schedule.kind)},
            {"peak", r.schedule.peak},
            {"last", r.schedule.last},
            {"warmup", r.schedule.warmup},
            {"decay", r.schedule.decay}}},
          {"loss", {{"smoothing", r.loss.smoothing}, {"z_loss", r.loss.z_loss}, {"balance", r.loss.balance}}},
          {"evaluate",
           {{"every", r.evaluate.every},
            {"batches", r.evaluate.batches},
            {"patience", r.evaluate.patience},
            {"samples", r.evaluate.samples},
            {"prompts", r.evaluate.prompts}}},
          {"checkpoint", {{"every", r.checkpoint.every}, {"keep", r.checkpoint.keep}}},
          {"watch", r.watch}};
}

Recipe with_full_paths(Recipe r) {
  const auto full = [](std::string path) { return path.empty() ? path : std::filesystem::absolute(path).string(); };
  if (!r.from().empty()) r.model["from"] = full(r.from());
  r.tokenizer.load = full(r.tokenizer.load);
  for (auto* files : {&r.data.files, &r.data.validation_files}) {
    for (std::string& file : *files) file = full(file);
  }
  return r;
}

}  // namespace qkv
