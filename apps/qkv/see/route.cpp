// qkv route: which tokens the experts of a model get.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "common/commands.h"
#include "common/drawing.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/texts.h"
#include "inspect/heads/expert_use.h"
#include "inspect/texts/word_kinds.h"

namespace qkv::app {
namespace {

constexpr const char* kRouteHelp =
    R"(load: share of tokens that go to an expert; p: the mean probability its router gives it. balance = E sum load p, which is
the number of experts per token if all are used equally. entropy: of the router's probabilities, 1 if it cannot
decide. specialisation: mutual information of expert and kind of token in bits, beside what shuffled kinds give. Below an expert:
the kind of token it gets most often compared with the others, and the expert most often used with it.

Examples:
  qkv route MODEL --data world
  qkv route MODEL --data text.txt --out route.json)";

struct RouteArguments {
  ModelOptions model;
  TextOptions text;
  ReportOptions report;
};

constexpr int64_t kFewest = 5;  // tokens of a kind, to say that an expert likes it

// The kind an expert gets most of, against what all experts get: "number x 2.1".
std::string liking(const LayerRouting& layer, const ExpertUse& use) {
  const auto sum = [](const std::vector<int64_t>& counts) {
    return static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  };
  std::vector<int64_t> all(kWordKinds.size());
  for (const ExpertUse& each : layer.of_expert) {
    for (size_t k = 0; k < all.size(); ++k) all[k] += each.classes[k];
  }
  std::string found;
  double most = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    if (use.classes[k] < kFewest) continue;
    const double times =
        static_cast<double>(use.classes[k]) / sum(use.classes) * sum(all) / static_cast<double>(all[k]);
    if (times <= most) continue;
    most = times;
    found = fmt::format("{} x{:.1f}", kWordKinds[k], times);
  }
  return found;
}

void print_route(const std::vector<LayerRouting>& layers) {
  const int cells = std::clamp(terminal_columns() - 52, 8, 30);
  for (const LayerRouting& layer : layers) {
    std::cout << fmt::format("layer {}: {} experts, {} per token; {} tokens\n", layer.layer, layer.experts,
                             layer.visited, layer.tokens);
    double most = 0;
    for (const ExpertUse& use : layer.of_expert) most = std::max(most, use.load.mean);
    for (size_t e = 0; e < layer.of_expert.size(); ++e) {
      const ExpertUse& use = layer.of_expert[e];
      const auto friends = std::max_element(use.together.begin(), use.together.end());
      const std::string with = layer.visited > 1 && *friends > 0
                                   ? fmt::format("  with E{} {:.2f}", friends - use.together.begin(), *friends)
                                   : "";
      std::cout << fmt::format("  E{:<3} {} {}  p {:.3f}\n", e, bar(use.load.mean / std::max(most, 1e-9), cells),
                               with_interval(use.load), use.probability);
      std::cout << fmt::format("       {}{}\n", liking(layer, use), with);
    }
    std::cout << fmt::format("  balance {:.3f} (even: {}), entropy {}\n", layer.balance, layer.visited,
                             with_interval(layer.entropy));
    std::cout << fmt::format("  specialisation {} bits\n    by chance {:.4f}; n = {} visits\n",
                             with_interval(layer.information), layer.by_chance, layer.information.n);
  }
}

nlohmann::ordered_json route_report(const std::vector<LayerRouting>& layers) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const LayerRouting& layer : layers) {
    nlohmann::ordered_json one{{"layer", layer.layer},
                               {"experts", layer.experts},
                               {"visited", layer.visited},
                               {"tokens", layer.tokens},
                               {"balance", layer.balance},
                               {"entropy", to_json(layer.entropy)},
                               {"information_bits", to_json(layer.information)},
                               {"information_by_chance", layer.by_chance}};
    for (const ExpertUse& use : layer.of_expert) {
      one["of_expert"].push_back({{"load", to_json(use.load)},
                                  {"probability", use.probability},
                                  {"together", use.together},
                                  {"kinds", use.classes}});
    }
    all.push_back(std::move(one));
  }
  return {{"kinds", kWordKinds}, {"layers", std::move(all)}};
}

void run_route(RouteArguments options) {
  const api::Model library = open_library(options.model);
  const OpenModel& model = looking_inside(library);
  check_experts(model.spec());
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  RoutingOptions routing{.class_of = word_kinds(model.tokenizer(), model.spec().vocabulary),
                         .classes = static_cast<int32_t>(kWordKinds.size())};
  choose_data(model.spec(), options.text);
  const std::vector<TokenText> texts = read_texts(model, options.text);
  const std::vector<LayerRouting> layers = watched("reading", std::ssize(texts), [&](const Reader::Finished& finished) {
    routing.finished = finished;
    return measure_routing(reader, texts, routing);
  });
  if (!options.report.json) print_route(layers);
  write_report(options.report, route_report(layers));
}

}  // namespace

void add_route(Command app) {
  auto options = std::make_shared<RouteArguments>();
  const Command command = app.add_command("route", "Which tokens the experts of a model get");
  add_model_options(command, options->model, ModelUse::looks);
  add_text_options(command, options->text);
  add_report_options(command, options->report);
  command.footer(kRouteHelp);
  command.callback([options] { run_route(*options); });
}

}  // namespace qkv::app
