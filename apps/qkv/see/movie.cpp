// qkv movie: how a model learnt, from the snapshots of qkv train --watch.
#include "inspect/watch/movie.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/reports.h"
#include "inspect/report/report_html.h"
#include "see/movie_texts.h"
#include "see/movie_view.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMovieExamples = R"(Examples:
  qkv train demo --watch --out my-run         take the snapshots while it learns
  qkv movie my-run                            roles, importance, motion, phases
  qkv movie my-run --html movie.html        the same as one page for a browser
  qkv movie my-run --json                   all numbers with n and 95 % intervals

Phases: unigram and bigram are the steps at which the model was nearest to plain frequencies (KL), induction the steepest
rise of the best head's prefix matching if it is a jump, plateau the step from which the loss is flat. "Not seen" is an
answer. docs/looking.md says how all of it is measured.)";

struct MovieArguments {
  std::string run, html;
  ReportOptions report;
};

void movie(const MovieArguments& options) {
  QKV_CHECK(!options.report.json || options.html != "-", "--json and --html - both go to standard output",
            Hint("give --html a file"));
  Progress progress("reading snapshots", 0);
  const Movie made = make_movie(options.run, [&](size_t done, size_t) { progress.update(static_cast<int64_t>(done)); });
  progress.finish();
  const std::vector<std::string> texts = movie_texts(options.run, made.embedding.tokens);
  const fs::path run = fs::path(options.run).lexically_normal();
  const std::string name = (run.has_filename() ? run : run.parent_path()).filename().string();
  const Json report{
      {"report", "movie"}, {"model", name}, {"made_with", "qkv movie " + options.run}, {"movie", to_json(made, texts)}};
  const bool shown = !options.report.json && options.html != "-";
  if (shown) show_movie(made, run, texts);
  write_report(options.report, report_text(report, -1));
  if (!options.html.empty()) write_out(options.html, report_html(report));
  if (shown && !options.html.empty()) std::cout << "\nthe page: " << options.html << '\n';
}

}  // namespace

void add_movie(Command app) {
  const Command command = app.add_command("movie", "How a model learnt, from the snapshots of train --watch");
  const auto options = std::make_shared<MovieArguments>();
  command.add_option("RUN", options->run, "The folder of a run that was trained with --watch").required();
  add_report_options(command, options->report);
  command.add_output_file("--html FILE", options->html, "Write one page that opens offline");
  command.footer(kMovieExamples);
  command.callback([options] { movie(*options); });
}

}  // namespace qkv::app
