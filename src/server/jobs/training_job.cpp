#include "server/jobs/training_job.h"

#include <chrono>
#include <csignal>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "server/jobs/knobs.h"

namespace qkv::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestRecipe = size_t{1} << 20;
constexpr double kLeastBetween = 0.4;  // seconds between two movies; and a movie takes at most a fifth of the time
constexpr double kShareOfTime = 5;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::vector<std::string> GrowingLines::take(bool& restarted) {
  std::error_code failed;
  const uint64_t size = fs::file_size(file_, failed);
  if (failed || size == at_) return {};
  if (size < at_) {
    restarted = true;
    at_ = 0;
    rest_.clear();
  }
  std::ifstream in(file_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(at_));
  std::string more(size - at_, '\0');
  in.read(more.data(), static_cast<std::streamsize>(more.size()));
  more.resize(static_cast<size_t>(in.gcount()));
  at_ += more.size();
  rest_ += more;
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != rest_.npos; begin = end + 1) {
    lines.push_back(rest_.substr(begin, end - begin));
  }
  rest_.erase(0, begin);
  return lines;
}

TrainingJob::TrainingJob(std::vector<std::string> command, fs::path run, bool kept)
    : command_(std::move(command)), run_(std::move(run)), kept_(kept), log_(run_ / "log.jsonl"), movie_(run_) {}

void TrainingJob::hear(const std::string& line) {
  if (!line.starts_with('{')) return;  // a person's lines
  const Json said = Json::parse(line, nullptr, false);
  if (!said.is_object()) return;
  if (said.contains("parameters")) parameters_ = said["parameters"].get<double>();
  if (said.contains("ended")) ended_ = said["ended"].get<std::string>();
}

// Again where it was written since: a run that goes on may have more steps now.
void TrainingJob::read_recipe() {
  std::error_code absent;
  const fs::file_time_type written = fs::last_write_time(run_ / "recipe.json", absent);
  if (absent || written == recipe_written_) return;
  const Json recipe = parse_json(read_file(run_ / "recipe.json", kLargestRecipe), "recipe.json");
  recipe_written_ = written;
  steps_ = recipe.value("steps", int64_t{0});
  name_ = recipe.value("name", std::string());
  about_ = knobs_of(recipe);
}

void TrainingJob::read_log(JobNews& news) {
  for (const std::string& text : log_.take(news.losses_restarted)) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("step")) continue;
    const auto step = line["step"].get<int64_t>();
    for (const char* key : {"loss", "val_loss"}) {
      if (!line.contains(key) || !line[key].is_number()) continue;
      news.losses.push_back({step, line[key].get<double>(), key == std::string_view("val_loss")});
    }
    step_ = step;
  }
  news.any = !news.losses.empty() || news.losses_restarted;
}

void TrainingJob::make_movie(JobNews& news, bool last) {
  const double begun = seconds_now();
  if (!last && begun < movie_after_) return;
  movie_due_ |= movie_.grow();
  if (movie_.empty() || (!movie_due_ && !last)) return;
  const Movie movie = movie_.movie(last);
  if (texts_.empty()) texts_ = movie_texts(run_, movie.embedding.tokens);
  const Json report{{"report", "movie"}, {"model", name_}, {"movie", to_json(movie, texts_)}};
  news.movie = std::make_shared<const std::string>(json_text(report, -1));
  news.any = true;
  movie_due_ = false;
  movie_after_ = begun + std::max(kLeastBetween, kShareOfTime * (seconds_now() - begun));
}

// Files come and go while a run is prepared or taken back to a checkpoint: what cannot be read now is read later.
JobNews TrainingJob::look(bool last) {
  JobNews news;
  try {
    read_recipe();
    read_log(news);
    make_movie(news, last);
  } catch (const std::exception&) {
    return news;
  }
  return news;
}

JobNews TrainingJob::last_news(int exit_code) {
  return look(exit_code == 0);
}

Job::State TrainingJob::end_state(int exit_code, bool asked) const {
  // A signal that comes before the first step ends it at once: there is nothing to save.
  if (exit_code != 0) return asked && exit_code == 128 + SIGTERM ? State::stopped : State::failed;
  if (!ended_.empty()) return ended_.starts_with("stopped") ? State::stopped : State::finished;
  return asked && step_ < steps_ ? State::stopped : State::finished;
}

OrderedJson TrainingJob::json() const {
  OrderedJson made{{"recipe", name_},
                   {"run", run_.filename().string()},
                   {"kept", kept_},
                   {"step", step_},
                   {"steps", steps_},
                   {"knobs", about_},
                   {"can_resume", is_there(run_ / "recipe.json") && is_there(run_ / "last")}};
  if (command_.empty()) made["followed"] = true;
  if (parameters_) made["parameters"] = *parameters_;
  return made;
}

}  // namespace qkv::server
