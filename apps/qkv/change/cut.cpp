// qkv cut: what happens without some heads, which heads can go, and a smaller model without them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <iostream>

#include "base/error.h"
#include "base/printable.h"
#include "change/cut_view.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/texts.h"
#include "common/token_ids.h"
#include "inspect/cut/cut_model.h"
#include "model/describe/summary.h"
#include "open/continuation.h"

namespace qkv::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kCutHelp =
    R"(Heads are named L3H7, head 7 of layer 3; L3 is all of a layer. In models that translate E3H7 is the encoder's and X3H7
looks from the decoder at the encoder. Experts are named L1E3.
The output of a cut head is replaced by its mean over the texts, by zero (--with zero), or by its output in another text
(--with resample). The cost is the loss added, in nats per token, with a paired 95 % interval over texts.
--by tries all three orders, plots what each costs from all heads down to one per attention, and takes the one it names.
--out writes a model without the heads. It computes what the model computes with them at zero (with --with mean: their
means go into the bias of W_O), runs faster, and only qkv can load it.

Examples:
  qkv cut MODEL --heads L1H2,L3H0 --data world
  qkv cut MODEL --by gradient --keep 70% --data text.txt --out SMALLER
  qkv cut MODEL --experts L1E3 --data world --json
  qkv cut MODEL --heads L1H2 --data ids.txt --ids        token ids, a text a line; needs no tokenizer)";

struct CutArguments {
  ModelOptions model;
  TextOptions text{.tokens = 8000};
  std::string heads, experts, by, keep, with, out, prompt;
  bool json = false;
};

class CutCommand {
 public:
  explicit CutCommand(const CutArguments& options)
      : options_(options),
        library_(open_library(options.model, true)),
        model_(looking_inside(library_)),
        reader_(model_.model(), model_.engine(), {.precision = model_.precision()}),
        quiet_(options.json) {
    cut_.ablation = options.with == "zero" || (options.with.empty() && !options.out.empty()) ? Ablation::zero
                    : options.with == "resample"                                             ? Ablation::resample
                                                                                             : Ablation::mean;
  }

  void run() {
    if (!options_.experts.empty()) cut_.experts = parse_experts(spec(), options_.experts);
    if (!options_.heads.empty()) cut_.heads = parse_heads(spec(), options_.heads);
    const double keep = options_.by.empty() ? 0 : parse_keep(options_.keep);
    check_save();
    TextOptions text = options_.text;
    choose_data(spec(), text);
    texts_ = read_scored_texts(model_, text);
    if (cut_.heads.empty() && options_.by.empty()) cut_.ablation = Ablation::zero;  // experts alone
    if (!options_.by.empty()) choose(keep);
    measure();
    report_effect();
    if (spec().kind != ModelSpec::Kind::encoder_only && cut_.ablation != Ablation::resample) before_and_after();
    if (!options_.out.empty()) save();
    if (options_.json) print_json(json_);
  }

 private:
  const ModelSpec& spec() const { return model_.spec(); }
  void say(const std::string& line) const {
    if (!quiet_) std::cout << line << '\n';
  }
  void check_save() const {
    if (options_.out.empty()) return;
    QKV_CHECK(cut_.ablation != Ablation::resample, "--out with --with resample",
              Hint("a written model has zero or a mean where heads were"));
    if (options_.by.empty())
      cut_out(model_.checkpoint(), model_.engine().device(), {cut_.heads, cut_.experts, Ablation::zero});
  }

  void measure() {
    if (cut_.ablation == Ablation::zero) return;
    outputs_ = watched("means of heads", std::ssize(texts_), [&](const Reader::Finished& finished) {
      return measure_outputs(reader_, texts_, cut_.ablation, finished);
    });
  }

