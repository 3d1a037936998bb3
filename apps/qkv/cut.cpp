// qkv cut: what happens without some heads, which heads can go, and a smaller model without them.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <iostream>

#include "base/error.h"
#include "base/printable.h"
#include "base/progress.h"
#include "commands.h"
#include "cut_view.h"
#include "drawing.h"
#include "inspect/cut_model.h"
#include "interrupt.h"
#include "reports.h"
#include "written_on.h"

namespace qkv::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Heads are named L3H7, head 7 of layer 3; L3 is all of a layer. In models that translate E3H7 is the encoder's and X3H7
looks from the decoder at the encoder. Experts are named L1E3.
A cut head says its mean over the texts, nothing (--with zero), or what it says in another text (--with resample). What
it costs is the loss added, nats a token, with a 95 % interval by the paired bootstrap over texts.
--by tries all three orders, draws what each costs from all heads to one in every attention, and takes the one it names.
--save writes a model without the heads. It says what the model says with them at zero (with --with mean: their means go
into the bias of W_O), runs faster, and only qkv can load it.

Examples:
  qkv cut MODEL --heads L1H2,L3H0 --data world
  qkv cut MODEL --by gradient --keep 70% --data text.txt --save SMALLER
  qkv cut MODEL --experts L1E3 --data world --json -)";

struct Options {
  InspectOptions inspect;
  TextOptions text{.tokens = 8000};
  std::string heads, experts, by, keep, with, save, prompt, json;
  int64_t max_new = 24;
  uint64_t seed = 0;
};

double parse_keep(const std::string& given) {
  double value = 0;
  const char* end = given.data() + given.size();
  const auto [at, failed] = std::from_chars(given.data(), end, value);
  const bool percent = failed == std::errc{} && at + 1 == end && *at == '%';
  QKV_CHECK(failed == std::errc{} && (percent || at == end), "--keep is ", printable(given),
            Hint("a share of the heads, as 60% or 0.6"));
  const double share = percent ? value / 100 : value;
  QKV_CHECK(share > 0 && share < 1, "--keep ", given, share >= 1 ? " cuts nothing" : " leaves no head",
            Hint("more than 0 % and less than 100 %"));
  return share;
}

class CutCommand {
 public:
  explicit CutCommand(const Options& options)
      : options_(options),
        inspected_(options.inspect, BlockWeights::decoded),
        reader_(inspected_.model(), inspected_.engine(), {.precision = inspected_.precision()}),
        quiet_(options.json == "-") {
    cut_.ablation = options.with == "zero" || (options.with.empty() && !options.save.empty()) ? Ablation::zero
                    : options.with == "resample"                                              ? Ablation::resample
                                                                                              : Ablation::mean;
  }

  void run() {
    if (!options_.experts.empty()) cut_.experts = parse_experts(spec(), options_.experts);
    if (!options_.heads.empty()) cut_.heads = parse_heads(spec(), options_.heads);
    const double keep = options_.by.empty() ? 0 : parse_keep(options_.keep);
    check_save();
    TextOptions text = options_.text;
    if (text.data.empty()) text.data = spec().kind == ModelSpec::Kind::encoder_decoder ? "world:pairs" : "world";
    texts_ = scored_texts(inspected_, text);
    if (cut_.heads.empty() && options_.by.empty()) cut_.ablation = Ablation::zero;  // experts alone
    if (cut_.ablation != Ablation::zero) outputs_ = measured();
    if (!options_.by.empty()) choose(keep);
    report_effect();
    if (spec().kind != ModelSpec::Kind::encoder_only && cut_.ablation != Ablation::resample) before_and_after();
    if (!options_.save.empty()) save();
    if (!options_.json.empty()) write_json(options_.json, json_);
  }

 private:
  const ModelSpec& spec() const { return inspected_.spec(); }
  void say(const std::string& line) const {
    if (!quiet_) std::cout << line << '\n';
  }
  template <class Made>
  Made watched(const char* what, int64_t total, const std::function<Made(const Reader::Finished&)>& work) const {
    Progress progress(what, total);
    const InterruptWatch watch;
    return work([&](size_t done) {
      if (watch.seen()) throw Interrupted{};
      progress.update(static_cast<int64_t>(done));
      return true;
    });
  }

