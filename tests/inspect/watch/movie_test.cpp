// The movie made of the snapshots of a training run: sketches against whole matrices, folders that grow or are damaged.
#include "inspect/watch/movie.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "core/host_values.h"
#include "inspect/heads/head_id.h"
#include "inspect/watch/watched.h"
#include "inspect/watch/watcher.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// A movie that is read while the run goes on ends as the one that is read at the end; its axes stay while they can.
TEST(GrowingMovies, read_what_is_new_and_end_as_the_whole) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Watcher watcher(*model, engine, test::watch_data(*model), test::kWatchOptions);
  const TempFolder whole, part;
  WatchFolder folder = WatchFolder::create(whole.path(), watcher.plan());
  const auto changed = [&](int64_t step, double by) {
    Arena arena(engine.device());
    Context cx = engine.context(arena, Precision::f32());
    for (auto& [name, weight] : model->weights()) {
      if (name != "embed") continue;
      const Tensor w = weight.writable(cx);
      const test::Numbers noise = test::normals(static_cast<uint64_t>(step), w.count(), by);
      for (int64_t i = 0; i < w.count(); ++i) w.as<float>()[i] += static_cast<float>(noise[static_cast<size_t>(i)]);
      weight.updated();
    }
    folder.write(watcher.take(step));
    folder.wait();
  };
  changed(0, 0);
  changed(1, 1e-4);
  changed(2, 10);  // whatever the axes showed is lost in this
  changed(3, 1e-4);
  const auto copy = [&](const std::string& name) {
    std::filesystem::create_directories(part.path() / "watch");
    std::filesystem::copy_file(whole.path() / "watch" / name, part.path() / "watch" / name);
  };
  const auto snapshot = [](int step) { return "step-0000000" + std::to_string(step) + ".safetensors"; };

  GrowingMovie movie(part.path());
  EXPECT_FALSE(movie.grow()) << "there is no run yet";
  EXPECT_TRUE(movie.empty());
  copy("watch.json");
  copy(snapshot(0));
  EXPECT_TRUE(movie.grow());
  EXPECT_FALSE(movie.grow()) << "nothing is new";
  EXPECT_EQ(movie.movie(false).embedding.basis, 0);
  copy(snapshot(1));
  EXPECT_TRUE(movie.grow());
  const Movie early = movie.movie(false);
  EXPECT_EQ(early.steps, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(early.embedding.basis, 0) << "axes that still show it stay";
  copy(snapshot(2));
  EXPECT_TRUE(movie.grow());
  EXPECT_EQ(movie.movie(false).embedding.basis, 2) << "axes that show nothing are chosen anew";
  copy(snapshot(3));
  EXPECT_TRUE(movie.grow());
  EXPECT_EQ(movie.movie(false).embedding.basis, 2);
  const Movie last = movie.movie(true), at_once = make_movie(whole.path());
  EXPECT_EQ(last.embedding.basis, 3);
  const std::vector<std::string> texts(last.embedding.tokens.size(), "x");
  EXPECT_EQ(to_json(last, texts), to_json(at_once, texts));
  std::filesystem::remove(part.path() / "watch" / snapshot(3));  // a resumed run takes it again
  EXPECT_TRUE(movie.grow());
  EXPECT_EQ(movie.movie(false).steps, (std::vector<int64_t>{0, 1, 2}));
}

