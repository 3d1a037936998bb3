// The run folder: state is restored bit for bit, damage is detected, and a kill at any moment is harmless.
#include "train/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "io/safetensors.h"
#include "train/run_folder_support.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using test::Bits, test::names_in, test::some_recipe, test::steps_in, test::Training;

constexpr size_t kLimit = 1 << 24;

std::string newest_name(const fs::path& link) {
  return fs::read_symlink(link).string();
}
void flip_bit(const fs::path& file, size_t at) {
  std::string bytes = read_file(file, kLimit);
  bytes[at / 8] = static_cast<char>(bytes[at / 8] ^ 1 << at % 8);
  std::ofstream(file, std::ios::binary) << bytes;
}

class SavedRun : public testing::TestWithParam<const char*> {};

TEST_P(SavedRun, ComesBackBitForBit) {
  const TempFolder temp;
  const fs::path path = temp.path() / "run";
  for (const OptimizerSpec& rule : {OptimizerSpec{}, OptimizerSpec{.kind = OptimizerSpec::Kind::muon},
                                    OptimizerSpec{.kind = OptimizerSpec::Kind::sgd, .momentum = 0}}) {
    fs::remove_all(path);
    Training first(GetParam(), rule), second(GetParam(), rule);
    first.go_to(41);
    {
      RunFolder run = RunFolder::create(path, some_recipe());
      EXPECT_FALSE(second.load(run));
      first.save(run, true);
    }
    ASSERT_NE(first.bits(), second.bits());
    ASSERT_TRUE(second.load(RunFolder::open(path)));
    EXPECT_EQ(first.bits(), second.bits());
  }
}

TEST_P(SavedRun, IsAModelForEveryone) {
  const TempFolder temp;
  Training training(GetParam());
  training.go_to(5);
  RunFolder run = RunFolder::create(temp.path() / "run", some_recipe());
  temp.write("run/prepared/tokenizer/tokenizer.json", "字");
  training.save(run);
  run.wait();
  const fs::path folder = run.path() / "last";
  EXPECT_EQ(read_file(folder / "tokenizer.json", kLimit), "字");
  const Checkpoint loaded = Checkpoint::open(folder);
  EXPECT_EQ(Training::weights_of(loaded.weights(cpu_device())), Training::weights_of(training.model->weights()));
  // The tensors of the folder the model came from, under the same names.
  const Safetensors published = Safetensors::open(test::golden(GetParam()) / "model.safetensors");
  const Safetensors ours = Safetensors::open(folder / "model.safetensors");
  for (const StoredTensor& entry : ours.entries()) {
    EXPECT_EQ(published.at(entry.name).shape, entry.shape) << entry.name;
    EXPECT_EQ(entry.dtype, "F32");
  }
  EXPECT_EQ(names_in(folder),
            (std::vector<std::string>{"config.json", "manifest.json", "model.safetensors", "tokenizer.json",
                                      "train_state.json", "train_state.safetensors"}));
}

INSTANTIATE_TEST_SUITE_P(Goldens, SavedRun, testing::Values("gpt2", "llama", "mixtral", "marian"),
                         [](const auto& family) { return std::string(family.param); });

TEST(RunFolder, WhatAPassHadMadeOfOldWeightsIsMadeAnew) {
  const TempFolder temp;
  Training first("llama"), second("llama");
  first.go_to(1);
  RunFolder run = RunFolder::create(temp.path() / "run", some_recipe());
  first.save(run);
  run.wait();
  const auto form = [&](Training& t) {
    return test::to_host(t.model->weights().begin()->second.value(t.pass.cx, DType::bf16));
  };
  const test::Numbers before = form(second);
  second.model->weights().begin()->second.trainable = false;
  ASSERT_TRUE(second.load(run));
  EXPECT_NE(form(second), before);
  EXPECT_EQ(form(second), form(first));
  EXPECT_FALSE(second.model->weights().begin()->second.trainable);
}

TEST(RunFolder, ExistingRunsAndMissingOnesAreErrors) {
  const TempFolder temp;
  const fs::path path = temp.path() / "run";
  expect_error([&] { RunFolder::open(path); }, {path.string(), "recipe.json"});
  {
    const RunFolder run = RunFolder::create(path, some_recipe());
    EXPECT_EQ(to_json(run.recipe()), to_json(some_recipe()));
    expect_error([&] { RunFolder::open(path); }, {path.string(), "in use"});
  }
  EXPECT_EQ(to_json(RunFolder::open(path).recipe()), to_json(some_recipe()));
  expect_error([&] { RunFolder::create(path, some_recipe()); }, {path.string(), "exists"});
  const auto error = error_of([&] { RunFolder::create(path, some_recipe()); });
  EXPECT_NE(error->hint().find("--resume"), std::string::npos);
  EXPECT_EQ(names_in(temp.path()), std::vector<std::string>{"run"});
}

