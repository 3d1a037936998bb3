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
#include "base/printable.h"
#include "common/commands.h"
#include "text/tokenizer/training/tokenizer_training.h"

namespace qkv::app {
namespace {

constexpr const char* kTokenizerExamples = R"(Examples:
  qkv tokenizer train --vocab 32000 --special '<|endoftext|>' --out my-tokenizer book.txt 红楼梦.txt
  qkv tokenizer train --vocab 16000 --pattern llama3 --out tokenizer.json corpus/*.txt
  qkv tokenizer train --kind unigram --vocab 8000 --special '<s>' --special '</s>' corpus.txt --json

The text is split at special tokens, which get the first ids. Of equally frequent pairs BPE merges the one whose bytes
are greatest. The result does not depend on the number of threads.)";

struct TokenizerRequest {
  std::string kind = "bpe", pattern, out = "tokenizer.json";
  std::vector<std::string> specials, files;
  size_t vocab = 0;
  bool json = false;
};

TokenizerTraining training_of(const TokenizerRequest& request) {
  TokenizerTraining training{.vocab = request.vocab, .specials = request.specials};
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

// tokenizer.json inside a folder, unless the name is a file's.
std::filesystem::path output_file(const std::string& out) {
  std::filesystem::path file = out;
  if (file.extension() != ".json" || std::filesystem::is_directory(file)) file /= "tokenizer.json";
  if (file.has_parent_path()) {
    std::error_code failed;
    std::filesystem::create_directories(file.parent_path(), failed);
    QKV_CHECK(!failed, "cannot make the folder ", printable(file.parent_path().string()), ": ", failed.message(),
              Hint("name another with --out"));
  }
  return file;
}

void train_and_write(const TokenizerRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  const TokenizerTraining training = training_of(request);
  const std::filesystem::path file = output_file(request.out);
  ThreadPool pool;
  const TrainedTokenizer trained = train_tokenizer(training, pool);
  write_file_atomic(file, std::as_bytes(std::span(trained.json)));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  if (request.json) {
    nlohmann::ordered_json report{{"file", file.string()},
                                  {"kind", request.kind},
                                  {"vocab", trained.vocab},
                                  {"bytes", trained.bytes},
                                  {"distinct_words", trained.distinct_words},
                                  {"threads", pool.threads()},
                                  {"seconds", seconds}};
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
  command.add_option("--special TOKEN", request->specials, "A special token; may be repeated").one_value();
  command.add_option("--out FILE", request->out, "A folder, or a file that ends in .json").show_default();
  command.add_flag("--json", request->json, "Print the report as JSON, and nothing else");
  command.add_option("FILE", request->files, "Text files").required();
  command.footer(kTokenizerExamples);
  command.callback([request] { train_and_write(*request); });
}

}  // namespace qkv::app