  // On every other text, so that what the choice costs is measured on texts it has not seen.
  void choose(double keep) {
    QKV_CHECK(texts_.size() > 1, "heads are chosen on some texts and judged on others, but there is ", texts_.size(),
              Hint("give more --data"));
    const int64_t heads = std::ssize(all_heads(spec())), must_stay = std::ssize(all_attentions(spec()));
    const auto kept = static_cast<int64_t>(std::llround(keep * static_cast<double>(heads)));
    QKV_CHECK(
        kept >= must_stay, "--keep ", options_.keep, " leaves ", kept, " of ", heads, " heads but each of ", must_stay,
        " attentions keeps one",
        Hint("keep ", std::ceil(100.0 * static_cast<double>(must_stay) / static_cast<double>(heads)), "% or more"));
    QKV_CHECK(kept < heads, "--keep ", options_.keep, " of ", heads, " heads cuts none", Hint("keep fewer"));
    std::vector<TokenText> chosen_on, unseen;
    for (size_t i = 0; i < texts_.size(); ++i) (i % 2 == 0 ? chosen_on : unseen).push_back(texts_[i]);
    texts_ = std::move(chosen_on);
    measure();
    CurveOptions curve{.ablation = cut_.ablation, .outputs = outputs_};
    const auto alone = watched("each head alone", heads, [&](const Reader::Finished& finished) {
      return ablation_importance(reader_, texts_, cut_.ablation, outputs_, finished);
    });
    std::vector<PruningCurve> curves;
    for (const Order order : {Order::gradient, Order::ablation, Order::random}) {
      curve.known = order == Order::ablation ? cut_order(alone) : std::vector<HeadId>{};
      curves.push_back(watched(fmt::format("by {}", name_of(order)), 10, [&](const Reader::Finished& finished) {
        curve.finished = finished;
        return pruning_curve(reader_, texts_, order, curve);
      }));
      if (options_.by == name_of(order)) {
        cut_.heads.assign(curves.back().cut.begin(), curves.back().cut.begin() + (heads - kept));
      }
      json_["curves"].push_back(to_json(spec(), curves.back()));
    }
    for (const HeadImportance& h : alone) {
      json_["alone"].push_back({{"head", name_of(spec(), h.head)}, {"delta", to_json(h.raw)}});
    }
    std::sort(cut_.heads.begin(), cut_.heads.end());
    say(draw_curves(curves, terminal_columns()));
    say(fmt::format("chosen by {} on {} texts; what follows is of {} others\n", options_.by, texts_.size(),
                    unseen.size()));
    texts_ = std::move(unseen);
  }

  void report_effect() {
    probe_ = std::make_unique<CutProbe>(spec(), cut_, outputs_);
    const CutEffect effect = watched("with and without", 2 * std::ssize(texts_), [&](const Reader::Finished& finished) {
      return effect_of(reader_, texts_, *probe_, finished);
    });
    ablated_ = effect.after.mean;
    std::vector<std::string> names;
    for (const HeadId& head : cut_.heads) names.push_back(name_of(spec(), head));
    for (const ExpertId& expert : cut_.experts) names.push_back(name_of(expert));
    const std::string experts = fmt::format(" and {} of {} experts", cut_.experts.size(), all_experts(spec()).size());
    std::string line = wrapped(fmt::format("cut {} of {} heads{}: {}", cut_.heads.size(), all_heads(spec()).size(),
                                           all_experts(spec()).empty() ? "" : experts, fmt::join(names, ", ")),
                               terminal_columns());
    line.pop_back();
    say(line);
    say(described(effect) + fmt::format("\n  heads replaced by {}", name_of(cut_.ablation)));
    json_["cut"] = names;
    json_["with"] = name_of(cut_.ablation);
    json_["effect"] = to_json(effect);
  }

  void before_and_after() {
    ContinuationOptions asked{.prompt = options_.prompt, .start = texts_.front(), .ids = options_.text.ids};
    if (asked.ids) asked.given = prompt_ids();
    const std::string given = continuation_prompt(model_, asked), before = greedy_continuation(model_, asked, nullptr),
                      after = greedy_continuation(model_, asked, probe_.get());
    say("");
    say_text("prompt", given);
    say_text("before", before);
    say_text("after", after);
    json_["written"] = {{"prompt", given}, {"before", before}, {"after", after}};
  }
  // Of --prompt with --ids; empty without one.
  std::vector<int32_t> prompt_ids() const {
    if (options_.prompt.empty()) return {};
    const TokenText given = api::tokens_of(model_, library_text({.text = options_.prompt, .target = {}, .ids = true}));
    return spec().has_source() ? given.source : given.ids;
  }
  void say_text(const char* label, const std::string& text) const {
    constexpr int kLeft = 9;
    for (const std::string& line : wrap(escaped(text), std::max(terminal_columns() - kLeft, 20))) {
      say(fmt::format("{:<{}}{}", label, kLeft, line));
      label = "";
    }
  }