  void check_save() const {
    if (options_.save.empty()) return;
    std::error_code ignored;
    QKV_CHECK(!std::filesystem::exists(options_.save, ignored), options_.save, ": is already there",
              Hint("nothing is overwritten; remove it or choose another name"));
    QKV_CHECK(cut_.ablation != Ablation::resample, "--save with --with resample",
              Hint("a saved model says nothing or a mean where heads were"));
    if (options_.by.empty())
      cut_out(inspected_.checkpoint(), inspected_.engine().device(), {cut_.heads, cut_.experts, Ablation::zero});
  }

  std::shared_ptr<const HeadOutputs> measured() const {
    return watched<std::shared_ptr<const HeadOutputs>>(
        "what heads say", std::ssize(texts_),
        [&](const Reader::Finished& f) { return measure_outputs(reader_, texts_, cut_.ablation, f); });
  }

  void choose(double keep) {
    const int64_t heads = std::ssize(all_heads(spec())), must_stay = std::ssize(all_attentions(spec()));
    const auto kept = static_cast<int64_t>(std::llround(keep * static_cast<double>(heads)));
    QKV_CHECK(
        kept >= must_stay, "--keep ", options_.keep, " leaves ", kept, " of ", heads, " heads but each of ", must_stay,
        " attentions keeps one",
        Hint("keep ", std::ceil(100.0 * static_cast<double>(must_stay) / static_cast<double>(heads)), "% or more"));
    QKV_CHECK(kept < heads, "--keep ", options_.keep, " of ", heads, " heads cuts none", Hint("keep fewer"));
    CurveOptions curve{.ablation = cut_.ablation, .outputs = outputs_, .seed = options_.seed};
    const auto alone = watched<std::vector<HeadImportance>>("each head alone", heads, [&](const Reader::Finished& f) {
      return ablation_importance(reader_, texts_, cut_.ablation, outputs_, f);
    });
    std::vector<PruningCurve> curves;
    for (const Order order : {Order::gradient, Order::ablation, Order::random}) {
      curve.known = order == Order::ablation ? cut_order(alone) : std::vector<HeadId>{};
      curves.push_back(
          watched<PruningCurve>(fmt::format("by {}", name_of(order)).c_str(), 10, [&](const Reader::Finished& f) {
            curve.finished = f;
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
  }

  std::string names() const {
    std::string all;
    for (const HeadId& head : cut_.heads) all += (all.empty() ? "" : ",") + name_of(spec(), head);
    for (const ExpertId& expert : cut_.experts) all += (all.empty() ? "" : ",") + name_of(expert);
    return all;
  }

  void report_effect() {
    probe_ = std::make_unique<CutProbe>(spec(), cut_, outputs_);
    const CutEffect effect =
        watched<CutEffect>("with and without", 2 * std::ssize(texts_),
                           [&](const Reader::Finished& f) { return effect_of(reader_, texts_, *probe_, f); });
    ablated_ = effect.after.mean;
    say(fmt::format("cut {} of {} heads{}: {}", cut_.heads.size(), all_heads(spec()).size(),
                    cut_.experts.empty() ? "" : fmt::format(", {} experts", cut_.experts.size()), names()));
    say(described(effect) + fmt::format("\n  heads replaced by {}", name_of(cut_.ablation)));
    for (const HeadId& head : cut_.heads) json_["cut"].push_back(name_of(spec(), head));
    for (const ExpertId& expert : cut_.experts) json_["cut"].push_back(name_of(expert));
    json_["with"] = name_of(cut_.ablation);
    json_["effect"] = to_json(effect);
  }

  void before_and_after() {
    const WrittenOn asked{.prompt = options_.prompt, .otherwise = texts_.front(), .max_new = options_.max_new};
    const std::string given = prompt_of(inspected_, asked), before = written_on(inspected_, asked, nullptr),
                      after = written_on(inspected_, asked, probe_.get());
    const int columns = terminal_columns() - 9;
    say(fmt::format("\nprompt   {}\nbefore   {}\nafter    {}", in_cells(given, columns), in_cells(before, columns),
                    in_cells(after, columns)));
    json_["written"] = {{"prompt", given}, {"before", before}, {"after", after}};
  }

  static int64_t numbers(const Weights& weights) {
    int64_t count = 0;
    for (const auto& [name, weight] : weights) count += weight.shape().count();
    return count;
  }

  // Tokens a second, the best of a few: the machine may be busy.
  double speed(Reader& reader) const {
    int64_t tokens = 0;
    for (const SeenText& text : texts_) tokens += std::ssize(text.ids) + std::ssize(text.source);
    const auto start = std::chrono::steady_clock::now();
    reader.losses(texts_);
    return static_cast<double>(tokens) /
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void save() {
    const SmallerModel made = cut_out(inspected_.checkpoint(), inspected_.engine().device(), cut_, outputs_.get());
    const std::vector<std::string> notes = write_cut_model(options_.save, made, inspected_.path());
    const auto smaller = Checkpoint::open(options_.save).model(inspected_.engine().device());
    Reader reader(*smaller, inspected_.engine(), {.precision = inspected_.precision()});
    const Estimate loss = estimate(loss_sums(reader, texts_));
    constexpr int kRounds = 5;
    double before = 0, after = 0;
    for (int round = 0; round < kRounds; ++round) {
      before = std::max(before, speed(reader_));
      after = std::max(after, speed(reader));
    }
    const int64_t whole = numbers(inspected_.model().weights()), left = numbers(smaller->weights());
    say(fmt::format("\nsaved {}: {} of {} numbers\n  loss {}, of the ablated model {:.4f}, apart {:.1e}", options_.save,
                    left, whole, with_interval(loss), ablated_, std::abs(loss.mean - ablated_)));
    say(fmt::format("  reads {:.0f} tokens/s, the whole model {:.0f}: {:.2f} times as fast (best of {})", after, before,
                    after / before, kRounds));
    for (const std::string& note : notes) say("  " + note);
    json_["saved"] = {{"folder", options_.save},       {"numbers", left},
                      {"numbers_before", whole},       {"loss", to_json(loss)},
                      {"tokens_per_second", after},    {"tokens_per_second_before", before},
                      {"hugging_face_can_load", false}};
  }

  const Options& options_;
  Inspected inspected_;
  mutable Reader reader_;
  bool quiet_;
  Cut cut_;
  std::vector<SeenText> texts_;
  std::shared_ptr<const HeadOutputs> outputs_;
  std::unique_ptr<CutProbe> probe_;
  double ablated_ = 0;
  OrderedJson json_;
};

}  // namespace

void add_cut(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("cut", "What happens without some heads, and a model without them");
  add_inspect_options(*command, options->inspect);
  add_text_options(*command, options->text);
  command->get_option("--data")->required(false)->default_str("world");
  CLI::Option* heads = command->add_option("--heads", options->heads, "The heads to cut: L3H7,L4");
  command->add_option("--experts", options->experts, "The experts to cut: L1E3,L2E0");
  CLI::Option* keep = command->add_option("--keep", options->keep, "How many heads stay, as 60%");
  command->add_option("--by", options->by, "Which go first")
      ->check(CLI::IsMember({"gradient", "ablation", "random"}))
      ->needs(keep)
      ->excludes(heads);
  command->add_option("--with", options->with, "What stands in for a head: mean; with --save zero")
      ->check(CLI::IsMember({"zero", "mean", "resample"}));
  command->add_option("--save", options->save, "A folder for the model without them");
  command->add_option("--prompt", options->prompt, "What to write on from, before and after; otherwise from the data");
  command->add_option("--max-new", options->max_new, "How many tokens of it")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the random order")->capture_default_str();
  command->add_option("--json", options->json, "The report as JSON to a file; - is standard output");
  command->footer(kHelp);
  command->callback([options] {
    QKV_CHECK(!options->heads.empty() || !options->by.empty() || !options->experts.empty(), "nothing to cut was named",
              Hint("--heads L0H1, --by gradient --keep 60%, or --experts L0E1"));
    QKV_CHECK(options->keep.empty() || !options->by.empty(), "--keep ", options->keep, " without --by",
              Hint("say which heads go first: --by gradient, ablation or random"));
    CutCommand(*options).run();
  });
}

}  // namespace qkv::app