TEST(RunFolder, ChangesAfterASaveAreNotInIt) {
  const TempFolder temp;
  RunFolder run = RunFolder::create(temp.path() / "run", some_recipe());
  Training training("gpt2"), loaded("gpt2");
  training.go_to(3);
  const Bits before = training.bits();
  training.save(run);
  training.go_to(4);
  run.wait();
  ASSERT_TRUE(loaded.load(run));
  EXPECT_EQ(loaded.bits(), before);
}

TEST(RunFolder, OneStepSavedTwiceIsTheSecond) {
  const TempFolder temp;
  RunFolder run = RunFolder::create(temp.path() / "run", some_recipe());
  Training training("gpt2"), loaded("gpt2");
  training.go_to(3);
  training.save(run);
  training.counters.best = 0.25;
  training.save(run, true);
  run.wait();
  ASSERT_TRUE(loaded.load(run));
  EXPECT_EQ(loaded.bits(), training.bits());
  EXPECT_EQ(names_in(run.path() / "checkpoints"), std::vector<std::string>{"step-00000003"});
}

TEST(RunFolder, AnyFlippedBitIsSeenAndAnOlderCheckpointTaken) {
  const TempFolder temp;
  RunFolder run = RunFolder::create(temp.path() / "run", some_recipe());
  temp.write("run/prepared/tokenizer/tokenizer.json", "{}");
  Training training("llama");
  for (const int64_t step : {8, 9}) {
    training.go_to(step);
    training.save(run, true);
  }
  run.wait();
  const fs::path newest = run.path() / "checkpoints/step-00000009";
  training.go_to(8);
  const Bits older = training.bits();
  uint32_t random = 1;
  for (const std::string& name : names_in(newest)) {
    const std::string whole = read_file(newest / name, kLimit);
    const size_t flips = name == "manifest.json" ? 60 : 3;
    for (size_t i = 0; i <= flips; ++i) {
      random = random * 1664525 + 1013904223;
      if (i < flips) {
        flip_bit(newest / name, (random >> 4) % (whole.size() * 8));
      } else {
        fs::resize_file(newest / name, whole.size() - 1);
      }
      training.go_to(1);
      testing::internal::CaptureStderr();
      const bool found = training.load(run);
      const std::string said = testing::internal::GetCapturedStderr();
      ASSERT_TRUE(found);
      EXPECT_EQ(training.bits(), older) << name;
      EXPECT_NE(said.find("step-00000009"), std::string::npos) << said;
      EXPECT_EQ(newest_name(run.path() / "last"), "checkpoints/step-00000008");
      std::ofstream(newest / name, std::ios::binary) << whole;
    }
    fs::rename(newest / name, temp.path() / "away");
    ASSERT_TRUE(training.load(run));
    EXPECT_EQ(training.counters.step, 8) << name << " is missing";
    fs::rename(temp.path() / "away", newest / name);
  }
  ASSERT_TRUE(training.load(run));
  EXPECT_EQ(training.counters.step, 9);

  // A resumed run does the damaged step again.
  flip_bit(newest / "model.safetensors", 12345);
  ASSERT_TRUE(training.load(run));
  training.go_to(9);
  run.keep_last(1);
  training.save(run);
  run.wait();
  training.go_to(1);
  ASSERT_TRUE(training.load(run));
  EXPECT_EQ(training.counters.step, 9);
}

