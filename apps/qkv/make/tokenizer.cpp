// qkv tokenizer train: a tokenizer.json from text files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_path.h"
#include "base/path.h"
#include "base/printable.h"
#include "common/commands.h"
#include "text/tokenizer/training/tokenizer_training.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerExamples = R"(Examples:
  qkv tokenizer train --vocab 32000 --special '<|endoftext|>' --out my-tokenizer book.txt 红楼梦.txt
  qkv tokenizer train --vocab 16000 --pattern llama3 --out tokenizer.json corpus/*.txt
  qkv tokenizer train --vocab 4000 --max-token-length 12 红楼梦.txt   tokens of at most four Chinese characters
  qkv tokenizer train --kind unigram --vocab 8000 --special '<s>' --special '</s>' corpus.txt --json

The text is split at special tokens, which get the first ids. Of equally frequent pairs BPE merges the one whose bytes
are greatest. The result does not depend on the number of threads.)";

struct TokenizerRequest {
  std::string kind = "bpe", pattern, out = "tokenizer.json";
  std::vector<std::string> specials, files;
  size_t vocab = 0, max_token_length = 0;
  bool json = false;
};

TokenizerTraining training_of(const TokenizerRequest& request) {
  TokenizerTraining training{
      .vocab = request.vocab, .max_token_length = request.max_token_length, .specials = request.specials};
  training.kind = request.kind == "bpe" ? TokenizerKind::bpe : TokenizerKind::unigram;
  if (!request.pattern.empty()) {
    training.pattern = pattern_by_name(request.pattern);
    const std::string near = nearest_key(request.pattern, pattern_names());
    QKV_CHECK(training.pattern, "unknown pattern ", printable(request.pattern),
              Hint(near.empty() ? "" : "did you mean " + near + "? ", "The patterns are ",
                   fmt::format("{}", fmt::join(pattern_names(), ", "))));
  }
  training.files.assign(request.files.begin(), request.files.end());
  return training;
}

// tokenizer.json inside a folder, unless the name is a file's, a device's or a pipe's. Folders that are missing are made
// with the file: all of them appear, or none.
class TokenizerOutput {
 public:
  explicit TokenizerOutput(const std::string& out) : file_(out) {
    std::error_code none;
    const fs::file_status there = fs::status(file_, none);
    if (fs::is_directory(there) || (file_.extension() != ".json" && !fs::is_other(there))) file_ /= "tokenizer.json";
    for (fs::path at = file_.parent_path(); !at.empty() && !fs::exists(at, none); at = at.parent_path()) missing_ = at;
    missing_.empty() ? check_output_file(file_) : check_output_folder(missing_);
  }

  const fs::path& file() const { return file_; }

  void write(std::string_view json) const {
    if (missing_.empty()) return write_file_atomic(file_, std::as_bytes(std::span(json)));
    AtomicFolder made(missing_);
    const fs::path file = made.path() / file_.lexically_relative(missing_);
    std::error_code failed;
    fs::create_directories(file.parent_path(), failed);
    QKV_CHECK(!failed, "cannot make the folder ", printable(file_.parent_path().string()), ": ", failed.message(),
              Hint("name another with --out"));
    write_file_atomic(file, std::as_bytes(std::span(json)));
    made.commit();
  }

 private:
  fs::path file_, missing_;  // missing_: the outermost of its folders that does not exist; empty if all do
};

void train_and_write(const TokenizerRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  const TokenizerTraining training = training_of(request);
  const TokenizerOutput out(request.out);
  ThreadPool pool;
  const TrainedTokenizer trained = train_tokenizer(training, pool);
  out.write(trained.json);
  const fs::path& file = out.file();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  if (request.json) {
    nlohmann::ordered_json report{{"file", file.string()},     {"kind", request.kind},
                                  {"vocab", trained.vocab},    {"asked", request.vocab},
                                  {"bytes", trained.bytes},    {"distinct_words", trained.distinct_words},
                                  {"threads", pool.threads()}, {"seconds", seconds}};
    if (training.kind == TokenizerKind::unigram) report["stray_bytes"] = trained.stray_bytes;
    std::cout << json_text(report) << '\n';
    return;
  }
  std::cout << fmt::format("{}: {} tokens from {:.1f} MB with {} distinct words, in {:.1f} s\n", file.string(),
                           trained.vocab, static_cast<double>(trained.bytes) / 1e6, trained.distinct_words, seconds);
  if (trained.vocab < request.vocab) {
    std::cout << fmt::format("{} tokens were asked for; the text has no more to offer\n", request.vocab);
  }
  if (trained.stray_bytes != 0) {
    std::cout << fmt::format("{} bytes were no UTF-8 and counted as U+FFFD\n", trained.stray_bytes);
  }
}

}  // namespace

void add_tokenizer(Command app) {
  const Command group = app.add_command("tokenizer", "Train a tokenizer");
  group.needs_command();
  group.footer("Examples:\n  qkv tokenizer train --vocab 32000 --out my-tokenizer book.txt");
  const Command command = group.add_command("train", "A tokenizer.json from text files");
  const auto request = std::make_shared<TokenizerRequest>();  // lives as long as the callback
  command.add_option("--kind", request->kind, "BPE of bytes, or a unigram model")
      .one_of({"bpe", "unigram"})
      .show_default();
  command.add_option("--vocab", request->vocab, "Size of the vocabulary").required();
  command
      .add_option("--pattern NAME", request->pattern,
                  fmt::format("How BPE splits text into words: {}", fmt::join(pattern_names(), ", ")))
      .known(pattern_names());
  command
      .add_option("--max-token-length N", request->max_token_length,
                  "Longest token: bytes for BPE, characters for unigram (at most 16)")
      .between(int64_t{1}, int64_t{1} << 20);
  command.add_option("--special TOKEN", request->specials, "A special token; may be repeated").one_value();
  command.add_option("--out FILE", request->out, "A folder, or a file that ends in .json").show_default();
  command.add_flag("--json", request->json, "Print the report as JSON, and nothing else");
  command.add_option("FILE", request->files, "Text files").required();
  command.footer(kTokenizerExamples);
  command.callback([request] { train_and_write(*request); });
}

}  // namespace qkv::app
