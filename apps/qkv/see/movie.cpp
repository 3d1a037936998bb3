// qkv movie: how a model learnt, from the snapshots of qkv train --watch.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/reports.h"
#include "inspect/report/report_html.h"
#include "see/movie_report.h"
#include "see/movie_view.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMovieExamples = R"(Examples:
  qkv train demo --watch --out my-run         take the snapshots while it learns
  qkv movie my-run                            roles, importance, motion, phases
  qkv movie world                             how the built-in model learnt
  qkv movie my-run --html movie.html          the same as one page for a browser
  qkv movie my-run --json                     all numbers with n and 95 % intervals

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
  const ToldMovie told =
      movie_of(options.run, [&](size_t done, size_t) { progress.update(static_cast<int64_t>(done)); });
  progress.finish();
  const Json report = movie_report(told, options.run);
  const bool shown = !options.report.json && options.html != "-";
  if (shown) show_movie(told.movie, fs::path(options.run).lexically_normal(), told.texts);
  write_report(options.report, report_text(report, -1));
  if (!options.html.empty()) write_out(options.html, report_html(report));
  if (shown && !options.html.empty()) std::cout << "\nthe page: " << options.html << '\n';
}

}  // namespace

void add_movie(Command app) {
  const Command command = app.add_command("movie", "How a model learnt, from the snapshots of train --watch");
  const auto options = std::make_shared<MovieArguments>();
  command
      .add_model("RUN", options->run,
                 "The folder of a run that was trained with --watch, a built-in model, or a report of qkv movie")
      .required();
  add_report_options(command, options->report);
  command.add_output_file("--html FILE", options->html, "Write one page that opens offline");
  command.footer(kMovieExamples);
  command.callback([options] { movie(*options); });
}

}  // namespace qkv::app
