#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "inspect/watch/movie_parts.h"
#include "text/tokenizer/display_spans.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestLog = size_t{1} << 30;

// The lines of an optional file; a last line without a newline is still being written and left out.
std::vector<Json> lines_of(const fs::path& path) {
  std::vector<Json> lines;
  if (!is_there(path)) return lines;
  const std::string text = read_file(path, kLargestLog);
  std::string_view rest = text;
  for (size_t number = 1; rest.find('\n') != std::string_view::npos; ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    lines.push_back(parse_json(line, path.string() + " line " + std::to_string(number)));
  }
  return lines;
}

std::optional<double> number_of(const Json& line, const char* key) {
  if (!line.is_object() || !line.contains(key) || !line[key].is_number()) return std::nullopt;
  return line[key].get<double>();
}

void read_log(const fs::path& run, Movie& movie) {
  for (const Json& line : lines_of(run / "log.jsonl")) {
    const std::optional<double> step = number_of(line, "step");
    const std::optional<double> loss = number_of(line, "loss"), held_out = number_of(line, "val_loss");
    if (!step || (!loss && !held_out)) continue;
    const auto at = static_cast<int64_t>(*step);
    if (movie.log.empty() || movie.log.back().step != at) movie.log.push_back({.step = at});
    if (loss) movie.log.back().loss = loss;
    if (held_out) movie.log.back().held_out = held_out;
  }
  for (const Json& line : lines_of(run / "samples.jsonl")) {
    const std::optional<double> step = number_of(line, "step");
    if (!step || !line.contains("text") || !line["text"].is_string()) continue;
    movie.samples.push_back({static_cast<int64_t>(*step), line["text"].get<std::string>()});
  }
}

}  // namespace

struct GrowingMovie::Kept {
  explicit Kept(WatchFolder opened) : folder(std::move(opened)) { clear(); }

  void clear() {
    entries.clear();
    basis = 0;
    movie = {.plan = folder.plan()};
    for (const std::string& name : movie.plan.heads) movie.heads.push_back({.name = name});
  }

  WatchFolder folder;
  std::vector<MovieEntry> entries;
  size_t basis = 0;
  Movie movie;
};

GrowingMovie::GrowingMovie(fs::path run) : run_(std::move(run)) {}
GrowingMovie::~GrowingMovie() = default;

bool GrowingMovie::empty() const {
  return !kept_ || kept_->entries.empty();
}

bool GrowingMovie::grow(const std::function<void(size_t, size_t)>& finished) {
  if (!kept_) {
    if (!WatchFolder::exists(run_)) return false;
    kept_ = std::make_unique<Kept>(WatchFolder::open(run_));
  }
  const std::vector<int64_t> steps = kept_->folder.steps();
  const std::vector<int64_t>& have = kept_->movie.steps;
  if (steps == have) return false;
  if (have.size() > steps.size() || !std::equal(have.begin(), have.end(), steps.begin())) kept_->clear();
  const WatchPlan& plan = kept_->folder.plan();
  const size_t width = plan.tokens.size() < 2 ? 0 : static_cast<size_t>(plan.width);
  for (size_t i = kept_->entries.size(); i < steps.size(); ++i) {
    kept_->entries.emplace_back(kept_->folder.read(steps[i]), width);
    add_snapshot(kept_->entries.back().snapshot, kept_->movie);
    if (finished) finished(i + 1, steps.size());
  }
  return true;
}

Movie GrowingMovie::movie(bool last) {
  QKV_CHECK(!empty(), WatchFolder::in(run_).string(), " has a plan of ",
            kept_ ? kept_->movie.plan.steps.size() : size_t{0}, " snapshots but none has been taken",
            Hint("resume the run:  qkv train --resume --out " + run_.string()));
  if (last || axes_are_stale(kept_->entries, kept_->basis)) kept_->basis = kept_->entries.size() - 1;
  add_course(kept_->entries, kept_->basis, kept_->movie);
  Movie made = kept_->movie;
  read_log(run_, made);
  return made;
}

Movie make_movie(const fs::path& run, const std::function<void(size_t, size_t)>& finished) {
  WatchFolder::open(run);  // or an Error that says what is missing
  GrowingMovie movie(run);
  movie.grow(finished);
  return movie.movie(true);
}

std::vector<std::string> movie_texts(const std::filesystem::path& run, const std::vector<int32_t>& tokens) {
  std::vector<std::string> texts;
  const std::filesystem::path folder = run / "prepared" / "tokenizer";
  std::optional<Tokenizer> tokenizer;
  if (is_there(folder)) tokenizer.emplace(Tokenizer::load(folder));
  for (const int32_t id : tokens) {
    std::string text = tokenizer ? display_spans(*tokenizer, {&id, 1}).text : "";
    if (text.find("\xEF\xBF\xBD") != std::string::npos) text.clear();  // a part of a character: no word to show
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace qkv
