// ./qkv bench tokenizer: speed of text to ids on one core, next to the speed of memcpy.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer/tokenizer.h"

namespace {

namespace fs = std::filesystem;

constexpr int kWrongInput = 2, kInternal = 3;
constexpr size_t kTextBytes = 2'000'000;
constexpr double kMega = 1e6;

struct Wanted {
  std::string shared = "../shared", only;
  int rounds = 5;
  bool json = false;
};

struct Row {
  std::string tokenizer;
  double load_seconds = 0, english = 0, chinese = 0;  // best of all rounds; MB/s
};

// CPU time of this thread, so that other processes matter only through the caches.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double fastest(int rounds, const Work& work) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double start = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

std::string read_texts(const fs::path& folder, std::initializer_list<const char*> names) {
  std::string all;
  for (const char* name : names) all += qkv::read_file(folder / name, 100'000'000).substr(0, kTextBytes / names.size());
  return all;
}

double copy_rate(int rounds) {
  const std::vector<char> from(64 << 20, 'x');
  std::vector<char> to(from.size());
  return static_cast<double>(from.size()) / fastest(rounds, [&] { std::memcpy(to.data(), from.data(), from.size()); });
}

double encode_rate(const qkv::Tokenizer& tokenizer, const std::string& text, int rounds) {
  size_t tokens = 0;
  const double seconds = fastest(rounds, [&] { tokens = tokenizer.encode(text).size(); });
  QKV_ASSERT(tokens > 0, "no tokens");
  return static_cast<double>(text.size()) / seconds / kMega;
}

void run(const Wanted& wanted) {
  const fs::path shared(wanted.shared), models = shared / "tokenizers" / "real";
  QKV_CHECK(fs::exists(models) && fs::exists(shared / "text"), wanted.shared, " has no tokenizers/real and text",
            qkv::Hint("name the folder with --shared"));
  const std::string english = read_texts(shared / "text" / "en", {"war-and-peace.txt", "wikitext2.valid.txt"});
  const std::string chinese = read_texts(shared / "text" / "zh", {"红楼梦.txt", "西游记.txt"});
  const double copied = copy_rate(wanted.rounds) / kMega;
  std::vector<Row> rows;
  for (const char* name : {"gpt2", "llama3", "qwen2_5", "qwen3", "deepseek_v3", "bert-uncased"}) {
    if (std::string_view(name).find(wanted.only) == std::string_view::npos) continue;
    const fs::path file = models / name / "tokenizer.json";
    Row row{.tokenizer = name};
    row.load_seconds = fastest(std::min(wanted.rounds, 3), [&] { qkv::Tokenizer::load(file); });
    const qkv::Tokenizer tokenizer = qkv::Tokenizer::load(file);
    row.english = encode_rate(tokenizer, english, wanted.rounds);
    row.chinese = encode_rate(tokenizer, chinese, wanted.rounds);
    rows.push_back(row);
  }
  if (wanted.json) {
    qkv::Json list = qkv::Json::array();
    for (const Row& row : rows) {
      list.push_back({{"tokenizer", row.tokenizer},
                      {"load_seconds", row.load_seconds},
                      {"english_mb_per_s", row.english},
                      {"chinese_mb_per_s", row.chinese}});
    }
    std::cout << qkv::Json{{"memcpy_mb_per_s", copied}, {"rows", list}}.dump(2) << '\n';
    return;
  }
  std::cout << fmt::format("one core, CPU time; memcpy here {:.0f} MB/s; best of {} rounds\n\n", copied, wanted.rounds)
            << fmt::format("{:<14}{:>10}{:>15}{:>15}\n", "tokenizer", "load s", "English MB/s", "Chinese MB/s");
  for (const Row& row : rows) {
    std::cout << fmt::format("{:<14}{:>10.3f}{:>15.1f}{:>15.1f}\n", row.tokenizer, row.load_seconds, row.english,
                             row.chinese);
  }
}

int complain(const std::string& text, int code) {
  std::cerr << "qkv bench tokenizer: " << text << '\n';
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Text to ids on one core", "qkv bench tokenizer"};
  Wanted wanted;
  app.add_option("--shared", wanted.shared, "The folder with tokenizers/real and text");
  app.add_option("--only", wanted.only, "Tokenizers whose name contains this");
  app.add_option("--rounds", wanted.rounds, "Number of rounds; the best counts")->check(CLI::Range(1, 100));
  app.add_flag("--json", wanted.json, "Print JSON");
  app.footer("Other processes only make figures lower: compare only within one run.");
  try {
    app.parse(argc, argv);
    run(wanted);
    return 0;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : complain(error.what(), kWrongInput);
  } catch (const qkv::Error& error) {
    return complain(error.what(), error.kind() == qkv::Error::Kind::input ? kWrongInput : kInternal);
  } catch (const std::exception& error) {
    return complain(error.what(), kInternal);
  }
}
