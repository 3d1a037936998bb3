// A training as the page follows it: its folder is read while another process writes it, as qkv movie would.
#pragma once

#include <filesystem>
#include <optional>

#include "inspect/watch/movie.h"
#include "server/jobs/job.h"

namespace qkv::server {

// New whole lines of a file that another process appends to, or cuts back and appends to again.
class GrowingLines {
 public:
  explicit GrowingLines(std::filesystem::path file) : file_(std::move(file)) {}
  // restarted: the file was cut back; all its lines come again.
  std::vector<std::string> take(bool& restarted);

 private:
  std::filesystem::path file_;
  uint64_t at_ = 0;
  std::string rest_;
};

class TrainingJob : public Job {
 public:
  TrainingJob(std::vector<std::string> command, std::filesystem::path run, bool kept);

  Kind kind() const override { return Kind::training; }
  std::vector<std::string> command() const override { return command_; }
  void hear(const std::string& line) override;
  JobNews news() override { return look(false); }
  JobNews last_news(int exit_code) override;
  State end_state(int exit_code, bool asked) const override;
  OrderedJson json() const override;

 private:
  JobNews look(bool last);
  void read_recipe();
  void read_log(JobNews& news);
  void make_movie(JobNews& news, bool last);

  std::vector<std::string> command_;
  std::filesystem::path run_;
  bool kept_;  // the folder stays when the server ends
  OrderedJson about_ = OrderedJson::object();
  std::string name_;
  std::filesystem::file_time_type recipe_written_ = std::filesystem::file_time_type::min();  // when it was read
  int64_t steps_ = 0, step_ = 0;
  std::optional<double> parameters_;
  std::string ended_;  // as the command said it
  GrowingLines log_;
  GrowingMovie movie_;
  std::vector<std::string> texts_;
  double movie_after_ = 0;  // when the next one may be made
  bool movie_due_ = false;
};

}  // namespace qkv::server
