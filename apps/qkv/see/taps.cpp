// qkv taps: the places inside a model that can be read, by name; their values; what reading costs.
#include "inspect/taps/taps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "base/error.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/token_ids.h"
#include "inspect/taps/tap_price.h"
#include "io/npz.h"

namespace qkv::app {
namespace {

constexpr const char* kTapsExamples =
    R"(Names: LAYER.SITE, as 3.attn.q; in an encoder-decoder enc.3.attn.q, dec.3.attn.q, cross.3.attn.q. A site without a
layer, attn.q, is that of every layer. embed, final and logits have none. Names of TransformerLens
(blocks.3.attn.hook_q, ln_final.hook_normalized) are read too.

Letters: N rows of a pass, M rows whose keys enter, S keys, C width, H heads, G key/value heads, D and D' widths of keys
and values, F inner width of the feed-forward, E experts, k of them chosen, V vocabulary.

Examples:
  qkv taps                                          all sites, what they are, their shapes
  qkv taps MODEL                                    those of this model, with its sizes
  qkv taps MODEL "The cat sat" --sites 0.attn.z     their values for a text
  qkv taps MODEL "The cat sat" --sites attn.z,0.mlp.post --npz cat.npz
                                                    the same for numpy.load: arrays L0.attn.z, L1.attn.z, L0.mlp.post
  qkv taps MODEL --ids "1 403 407" --sites final    token ids, as they are; needs no tokenizer
  qkv taps MODEL --cost                             what reading them costs)";

struct TapsArguments {
  ModelOptions model;
  GivenText given;
  std::string sites, npz;
  ReportOptions report;
  bool cost = false;
};

using Report = nlohmann::ordered_json;

std::string shape_text(const std::vector<TapAxis>& shape) {
  std::string text;
  for (const TapAxis& axis : shape) {
    text += (text.empty() ? "[" : ", ") + (axis.size > 0 ? std::to_string(axis.size) : axis.letter);
  }
  return text + "]";
}

Report shape_json(const std::vector<TapAxis>& shape) {
  Report axes = Report::array();
  for (const TapAxis& axis : shape) {
    axes.push_back(axis.size > 0 ? Report{{"axis", axis.letter}, {"size", axis.size}} : Report{{"axis", axis.letter}});
  }
  return axes;
}

Report show_sites(bool print) {
  Report sites = Report::array();
  constexpr int kLeft = 28;
  const int room = std::max(terminal_columns() - kLeft, 20);
  for (const SiteInfo& site : all_sites()) {
    sites.push_back({{"site", site.name}, {"shape", site.shape}, {"meaning", site.meaning}});
    if (site.transformer_lens[0] != '\0') sites.back()["transformer_lens"] = site.transformer_lens;
    if (print) {
      std::string left = fmt::format("{:<14} {:<11}  ", site.name, site.shape);
      for (const std::string& line : wrap(site.meaning, room)) {
        std::cout << left << line << '\n';
        left.assign(kLeft, ' ');
      }
    }
  }
  return {{"sites", sites}};
}

Report show_model(const OpenModel& model, bool print) {
  Report taps = Report::array();
  for (const TapInfo& tap : all_taps(model.spec())) {
    taps.push_back({{"name", tap.name}, {"shape", shape_json(tap.shape)}});
    if (print) std::cout << fmt::format("{:<24} {}\n", tap.name, shape_text(tap.shape));
  }
  return {{"model", model.path()}, {"family", model.spec().family}, {"taps", taps}};
}

// [tokens, heads, width], [tokens, width] or whatever shape a tap has. Scores of keys a row does not see are -inf.
void write_arrays(const std::string& path, const ModelSpec& spec, const api::ReadResult& read,
                  const std::vector<TapId>& wanted) {
  NpzWriter out(path);
  for (const TapId& tap : wanted) {
    const api::Array& seen = read.at(name_of(spec, tap));  // a shared expert's mlp.out comes first, then the sum
    out.add(array_name(spec, tap), seen.values, seen.shape);
  }
  out.commit();
  std::cerr << "wrote " << path << '\n';
}

Report show_text(const api::Model& library, const TapsArguments& options, bool print) {
  const OpenModel& model = looking_inside(library);
  const ModelSpec& spec = model.spec();
  std::string sites = options.sites;
  if (sites.empty()) {
    for (const TapInfo& tap : all_taps(spec)) sites += (sites.empty() ? "" : ",") + tap.name;
  }
  const std::vector<TapId> wanted = parse_taps(spec, sites);
  QKV_CHECK(spec.has_source() || options.given.target.empty(), "--target, but a ", spec.family, " continues its text",
            Hint("leave it out: only models that translate have a source and a target"));
  const api::ReadResult read = library.read(library_text(options.given), {.keep = sites});
  if (!options.npz.empty()) write_arrays(options.npz, spec, read, wanted);
  Report taps = Report::array();
  for (const api::Array& tap : read.arrays) {
    double sum = 0, power = 0;
    int64_t finite = 0;  // scores of keys a row does not see are -inf
    for (const float v : tap.values) {
      if (!std::isfinite(v)) continue;
      ++finite;
      sum += static_cast<double>(v);
      power += static_cast<double>(v) * static_cast<double>(v);
    }
    const double mean = finite > 0 ? sum / static_cast<double>(finite) : 0;
    const std::vector<float> first(tap.values.begin(),
                                   tap.values.begin() + std::min<std::ptrdiff_t>(4, std::ssize(tap.values)));
    Report sizes = Report::array(), numbers = Report::array();
    std::string shape, shown;
    for (const int64_t size : tap.shape) {
      sizes.push_back(size);
      shape += (shape.empty() ? "[" : ", ") + std::to_string(size);
    }
    for (const float v : first) {
      numbers.push_back(v == -INFINITY ? Report() : Report(v));
      shown += fmt::format(" {:.4g}", v);
    }
    taps.push_back({{"name", tap.name},
                    {"shape", sizes},
                    {"n", finite},
                    {"mean", mean},
                    {"norm", std::sqrt(power)},
                    {"first", numbers}});
    if (!print) continue;
    shown = shown.substr(shown.empty() ? 0 : 1) + (tap.values.size() > first.size() ? " ..." : "");
    std::cout << fmt::format("{:<22} {}]\n", tap.name, shape)
              << inked(Ink::dim, fmt::format("  mean {:.4g}, norm {:.4g}: {}", mean, std::sqrt(power), shown)) << '\n';
  }
  return {{"model", model.path()}, {"tokens", read.ids.size()}, {"taps", taps}};
}

Report show_cost(const OpenModel& model, bool print) {
  QKV_CHECK(model.spec().vocabulary > 0, model.path(), " has no vocabulary to run", Hint("give another model"));
  PriceOptions options{.precision = model.precision()};
  if (model.spec().context > 0) options.tokens = std::min(options.tokens, model.spec().context);
  Progress progress("passes", options.rounds);
  InterruptWatch interrupts;
  options.finished = [&](int64_t round) {
    progress.update(round);
    if (interrupts.seen()) throw Interrupted{};
    return true;
  };
  const std::vector<TapPrice> prices = tap_prices(model.model(), model.engine(), options);
  progress.finish();
  Report list = Report::array();
  if (print) {
    std::cout << fmt::format("{} tokens, {} rounds in turns, {} threads; a pass without reading is 1\n", options.tokens,
                             prices.front().ratio.n, model.engine().threads());
  }
  for (const TapPrice& price : prices) {
    list.push_back({{"what", price.what},
                    {"seconds", price.seconds},
                    {"ratio", to_json(price.ratio)},
                    {"same_bits", price.same_bits}});
    if (!print) continue;
    std::cout << fmt::format("{:<29} {:6.3f}  ({:.3f} to {:.3f}){}\n", price.what, price.ratio.mean, price.ratio.low,
                             price.ratio.high, price.same_bits ? "" : "  OTHER BITS");
  }
  const bool same = std::all_of(prices.begin(), prices.end(), [](const TapPrice& price) { return price.same_bits; });
  if (print && same) {
    std::cout << "the logits are the same bits in all of them\n";
  }
  return {{"model", model.path()}, {"tokens", options.tokens}, {"prices", list}};
}

void taps(const TapsArguments& options) {
  const bool print = !options.report.json;
  QKV_CHECK(options.model.path.empty() ? !options.cost && options.sites.empty() && options.npz.empty() : true,
            "--cost, --sites and --npz are about a model", Hint("qkv taps MODEL ..."));
  QKV_CHECK(options.npz.empty() || !options.given.text.empty(), "--npz ", options.npz,
            " is for their values for a text", Hint("qkv taps MODEL \"text\" --npz ", options.npz));
  QKV_CHECK(options.sites.empty() || !options.given.text.empty(), "--sites ", options.sites,
            " shows their values for a text", Hint("qkv taps MODEL \"text\" --sites ", options.sites));
  Report report;
  if (options.model.path.empty()) {
    report = show_sites(print);
  } else {
    const api::Model model = open_library(options.model);
    report = options.cost                 ? show_cost(looking_inside(model), print)
             : options.given.text.empty() ? show_model(looking_inside(model), print)
                                          : show_text(model, options, print);
  }
  write_report(options.report, report);
}

}  // namespace

void add_taps(Command app) {
  const Command command = app.add_command("taps", "Values inside a model, by name: queries, keys, values, ...");
  const auto options = std::make_shared<TapsArguments>();
  add_model_options(command, options->model, ModelUse::looks);
  command.option("MODEL").optional();
  command.add_option("TEXT", options->given.text,
                     "Show the values for this text; for a model that translates, the source");
  command.add_option("--target TEXT", options->given.target, "What a model that translates has written so far");
  command.add_flag("--ids", options->given.ids, "TEXT and --target are token ids; needs no tokenizer");
  command.add_option("--sites NAMES", options->sites, "Which taps, separated by commas; otherwise all");
  command.add_option("--npz FILE", options->npz, "Write their values to a file, for NumPy");
  command.add_flag("--cost", options->cost, "Measure what reading costs");
  add_report_options(command, options->report);
  command.footer(kTapsExamples);
  command.callback([options] { taps(*options); });
}

}  // namespace qkv::app