// Two models that differ in known ways: sampled entries against all entries.
TEST(Sketches, tell_motion_and_cosine_of_whole_matrices) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("llama")).model(),
             start = Checkpoint::open(test::golden("llama")).model();
  Watcher watcher(*model, engine, test::watch_data(*model), test::kWatchOptions);
  const TempFolder temp;
  WatchFolder folder = WatchFolder::create(temp.path(), watcher.plan());
  const auto take = [&](int64_t step) {
    Snapshot s = watcher.take(step);
    folder.write(std::move(s));
  };
  take(0);
  watcher.before_step(0);  // the step before the snapshot at step 1
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  uint64_t seed = 0;
  for (auto& [name, weight] : model->weights()) {
    const Tensor w = weight.writable(cx);
    const test::Numbers noise = test::normals(++seed, w.count(), 0.02);
    for (int64_t i = 0; i < w.count(); ++i) w.as<float>()[i] += static_cast<float>(noise[static_cast<size_t>(i)]);
    weight.updated();
  }
  take(1);
  folder.wait();

  const Movie movie = make_movie(temp.path());
  EXPECT_EQ(movie.steps, (std::vector<int64_t>{0, 1}));
  for (const auto& [label, name] :
       {std::pair("L0 W_Q", "layers.0.attn.q"), {"L1 W_O", "layers.1.attn.o"}, {"E", "embed"}}) {
    const auto at = std::find(movie.plan.weights.begin(), movie.plan.weights.end(), label);
    ASSERT_NE(at, movie.plan.weights.end()) << label;
    const Movie::Weight& weight = movie.weights[static_cast<size_t>(at - movie.plan.weights.begin())];
    const std::vector<float> a = host_floats(start->weights().at(name).master()),
                             b = host_floats(model->weights().at(name).master());
    double change = 0, size = 0, now = 0, both = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      change += (y - x) * (y - x);
      size += x * x;
      now += y * y;
      both += x * y;
    }
    EXPECT_NEAR(weight.moved[1], std::sqrt(change / size), 0.05 * weight.moved[1]) << label;
    EXPECT_NEAR(weight.cosine[0], both / std::sqrt(size * now), 0.05) << label;
    EXPECT_NEAR(weight.update[1], std::sqrt(change / now), 0.05 * weight.update[1]) << label;
    EXPECT_EQ(weight.moved[0], 0);
    EXPECT_NEAR(weight.cosine[1], 1, 1e-12);
  }
  EXPECT_EQ(movie.embedding.neighbours[1], 1);
  EXPECT_LT(movie.embedding.neighbours[0], 1);
  EXPECT_EQ(movie.loss[0].texts, 5);
  const Json json = to_json(movie, std::vector<std::string>(movie.embedding.tokens.size(), "猫"));
  EXPECT_EQ(json["heads"].size(), all_heads(model->spec()).size());
  EXPECT_EQ(json["heads"][0]["roles"]["previous"].size(), 2U);
  EXPECT_TRUE(json["heads"][0]["importance"][0].is_null());  // there was no backward pass
  EXPECT_EQ(json["embedding"]["x"][1].size(), movie.embedding.tokens.size());
  EXPECT_EQ(json["phases"].size(), 4U);

  // Without the snapshots, from the report alone.
  const std::filesystem::path report = temp.path() / "movie.json";
  std::ofstream(report) << Json{{"movie", json}}.dump();
  const ToldMovie told = read_movie(report);
  EXPECT_EQ(to_json(told.movie, told.texts), json);
  Json shorter = json;
  shorter["heads"][0]["roles"]["previous"].erase(1);
  std::ofstream(report) << Json{{"movie", shorter}}.dump();
  expect_error([&] { read_movie(report); }, {"1 entries but should have 2"});
  std::ofstream(report) << "{}";
  expect_error([&] { read_movie(report); }, {"not the report of a movie"});

  folder.remove_after(0);
  EXPECT_EQ(folder.steps(), std::vector<int64_t>{0});
}

TEST(WatchFolder, says_what_is_wrong_with_it) {
  const TempFolder temp;
  const fs::path run = temp.path() / "跑";
  expect_error([&] { make_movie(run); }, {"there is no", "跑"});
  fs::create_directory(run);
  const std::optional<Error> unwatched = error_of([&] { make_movie(run); });
  ASSERT_TRUE(unwatched.has_value());
  EXPECT_NE(unwatched->hint().find("--watch"), std::string::npos);

  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Watcher watcher(*model, engine, test::watch_data(*model), test::kWatchOptions);
  WatchFolder folder = WatchFolder::create(run, watcher.plan());
  expect_error([&] { make_movie(run); }, {"none has been taken"});
  folder.write(watcher.take(16));
  folder.wait();
  EXPECT_EQ(folder.read(16).step, 16);
  const fs::path file = WatchFolder::in(run) / "step-00000016.safetensors";
  const auto size = fs::file_size(file);

  const auto damaged = [&](const std::function<void()>& damage, std::initializer_list<std::string_view> parts) {
    const std::string good = read_file(file, size + 1);
    damage();
    expect_error([&] { make_movie(run); }, parts);
    write_file_atomic(file, std::as_bytes(std::span(good)));
  };
  damaged([&] { fs::resize_file(file, size - 9); }, {"step-00000016.safetensors"});
  const auto spoil = [&](std::streamoff from) {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(from);
    for (int i = 0; i < 16; ++i) out.put('\xff');
  };
  uint64_t header = 0;
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof(header));
  damaged([&] { spoil(static_cast<std::streamoff>(8 + header)); }, {"step-00000016.safetensors", "nan"});  // F64
  damaged([&] { spoil(static_cast<std::streamoff>(size) - 16); }, {"step-00000016.safetensors", "a count is -1"});
  damaged([&] { fs::copy_file(file, WatchFolder::in(run) / "step-00000032.safetensors"); },
          {"step-00000032.safetensors", "16", "32"});
  fs::remove(WatchFolder::in(run) / "step-00000032.safetensors");
  EXPECT_EQ(make_movie(run).steps.size(), 1U);
  WatchPlan other = watcher.plan();
  other.heads.pop_back();
  WatchFolder::create(run, other);
  expect_error([&] { make_movie(run); }, {"step-00000016.safetensors", "watch.json"});
  std::ofstream(WatchFolder::in(run) / "watch.json") << "{\"steps\": 3}";
  expect_error([&] { make_movie(run); }, {"watch.json"});
}

