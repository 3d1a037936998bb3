// qkv twins: heads that do the same.
#include "inspect/heads/twins.h"

#include <fmt/format.h>

#include <iostream>

#include "common/commands.h"
#include "common/drawing.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/texts.h"

namespace qkv::app {
namespace {

constexpr const char* kTwinsHelp =
    R"(Two heads are duplicates if their maps are alike (d below 0.1, the root of the mean Jensen-Shannon divergence in bits),
what they write moves together (linear CKA above 0.9), and the model needs the second more once the first is gone
(syn = what cutting both costs beyond what cutting each costs, nats per token, above 0). Maps are compared for all pairs of
one kind; the closest are examined further. QK and OV: cosines of their weights.

Examples:
  qkv twins MODEL --data world
  qkv twins MODEL --data text.txt --closest 30 --out twins.json)";

struct TwinsArguments {
  ModelOptions model;
  TextOptions text{.tokens = 4000};
  TwinOptions twins;
  ReportOptions report;
};

std::string cosine(const std::optional<double>& value) {
  return value ? fmt::format("{:5.2f}", *value) : "    -";
}

void print_twins(const ModelSpec& spec, const Twins& found) {
  std::cout << fmt::format("{:<15} {:>5} {:>5} {:>5} {:>5}  {}\n", "heads", "d", "CKA", "QK", "OV", "syn [95 %]");
  int64_t duplicates = 0;
  for (const TwinPair& pair : found.closest) {
    duplicates += pair.duplicate();
    std::cout << fmt::format("{:<15} {:5.3f} {:5.2f} {} {}  {}{}\n",
                             name_of(spec, pair.a) + " " + name_of(spec, pair.b), pair.distance, pair.cka,
                             cosine(pair.qk_cosine), cosine(pair.ov_cosine), with_interval(pair.synergy),
                             pair.duplicate() ? "  duplicate" : "");
  }
  const Estimate& synergy = found.closest.front().synergy;
  std::cout << wrapped(
      fmt::format("{} pairs compared on {} rows, {} with d < 0.1; the closest {} cut on {} tokens of {} texts",
                  found.compared, found.rows, found.alike, found.closest.size(), synergy.n, synergy.texts),
      terminal_columns());
  for (const std::vector<HeadId>& cluster : found.clusters) {
    std::string names;
    for (const HeadId& head : cluster) names += " " + name_of(spec, head);
    std::cout << wrapped("maps alike:" + names, terminal_columns());
  }
  std::cout << (duplicates == 0 ? std::string("duplicates: none found") : fmt::format("duplicates: {}", duplicates))
            << '\n';
}

nlohmann::ordered_json twins_report(const ModelSpec& spec, const Twins& found) {
  nlohmann::ordered_json made{{"compared", found.compared}, {"alike", found.alike}, {"rows", found.rows}};
  made["pairs"] = nlohmann::ordered_json::array();
  for (const TwinPair& pair : found.closest) {
    nlohmann::ordered_json one{{"a", name_of(spec, pair.a)},
                               {"b", name_of(spec, pair.b)},
                               {"distance", pair.distance},
                               {"rows", pair.rows},
                               {"cka", pair.cka},
                               {"synergy", to_json(pair.synergy)},
                               {"duplicate", pair.duplicate()}};
    if (pair.qk_cosine) one["qk_cosine"] = *pair.qk_cosine;
    if (pair.ov_cosine) one["ov_cosine"] = *pair.ov_cosine;
    made["pairs"].push_back(std::move(one));
  }
  made["clusters"] = nlohmann::ordered_json::array();
  for (const std::vector<HeadId>& cluster : found.clusters) {
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const HeadId& head : cluster) names.push_back(name_of(spec, head));
    made["clusters"].push_back(std::move(names));
  }
  return made;
}

void run_twins(TwinsArguments options) {
  const api::Model library = open_library(options.model, true);
  const OpenModel& model = looking_inside(library);
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  choose_data(model.spec(), options.text);
  const std::vector<TokenText> texts = read_scored_texts(model, options.text);
  const Twins found = watched("pairs of heads", options.twins.pairs, [&](const Reader::Finished& finished) {
    options.twins.finished = finished;
    return find_twins(reader, texts, options.twins);
  });
  if (!options.report.json) print_twins(model.spec(), found);
  write_report(options.report, twins_report(model.spec(), found));
}

}  // namespace

void add_twins(Command app) {
  auto options = std::make_shared<TwinsArguments>();
  const Command command = app.add_command("twins", "Duplicate heads");
  add_model_options(command, options->model, ModelUse::looks);
  add_text_options(command, options->text);
  command.add_option("--closest", options->twins.pairs, "How many of the closest pairs are examined further")
      .between(1, 100000)
      .show_default();
  add_report_options(command, options->report);
  command.footer(kTwinsHelp);
  command.callback([options] { run_twins(*options); });
}

}  // namespace qkv::app
