#include "see/movie_report.h"

#include <fmt/format.h>

#include "base/path.h"
#include "common/reports.h"
#include "inspect/report/look_report.h"
#include "open/made_with.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackedMovie = "movie.json";

void round_numbers(Json& json) {
  if (json.is_number_float()) json = std::stod(fmt::format("{:.6g}", json.get<double>()));
  if (json.is_structured()) {
    for (Json& each : json) round_numbers(each);
  }
}

}  // namespace

ToldMovie movie_of(const fs::path& path, const std::function<void(size_t done, size_t all)>& finished) {
  if (is_file(path)) return read_movie(path);
  if (!WatchFolder::exists(path) && is_there(path / kPackedMovie)) return read_movie(path / kPackedMovie);
  ToldMovie told{.movie = make_movie(path, finished)};
  told.texts = movie_texts(path, told.movie.embedding.tokens);
  return told;
}

Json movie_report(const ToldMovie& told, const fs::path& path) {
  const fs::path run = path.lexically_normal();
  const std::string name = (run.has_filename() ? run : run.parent_path()).filename().string();
  return {{"report", "movie"},
          {"model", name},
          {"made_with", CommandLine("qkv movie").argument(model_argument(path.string())).text()},
          {"movie", to_json(told.movie, told.texts)}};
}

std::string packed_movie(const fs::path& run) {
  if (!WatchFolder::exists(run)) return "";
  Json report = movie_report(movie_of(run), run.filename());
  round_numbers(report);
  return report_text(report, -1) + "\n";
}

}  // namespace qkv::app