TEST(RunFolder, ARunWhoseCheckpointsCannotBeReadIsNotANewOne) {
  const TempFolder temp;
  RunFolder run = RunFolder::create(temp.path() / "run", some_recipe());
  EXPECT_FALSE(run.has_checkpoints());
  Training training("gpt2");
  for (const int64_t step : {8, 9}) {
    training.go_to(step);
    training.save(run);
    run.log({{"step", step}});
  }
  run.wait();
  EXPECT_TRUE(run.has_checkpoints());
  const fs::path checkpoints = run.path() / "checkpoints";
  flip_bit(checkpoints / "step-00000008/model.safetensors", 12345);
  fs::remove(checkpoints / "step-00000009/train_state.json");
  training.go_to(1);
  const Bits before = training.bits();
  testing::internal::CaptureStderr();
  expect_error([&] { training.load(run); },
               {"none of the 2 checkpoints in", checkpoints.string(), "step-00000009", "train_state.json is missing"});
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* part : {"step-00000009", "step-00000008", "model.safetensors is {", "but was written as"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << " is not in: " << said;
  }
  EXPECT_NE(error_of([&] { training.load(run); })->hint().find("--from-scratch"), std::string::npos);
  EXPECT_EQ(training.bits(), before);
  EXPECT_EQ(steps_in(run.path() / "log.jsonl"), (std::vector<int64_t>{8, 9}));

  // Nothing but a link to a checkpoint.
  fs::rename(checkpoints, temp.path() / "away");
  EXPECT_TRUE(run.has_checkpoints());
  expect_error([&] { training.load(run); }, {"run/last points to checkpoints/step-00000009", "no checkpoint"});
  // A folder that cannot be listed.
  std::ofstream(checkpoints) << "not a folder";
  expect_error([&] { training.load(run); }, {"cannot list", checkpoints.string()});
  fs::remove(checkpoints);
  fs::rename(temp.path() / "away", checkpoints);

  // Begun again: all but the recipe is kept aside, under names that still belong together.
  EXPECT_EQ(run.set_aside(), run.path() / "before-1");
  EXPECT_FALSE(training.load(run));
  EXPECT_EQ(names_in(run.path()), (std::vector<std::string>{"before-1", "checkpoints", "recipe.json"}));
  EXPECT_EQ(names_in(run.path() / "before-1"), (std::vector<std::string>{"checkpoints", "last", "log.jsonl"}));
  EXPECT_TRUE(fs::exists(run.path() / "before-1/last/config.json"));
  EXPECT_EQ(run.set_aside(), run.path() / "before-2");
}

TEST(RunFolder, OtherModelsAndOptimisersAreErrorsThatChangeNothing) {
  const TempFolder temp;
  RunFolder run = RunFolder::create(temp.path() / "run", some_recipe());
  Training training("llama"), other("gpt2"), moved("llama", {.kind = OptimizerSpec::Kind::sgd});
  training.go_to(8);
  training.save(run);
  run.wait();
  const Bits before = other.bits(), moved_before = moved.bits();
  expect_error([&] { other.load(run); }, {"step-00000008"});
  expect_error([&] { moved.load(run); }, {"train_state.safetensors", "optimiser"});
  EXPECT_EQ(other.bits(), before);
  EXPECT_EQ(moved.bits(), moved_before);
}

TEST(RunFolder, NumbersThatAreNotFiniteAreNeverWritten) {
  const TempFolder temp;
  RunFolder run = RunFolder::create(temp.path() / "run", some_recipe());
  Training training("gpt2");
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    training.go_to(2);
    auto last = std::prev(training.model->weights().end());
    last->second.writable(training.pass.cx).as<float>()[3] = bad;
    expect_error([&] { training.save(run); }, {last->first, "index 3"});
    training.go_to(2);
    const Optimizer::State state = training.optimizer.states().back();
    state.tensor.as<float>()[state.tensor.count() - 1] = bad;
    expect_error([&] { training.save(run); }, {state.name});
  }
  run.wait();
  EXPECT_TRUE(names_in(run.path() / "checkpoints").empty());
}

TEST(RunFolder, KeepsTheLastOnesAndTheBest) {
  const TempFolder temp;
  const fs::path path = temp.path() / "run";
  RunFolder run = RunFolder::create(path, some_recipe());
  Training training("gpt2");
  for (int64_t step = 1; step <= 6; ++step) {
    training.go_to(step);
    training.save(run, step == 2);
    run.keep_last(2);
  }
  run.wait();
  const fs::path checkpoints = path / "checkpoints";
  EXPECT_EQ(names_in(checkpoints), (std::vector<std::string>{"step-00000002", "step-00000005", "step-00000006"}));
  EXPECT_EQ(newest_name(path / "best"), "checkpoints/step-00000002");
  EXPECT_EQ(newest_name(path / "last"), "checkpoints/step-00000006");
  EXPECT_NO_THROW(Checkpoint::open(path / "best"));
  run.keep_last(1);
  EXPECT_EQ(names_in(checkpoints), (std::vector<std::string>{"step-00000002", "step-00000006"}));
  expect_error([&] { run.keep_last(0); }, {"0"});
  // A checkpoint of a later step (a damaged one, say) does not push out the one just saved.
  fs::create_directory(checkpoints / "step-00000009");
  for (const auto& [step, best, left] :
       {std::tuple{7, false, std::vector<std::string>{"step-00000002", "step-00000007", "step-00000009"}},
        {8, true, {"step-00000008", "step-00000009"}}}) {
    training.go_to(step);
    training.save(run, best);
    run.wait();
    EXPECT_EQ(names_in(checkpoints), left);
  }
  EXPECT_EQ(newest_name(path / "best"), "checkpoints/step-00000008");
}