// Plans of equal sizes can differ too: the message names what does, and both values.
TEST(Watching, goes_on_only_with_its_own_snapshots) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Watcher watcher(*model, engine, test::watch_data(*model), test::kWatchOptions);
  const WatchPlan own = watcher.plan();
  watcher.resume(own, 0, 1);
  const auto refused = [&](const std::function<void(WatchPlan&)>& change,
                           std::initializer_list<std::string_view> parts) {
    WatchPlan other = own;
    change(other);
    expect_error([&] { watcher.resume(other, 0, 1); }, parts);
  };
  const std::string first = std::to_string(own.tokens[0]), second = std::to_string(own.tokens[1]);
  refused([](WatchPlan& plan) { std::swap(plan.tokens[0], plan.tokens[1]); },
          {"number 0 of the", "tokens is " + second + " in the existing snapshots but " + first});
  refused([](WatchPlan& plan) { plan.heads[2] = "L7H9"; }, {"number 2 of the", "heads is L7H9", "but L0H2"});
  refused([](WatchPlan& plan) { plan.heads.pop_back(); }, {"heads but this run has"});
  refused([](WatchPlan& plan) { plan.weights[1] = "L0 W_X"; }, {"number 1 of the", "matrices is L0 W_X"});
  refused([](WatchPlan& plan) { plan.texts = 8; }, {"8 texts but this run has 5"});
  refused([](WatchPlan& plan) { plan.synthetic += 1; }, {"synthetic texts but this run has"});
  refused([](WatchPlan& plan) { plan.width *= 2; }, {"numbers in an embedding"});
  refused([](WatchPlan& plan) { plan.repeated += 1; }, {"tokens that are repeated"});
}

// Snapshots that were taken stay; those after them are of the new number of steps.
TEST(Watching, goes_on_with_another_number_of_steps) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const auto plan_of = [&](int64_t steps, const WatchPlan* before, int64_t done) {
    WatchOptions options = test::kWatchOptions;
    options.steps = steps;
    Watcher watcher(*model, engine, test::watch_data(*model), options);
    if (before != nullptr) watcher.resume(*before, done, 0);
    EXPECT_TRUE(watcher.due(steps));
    return watcher.plan();
  };
  const WatchPlan first = plan_of(40, nullptr, 0), longer = plan_of(400, nullptr, 0);
  const auto joined = [&](const WatchPlan& before, const WatchPlan& after, int64_t done) {
    std::vector<int64_t> steps;
    for (const int64_t step : before.steps) {
      if (step <= done) steps.push_back(step);
    }
    for (const int64_t step : after.steps) {
      if (step > done) steps.push_back(step);
    }
    return steps;
  };
  EXPECT_EQ(plan_of(400, &first, 40).steps, joined(first, longer, 40));
  EXPECT_EQ(plan_of(400, &first, 17).steps, joined(first, longer, 17));
  EXPECT_EQ(plan_of(40, &longer, 17).steps, joined(longer, first, 17));
  WatchPlan own = plan_of(400, &first, 40);
  EXPECT_EQ(plan_of(400, &own, 111).steps, own.steps);  // once more: as it was planned
}

}  // namespace
}  // namespace qkv
