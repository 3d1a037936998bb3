#include "see/demo_training.h"

#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "api/training/recipes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_path.h"
#include "base/path.h"
#include "base/progress.h"
#include "common/interrupt.h"
#include "see/demo_screen.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

}  // namespace

bool goes_on(const DemoOptions& options) {
  const fs::path run = options.run();
  if (!is_there(options.folder())) return false;
  if (!is_there(run)) {
    QKV_CHECK(is_folder(options.folder()) && folder_entries(options.folder()).empty(), options.folder(),
              " exists and is no demo's folder", Hint("choose another with  --out DIR"));
    return false;
  }
  QKV_CHECK(is_there(run / "recipe.json"), run.string(), " is there but no run is in it",
            Hint("remove ", options.folder(), ", or choose another folder with  --out"));
  const Json recipe = parse_json(read_file(run / "recipe.json", 1 << 20), "recipe.json");
  const std::string there = recipe.value("/data/world"_json_pointer, std::string());
  QKV_CHECK(there == options.lang, options.folder(), " holds a demo with --lang ", there.empty() ? "?" : there,
            " but --lang is ", options.lang,
            Hint("for this language choose another folder:  --out ", options.folder(), "-", options.lang));
  return true;
}

void train_demo(const DemoOptions& options, bool resume) {
  Json recipe = find_recipe("demo");
  recipe["data"]["world"] = options.lang;
  recipe["evaluate"] = {{"every", 50}, {"batches", 4}, {"samples", 1}};
  std::cout << options.words(
      "It reads a game of echo: rows of words, said again. Its only task is to guess the next token.\n",
      "它读的是回声游戏：一串词，别人再念。唯一的任务是猜下一个词元。\n");
  std::cout.flush();
  std::error_code failed;
  fs::create_directories(output_place(options.folder()).path, failed);
  QKV_CHECK(!failed, "cannot make the folder ", options.folder(), ": ", failed.message(),
            Hint("choose another with  --out DIR"));
  check_output_file(options.page());
  DemoScreen screen(options.chinese(), recipe["steps"].get<int64_t>());
  std::optional<ProgressSilence> silence;  // the lines of preparing a run are English
  if (options.chinese()) silence.emplace();
  std::optional<InterruptWatch> interrupt;
  TrainRun training({.recipe = [&] { return recipe; },
                     .named = "demo",
                     .out = options.run().string(),
                     .device = options.compute.device(),
                     .threads = options.compute.threads,
                     .resume = resume,
                     .watch = true,
                     .stop = [&] { return interrupt && interrupt->seen(); },
                     .observer = screen.observer()},
                    self_comm());
  silence.reset();
  const bool finished = training.counters().step >= training.recipe().steps;
  if (resume) {
    std::cout << fmt::format(
        fmt::runtime(finished ? options.words(
                                    "{} holds a trained model already: it is used. Remove the folder to train again.\n",
                                    "{} 里已有训练好的模型，直接使用。要重新训练，请删除该文件夹。\n")
                              : options.words("{} holds a run that was stopped: it continues.\n",
                                              "{} 里有一次中断的训练，接着进行。\n")),
        options.folder());
    std::cout.flush();
  }
  interrupt.emplace(std::vector<int>{SIGINT, SIGTERM, SIGUSR1});
  const std::optional<StopReason> end = training.run();
  interrupt.reset();
  screen.finish();
  if (end == StopReason::stopped) {
    std::cout << fmt::format(
        fmt::runtime(options.words("\nStopped and saved. The same command continues; the model so far: {}\n",
                                   "\n已停止并保存。再次运行同一命令会继续；目前的模型：{}\n")),
        (options.run() / "last").string());
    throw Interrupted{};
  }
  if (!finished) {
    std::cout << fmt::format(fmt::runtime(options.words("{} steps in {:.0f} s.\n", "{} 步，{:.0f} 秒。\n")),
                             training.counters().step, training.counters().seconds);
  }
}

}  // namespace qkv::app