TEST(RunFolder, UnfinishedLinesAreCutAndStepsDoneAgainForgotten) {
  const TempFolder temp;
  const fs::path path = temp.path() / "run";
  {
    RunFolder run = RunFolder::create(path, some_recipe());
    for (int64_t step = 1; step <= 5; ++step) run.log({{"step", step}, {"loss", 1.5}, {"text", "行\n二"}});
    run.text_sample(2, "春天\xE4\xB8");  // half of a character, as a token may have
    run.text_sample(4, "x");
  }
  std::ofstream(path / "log.jsonl", std::ios::app) << R"({"step": 6, "lo)";
  {
    const std::string torn = read_file(path / "log.jsonl", kLimit);
    RunFolder run = RunFolder::open(path);
    EXPECT_EQ(read_file(path / "log.jsonl", kLimit), torn);  // until it is known where the run goes on
    run.remove_after(3);
    run.log({{"step", 4}});
  }
  EXPECT_EQ(steps_in(path / "log.jsonl"), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(steps_in(path / "samples.jsonl"), std::vector<int64_t>{2});
  EXPECT_EQ(read_file(path / "samples.jsonl", kLimit).find("{\"step\":2,\"text\":\"春天"), 0U);
  std::ofstream(path / "log.jsonl") << "no end of a line";
  RunFolder::open(path).remove_after(3);
  EXPECT_EQ(read_file(path / "log.jsonl", kLimit), "");
}

// A child process that may not write files beyond `largest` bytes simulates a full disk.
template <class Call>
bool on_a_full_disk(rlim_t largest, const Call& good) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{largest, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    bool right = false;
    try {
      right = good();
    } catch (const std::exception& e) {
      std::fputs(e.what(), stderr);
    }
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(RunFolder, AFullDiskIsSaidAndTheCheckpointBeforeIsWhole) {
  const TempFolder temp;
  const fs::path path = temp.path() / "run";
  Training training("gpt2");
  { const RunFolder run = RunFolder::create(path, some_recipe()); }
  const auto child = [&] {
    RunFolder run = RunFolder::open(path);
    run.log({{"step", 1}});
    const auto allow = [](rlim_t bytes) {
      const rlimit limit{bytes, RLIM_INFINITY};
      return ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
    };
    bool right = allow(RLIM_INFINITY);
    training.go_to(1);
    training.save(run);
    run.wait();
    const auto says = [](const std::optional<Error>& e, std::initializer_list<std::string_view> parts) {
      return e && std::all_of(parts.begin(), parts.end(),
                              [&](std::string_view part) { return e->message().find(part) != std::string::npos; });
    };
    for (const rlim_t largest : {rlim_t{10'000}, rlim_t{200'000}}) {  // in the weights, in the optimiser's tensors
      right &= allow(largest);
      training.go_to(2);
      training.save(run);
      const auto error = error_of([&] { training.save(run); });
      right &= says(error, {"checkpoints/step-00000002", "bytes", std::strerror(EFBIG),
                            largest == 10'000 ? "model.safetensors" : "train_state.safetensors"});
      const auto again = error_of([&] { run.wait(); });  // reported once
      right &= !again;
      training.load(run);
      right &= training.counters.step == 1;
    }
    right &= names_in(path / "checkpoints") == std::vector<std::string>{"step-00000001"};
    right &= allow(100);  // the log
    run.log({{"step", 2}});
    const auto error = error_of([&] { run.log({{"text", std::string(500, 'x')}}); });
    right &= says(error, {"log.jsonl", "bytes", std::strerror(EFBIG)});
    right &= steps_in(path / "log.jsonl") == std::vector<int64_t>{1, 2};
    right &= allow(RLIM_INFINITY);  // space again
    training.go_to(2);
    training.save(run);
    run.wait();
    return right;
  };
  EXPECT_TRUE(on_a_full_disk(RLIM_INFINITY, child));
  Training loaded("gpt2");
  training.go_to(2);
  ASSERT_TRUE(loaded.load(RunFolder::open(path)));
  EXPECT_EQ(loaded.bits(), training.bits());
}

}  // namespace
}  // namespace qkv