  // Tokens per second, over a while.
  double speed(Reader& reader) const {
    constexpr double kLongEnough = 0.3;
    double tokens = 0, seconds = 0;
    const auto start = std::chrono::steady_clock::now();
    while (seconds < kLongEnough) {
      reader.losses(texts_);
      for (const TokenText& text : texts_) tokens += static_cast<double>(text.ids.size() + text.source.size());
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    return tokens / seconds;
  }

  void save() {
    const SmallerModel made = cut_out(model_.checkpoint(), model_.engine().device(), cut_, outputs_.get());
    const std::vector<std::string> notes = write_cut_model(options_.out, made, model_.path());
    const auto smaller = Checkpoint::open(options_.out).model(model_.engine().device());
    Reader reader(*smaller, model_.engine(), {.precision = model_.precision()});
    constexpr int kRounds = 5;  // in turn, the best of each: the machine may be busy
    double before = 0, after = 0;
    for (int round = 0; round < kRounds; ++round) {
      before = std::max(before, speed(reader_));
      after = std::max(after, speed(reader));
    }
    const SavedCut saved{.folder = options_.out,
                         .parameters = summarise(smaller->spec()).parameters,
                         .parameters_before = summarise(spec()).parameters,
                         .loss = estimate(loss_sums(reader, texts_)),
                         .ablated_loss = ablated_,
                         .speed = after,
                         .speed_before = before};
    say("\n" + described(saved));
    for (const std::string& note : notes) say("  " + note);
    json_["saved"] = to_json(saved);
  }

  const CutArguments& options_;
  api::Model library_;
  const OpenModel& model_;
  Reader reader_;
  bool quiet_;
  Cut cut_;
  std::vector<TokenText> texts_;
  std::shared_ptr<const HeadOutputs> outputs_;
  std::unique_ptr<CutProbe> probe_;
  double ablated_ = 0;
  OrderedJson json_;
};

}  // namespace

void add_cut(Command app) {
  auto options = std::make_shared<CutArguments>();
  const Command command = app.add_command("cut", "Cut heads: what it costs, and a smaller model without them");
  add_model_options(command, options->model, ModelUse::looks);
  add_text_options(command, options->text);
  add_ids_option(command, options->text);
  const Option heads = command.add_option("--heads HEADS", options->heads, "The heads to cut: L3H7,L4");
  command.add_option("--experts EXPERTS", options->experts, "The experts to cut: L1E3,L2E0");
  const Option keep = command.add_option("--keep SHARE", options->keep, "Share of the heads that stay, as 60%");
  command.add_option("--by", options->by, "Which heads go first")
      .one_of({"gradient", "ablation", "random"})
      .needs(keep)
      .excludes(heads);
  command.add_option("--with", options->with, "What replaces a cut head; otherwise mean, with --out zero")
      .one_of({"zero", "mean", "resample"});
  command.add_output_folder("--out DIR", options->out,
                            "Write the model without them to this folder; it must not exist yet");
  command.add_option("--prompt TEXT", options->prompt,
                     "Text to continue, before and after; otherwise from the data. With --ids token ids");
  command.add_flag("--json", options->json, "Print the report as JSON, and nothing else");
  command.footer(kCutHelp);
  command.callback([options] {
    QKV_CHECK(!options->heads.empty() || !options->by.empty() || !options->experts.empty(), "nothing to cut was named",
              Hint("--heads L0H1, --by gradient --keep 60%, or --experts L0E1"));
    QKV_CHECK(options->keep.empty() || !options->by.empty(), "--keep ", options->keep, " without --by",
              Hint("say which heads go first: --by gradient, ablation or random"));
    CutCommand(*options).run();
  });
}

}  // namespace qkv::app
