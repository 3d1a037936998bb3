// qkv lens: what a model would say if it ended after each layer, over a corpus; how early its guesses settle.
#include "inspect/lens/lens.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/texts.h"
#include "inspect/lens/tuned_lens.h"

namespace qkv::app {
namespace {

constexpr const char* kLensExamples =
    R"(After each layer the stream goes to the last norm and the head, as if the model ended there (the logit lens):
p_l against the final distribution p_L. The top layer is the output itself. Intervals are 95 %, over texts.

--train learns one affine map for each layer (the tuned lens) on three quarters of the texts, and measures both lenses
on the rest.

Examples:
  qkv lens MODEL                                   how early guesses settle, on the built-in stories
  qkv lens MODEL --data text.txt --tokens 5000     on your own text
  qkv lens MODEL --data world --train              the tuned lens beside it
  qkv lens MODEL --data world --out lens.json      every number with its n and interval
  qkv lens MODEL --data ids.txt --ids              token ids, a text a line; needs no tokenizer)";

struct LensArguments {
  ModelOptions model;
  TextOptions text;
  ReportOptions report;
  bool train = false;
};

using Report = nlohmann::ordered_json;

Report lens_json(const LensReport& report) {
  Report layers = Report::array();
  for (const LensLayer& layer : report.layers) {
    layers.push_back({{"layer", layer.name},
                      {"agrees", to_json(layer.agrees)},
                      {"rank", to_json(layer.rank)},
                      {"entropy", to_json(layer.entropy)},
                      {"kl", to_json(layer.kl)},
                      {"settled", to_json(layer.settled)}});
    if (layer.loss.n > 0) layers.back()["loss"] = to_json(layer.loss);
  }
  return {{"layers", layers}, {"settled_at", to_json(report.settled_at)}};
}

std::string scaled_interval(const Estimate& e, double factor, int digits) {
  const std::string mean = fmt::format("{:.{}f}", e.mean * factor, digits);
  if (!e.has_interval()) return fmt::format("{:>8}", mean);
  return fmt::format("{:>8} ({:.{}f} to {:.{}f})", mean, e.low * factor, digits, e.high * factor, digits);
}

struct Column {
  const char* title;
  Estimate LensLayer::*value;
  double factor;
  int digits;
};

void print_table(const LensReport& report, const Column& left, const Column& right) {
  constexpr int kCells = 27;
  std::cout << inked(Ink::bold, "layer " + in_cells(left.title, kCells + 1) + right.title) << '\n';
  for (const LensLayer& layer : report.layers) {
    const Estimate &a = layer.*left.value, &b = layer.*right.value;
    std::cout << fmt::format("{:<5} ", layer.name) << in_cells(scaled_interval(a, left.factor, left.digits), kCells + 1)
              << (b.n > 0 ? scaled_interval(b, right.factor, right.digits) : "") << '\n';
  }
  std::cout << '\n';
}

void print_settling(const LensReport& report) {
  const int room = std::clamp(terminal_columns() - 36, 8, 40);
  std::cout << inked(Ink::bold, "layer guesses that settle here, %") << '\n';
  for (const LensLayer& layer : report.layers) {
    std::cout << fmt::format("{:<5} ", layer.name) << in_cells(scaled_interval(layer.settled, 100, 1), 28)
              << bar(layer.settled.mean, room) << '\n';
  }
  const Estimate& at = report.settled_at;
  std::cout << fmt::format("on average after {:.2f} of {} layers", at.mean, report.layers.size() - 1);
  if (at.has_interval()) std::cout << fmt::format(" ({:.2f} to {:.2f})", at.low, at.high);
  std::cout << "\n\n";
}

void print_lens(const LensReport& report) {
  print_settling(report);
  print_table(report, {"top guess already final, %", &LensLayer::agrees, 100, 1},
              {"rank of the final guess", &LensLayer::rank, 1, 1});
  print_table(report, {"KL to the output, nats", &LensLayer::kl, 1, 3},
              {report.layers.back().loss.n > 0 ? "loss of the next token, nats" : "", &LensLayer::loss, 1, 3});
  std::cout << inked(Ink::bold, "layer entropy, nats") << '\n';
  for (const LensLayer& layer : report.layers) {
    std::cout << fmt::format("{:<5} ", layer.name) << scaled_interval(layer.entropy, 1, 3) << '\n';
  }
  const Estimate& n = report.layers.back().agrees;
  std::cout << fmt::format("\nn = {} tokens of {} texts", n.n, n.texts)
            << (n.has_interval() ? "\n" : "; too few texts for an interval\n");
}

void print_tuned(const LensReport& plain, const LensReport& tuned) {
  std::cout << inked(Ink::bold, "layer " + in_cells("KL, logit lens", 28) + "KL, tuned lens") << '\n';
  for (size_t d = 0; d + 1 < plain.layers.size(); ++d) {
    std::cout << fmt::format("{:<5} ", plain.layers[d].name) << in_cells(scaled_interval(plain.layers[d].kl, 1, 3), 28)
              << scaled_interval(tuned.layers[d].kl, 1, 3) << '\n';
  }
  const Estimate& n = plain.layers.back().agrees;
  std::cout << fmt::format("\nn = {} tokens of {} texts the maps have not seen\n", n.n, n.texts);
}

void lens(LensArguments options) {
  // Gradients go back through weights as plain numbers.
  const api::Model library = open_library(options.model, options.train);
  const OpenModel& model = looking_inside(library);
  choose_data(model.spec(), options.text);
  const std::vector<TokenText> texts = read_texts(model, options.text);
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  const bool prints = !options.report.json;
  Report report{{"model", model.path()}, {"data", options.text.data}};
  const auto read = [&](std::span<const TokenText> some, const TunedLens* tuned) {
    return watched("texts", std::ssize(some),
                   [&](const Reader::Finished& finished) { return read_lens(reader, some, tuned, finished); });
  };
  if (!options.train) {
    const LensReport found = read(texts, nullptr);
    report["logit_lens"] = lens_json(found);
    if (prints) print_lens(found);
  } else {
    const size_t held = texts.size() / 4;
    QKV_CHECK(held >= 1, texts.size(), " texts are too few to learn from some and measure on others",
              Hint("4 or more: a longer --data, more --tokens, or a smaller --window"));
    const std::span<const TokenText> learnt = std::span(texts).first(texts.size() - held),
                                     kept = std::span(texts).last(held);
    TunedLens tuned(model.model(), model.engine());
    const TunedLens::Rule rule;
    watched("training on texts", std::ssize(learnt) * rule.epochs,
            [&](const Reader::Finished& finished) { tuned.train(reader, learnt, rule, finished); });
    const LensReport plain = read(kept, nullptr), after = read(kept, &tuned);
    report["learnt_texts"] = learnt.size();
    report["logit_lens"] = lens_json(plain);
    report["tuned_lens"] = lens_json(after);
    if (prints) print_tuned(plain, after);
  }
  write_report(options.report, report);
}

}  // namespace

void add_lens(Command app) {
  const Command command = app.add_command("lens", "How early guesses settle, layer by layer, over a corpus");
  const auto options = std::make_shared<LensArguments>();
  add_model_options(command, options->model, ModelUse::looks);
  add_text_options(command, options->text);
  add_ids_option(command, options->text);
  command.add_flag("--train", options->train, "Train a tuned lens and compare");
  add_report_options(command, options->report);
  command.footer(kLensExamples);
  command.callback([options] { lens(*options); });
}

}  // namespace qkv::app
