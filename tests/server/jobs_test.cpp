// Work that is started from the page: who may, one at a time, what is told of it, and how it ends.
#include <fstream>

#include "base/sha256.h"
#include "inspect/watch/movie.h"
#include "server/jobs/job.h"
#include "server/jobs/training_job.h"
#include "server/jobs_support.h"
#include "server/page/page.h"

namespace qkv {
namespace {

using test::Client;
using test::HttpAnswer;
using test::kActor;
using test::small_recipe;
using test::Stage;

namespace fs = std::filesystem;

constexpr const char* kStarting[] = {"training/start", "training/pause", "training/resume",
                                     "training/stop",  "labs/run",       "labs/stop"};

TEST(Jobs, OnlyThePageWithItsTokenMayStartWork) {
  const Stage stage;
  const std::string foreign = "Origin: https://elsewhere.example\r\n", friendly = "Origin: https://friend.example\r\n",
                    wrong = "X-QKV-Token: " + std::string(64, '0') + "\r\n";
  for (const char* path : kStarting) {
    for (const std::string& headers :
         {std::string(), stage.origin(), stage.origin() + wrong, stage.origin() + "X-QKV-Token: \r\n", stage.token(),
          foreign + stage.token(), friendly + stage.token(), stage.origin() + stage.token() + wrong}) {
      EXPECT_EQ(stage.start(path, {{"name", "causality"}}, headers).status, 403) << path << "\n" << headers;
    }
    EXPECT_EQ(stage.server().get(std::string("/page/") + path).status, 405) << path;
  }
  EXPECT_EQ(stage.start("training/start", Json::object(), stage.origin() + wrong).error("code"), "stale_token");
  EXPECT_EQ(stage.said(), "") << "something was started";
  EXPECT_EQ(stage.start("training/start").status, 200);
  for (const char* path : {"jobs", "labs"}) EXPECT_EQ(stage.server().get(std::string("/page/") + path).status, 200);
}

TEST(Jobs, NothingIsStartedOrToldWhereWorkIsNotAllowed) {
  const server::Page page({.work = false});
  for (const char* path : {"/page/jobs", "/page/jobs/events", "/page/jobs/movie", "/page/labs"}) {
    const auto refused = page.refuse({.method = "GET", .path = path}, server::OriginIs::same);
    ASSERT_TRUE(refused) << path;
    EXPECT_EQ(refused->status, 403) << path;
  }
  for (const char* path : kStarting) {
    const server::HttpHead head{
        .method = "POST", .path = std::string("/page/") + path, .headers = {{"X-QKV-Token", page.token()}}};
    const auto refused = page.refuse(head, server::OriginIs::same);
    ASSERT_TRUE(refused) << path;
    EXPECT_EQ(refused->status, 403) << path;
  }
}

TEST(Jobs, NothingIsStartedFromThePageOfAServerWithoutWork) {
  ServerOptions options = test::RunningServer::usual({"plain"});
  options.work = false;
  options.jobs = {.program = "/bin/true", .recipes = {small_recipe()}};
  test::RunningServer server(options);
  EXPECT_EQ(server.get("/page/jobs").status, 403);
  const std::string own = "Origin: http://127.0.0.1\r\nX-QKV-Token: " + server.server().page_token() + "\r\n";
  EXPECT_EQ(server.ask({.path = "/page/training/start", .body = "{}", .headers = own}).status, 403);
  EXPECT_NE(server.get("/page").body.find("\"work\":false"), std::string::npos);
}

TEST(Jobs, TrainingStartsPausesGoesOnAndStops) {
  const Stage stage;
  EXPECT_EQ(stage.start("training/pause").status, 409);
  EXPECT_EQ(stage.start("training/resume").status, 409);
  EXPECT_EQ(stage.start("training/stop").status, 409);
  ASSERT_EQ(stage.start("training/start", {{"layers", 3}, {"heads", 2}, {"seed", 9}, {"language", "zh"}}).status, 200);
  stage.write("go", "12");
  const Json now = stage.when("running", "training", 2);
  EXPECT_EQ(now.at("steps"), 5);
  EXPECT_EQ(now.at("run"), "demo-1");
  EXPECT_NE(stage.said().find("train demo --watch --json --out " + stage.at("runs/demo-1").string()),
            std::string::npos);
  for (const char* set : {"model.num_hidden_layers=3", "model.num_attention_heads=2", "seed=9", "data.world=zh"}) {
    EXPECT_NE(stage.said().find(std::string("--set ") + set), std::string::npos) << set;
  }
  EXPECT_EQ(stage.said().find("hidden_size"), std::string::npos) << "what is not turned is not set";
  ASSERT_EQ(stage.start("training/pause").status, 200);
  EXPECT_EQ(stage.state().at("state"), "paused");
  ASSERT_TRUE(stage.stands());
  stage.write("go", "1234");
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_EQ(stage.state().at("step"), 2) << "a paused training goes on";
  ASSERT_EQ(stage.start("training/resume").status, 200);
  stage.when("running", "training", 4);
  ASSERT_EQ(stage.start("training/pause").status, 200);
  ASSERT_TRUE(stage.stands());
  ASSERT_EQ(stage.start("training/stop").status, 200);  // a paused one saves too
  EXPECT_EQ(stage.when("stopped").at("step"), 4);
  EXPECT_TRUE(fs::exists(stage.at("saved")));
  ASSERT_EQ(stage.start("training/resume").status, 200);  // from its checkpoint
  stage.write("go", "1234567890");
  stage.when("finished");
  EXPECT_NE(stage.said().find("train --resume --json --out"), std::string::npos);
  EXPECT_EQ(stage.start("training/resume").status, 409) << "a training that is done";
}

TEST(Jobs, SecondOneIsRefusedWhileOneIsUnderWay) {
  const Stage stage;
  ASSERT_EQ(stage.start("training/start").status, 200);
  for (const char* path : {"training/start", "labs/run"}) {
    const HttpAnswer refused = stage.start(path, {{"name", "causality"}});
    EXPECT_EQ(refused.status, 409) << path;
    EXPECT_EQ(refused.error("code"), "job_running") << path;
    EXPECT_NE(refused.error().find("a training is under way"), std::string::npos) << refused.error();
  }
  EXPECT_EQ(stage.start("labs/stop").status, 409);
  stage.write("go", "12345");
  stage.when("finished");
  ASSERT_EQ(stage.start("training/start").status, 200);
  EXPECT_EQ(stage.when("finished", "training", 5).at("run"), "demo-2") << "a run is never written over";
}

TEST(Jobs, FailureIsToldAndTheNextOneMayBegin) {
  const Stage stage;
  stage.write("fail", "");
  ASSERT_EQ(stage.start("training/start").status, 200);
  EXPECT_EQ(stage.when("failed").at("error"), "the disk has 3 bytes, 4 are needed; hint: make room");
  fs::remove(stage.at("fail"));
  stage.write("go", "12345");
  ASSERT_EQ(stage.start("training/start").status, 200);
  EXPECT_FALSE(stage.when("finished").contains("error"));
}

TEST(Jobs, ProgramThatIsNotThereIsAFailureToo) {
  const Stage stage("/no/such/program");
  ASSERT_EQ(stage.start("training/start").status, 200);
  EXPECT_NE(stage.when("failed").at("error").get<std::string>().find("cannot start /no/such/program"),
            std::string::npos);
}

TEST(Jobs, KilledProcessIsAFailure) {
  EXPECT_EQ(server::complaint_of("training: 4 of 9\n", 137),
            "it was ended by signal 9 (there may be too little memory)");
  EXPECT_EQ(server::complaint_of("", 3), "it ended with code 3 and said nothing");
  EXPECT_EQ(server::complaint_of("qkv: one\nqkv: two\n  at x.cpp:1\n", 2), "two");
}

TEST(Jobs, WatcherThatLeavesEndsNothingAndOneThatComesBackHearsAll) {
  const Stage stage;
  ASSERT_EQ(stage.start("training/start").status, 200);
  stage.write("go", "1");
  {
    Client watcher(stage.server().port());
    watcher.send("GET /page/jobs/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    ASSERT_TRUE(watcher.read_until("[1,5.5,0]")) << watcher.received();
  }
  stage.write("go", "123");
  stage.when("running", "training", 3);
  Client back(stage.server().port());
  back.send("GET /page/jobs/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  ASSERT_TRUE(back.read_until(R"({"all":true,"points":[[1,5.5,0],[2,4.5,0],[3,3.5,0]]})")) << back.received();
  stage.write("go", "12345");
  ASSERT_TRUE(back.read_until(R"("state":"finished")")) << back.received();
}

TEST(Jobs, EndOfTheServerIsAStopThatSaves) {
  Stage stage;
  ASSERT_EQ(stage.start("training/start").status, 200);
  stage.write("go", "1");
  stage.when("running", "training", 1);
  Client watcher(stage.server().port());
  watcher.send("GET /page/jobs/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  ASSERT_TRUE(watcher.read_until("[1,5.5,0]"));
  ASSERT_EQ(stage.start("training/pause").status, 200);
  ASSERT_TRUE(stage.stands());
  stage.close();
  EXPECT_TRUE(fs::exists(stage.at("saved"))) << "it was killed, not stopped";
  EXPECT_TRUE(fs::exists(stage.at("runs/demo-1/log.jsonl"))) << "what was trained is gone";
}

// qkv demo trains in its own process; the page only looks.
TEST(Jobs, FollowedTrainingIsShownAndNotOurs) {
  Stage stage;
  Server& server = stage.server().server();
  const fs::path run = stage.at("own-run");
  fs::create_directories(run);
  std::ofstream(run / "recipe.json") << R"({"name": "demo", "steps": 3})";
  server.show_training(run.string());
  std::ofstream(run / "log.jsonl") << "{\"step\": 2, \"loss\": 4.5}\n";
  const Json now = stage.when("running", "training", 2);
  EXPECT_TRUE(now.value("followed", false));
  for (const char* path : {"training/stop", "training/pause", "training/start"}) {
    EXPECT_EQ(stage.start(path).status, 409) << path;
  }
  server.training_ended(true);
  stage.when("finished");
  EXPECT_TRUE(fs::exists(run / "log.jsonl"));
  EXPECT_EQ(stage.start("training/start").status, 200) << "the page's own may begin now";
}

// The end of the first one is no end of the second.
TEST(Jobs, ASecondTrainingIsFollowedToItsOwnEnd) {
  Stage stage;
  Server& server = stage.server().server();
  for (int64_t number : {1, 2}) {
    const fs::path run = stage.at("own-run-" + std::to_string(number));
    fs::create_directories(run);
    std::ofstream(run / "recipe.json") << R"({"name": "demo", "steps": 9})";
    server.show_training(run.string());
    std::ofstream(run / "log.jsonl") << "{\"step\": " << 3 * number << ", \"loss\": 4.5}\n";
    stage.when("running", "training", 3 * number);
    server.training_ended(true);
    stage.when("finished");
  }
}

TEST(Jobs, RunsWithoutAFolderAreRemovedAtTheEnd) {
  const TempFolder folder;
  const fs::path actor = folder.write("actor", kActor);
  ::chmod(actor.c_str(), 0755);
  folder.write("go", "12345");
  fs::path run;
  {
    server::Jobs jobs({.program = actor.string(), .recipes = {small_recipe()}});
    jobs.train("demo", server::Fields(OrderedJson::object(), ""));
    while (jobs.state()["training"]["state"] != "finished") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::string said = read_file(folder.path() / "said", 1 << 20);
    const size_t at = said.find("--out ") + 6;
    run = said.substr(at, said.find_first_of(" \n", at) - at);
    EXPECT_TRUE(fs::exists(run / "log.jsonl")) << run;
  }
  EXPECT_FALSE(fs::exists(run.parent_path())) << run;
}

TEST(Jobs, KnobsAreCheckedAndNoFolderIsTakenFromAClient) {
  const Stage stage;
  for (const auto& [body, field] : {std::pair{Json{{"layers", 0}}, "layers"},
                                    {Json{{"layers", 13}}, "layers"},
                                    {Json{{"heads", 17}}, "heads"},
                                    {Json{{"heads", 3}}, "width"},
                                    {Json{{"width", 65}}, "width"},
                                    {Json{{"width", 4}}, "width"},
                                    {Json{{"width", "wide"}}, "width"},
                                    {Json{{"seed", -1}}, "seed"},
                                    {Json{{"steps", 3}}, "steps"},
                                    {Json{{"language", "fr"}}, "language"},
                                    {Json{{"recipe", "../../etc"}}, "recipe"},
                                    {Json{{"recipe", "world"}}, "recipe"}}) {
    const HttpAnswer refused = stage.start("training/start", body);
    EXPECT_EQ(refused.status, 400) << body.dump();
    EXPECT_EQ(refused.error("param"), field) << body.dump();
  }
  EXPECT_EQ(stage.said(), "");
  ASSERT_EQ(stage.start("training/start", {{"out", "/tmp/elsewhere"}, {"runs", "/tmp/elsewhere"}}).status, 200);
  stage.write("go", "12345");
  stage.when("finished");
  EXPECT_EQ(stage.said().find("elsewhere"), std::string::npos);
  EXPECT_EQ(stage.start("labs/run", {{"name", "nonsense"}}).status, 400);
  EXPECT_EQ(stage.start("labs/run", {{"name", "causality"}, {"seeds", 2}}).status, 400);
}

TEST(Jobs, LabRunsWithProgressAndCanBeStopped) {
  const Stage stage;
  const Json before = stage.server().get("/page/labs").json().at("labs");
  EXPECT_GE(before.size(), 8U);
  ASSERT_EQ(stage.start("labs/run", {{"name", "causality"}}).status, 200);
  Json now = Json::object();
  for (int i = 0; i < 500 && now.value("doing", "") != "measuring"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    now = stage.state("lab");
  }
  EXPECT_EQ(now.at("doing"), "measuring") << now.dump();
  EXPECT_EQ(now.at("seeds"), 3);
  EXPECT_GT(now.at("share").get<double>(), 0) << "a recorded lab knows how long a seed is";
  EXPECT_LT(now.at("share").get<double>(), 0.34);
  const auto asked = stage.start("labs/stop");
  ASSERT_EQ(asked.status, 200);
  stage.when("stopped", "lab");
  EXPECT_LT(asked.json().at("version"), stage.server().get("/page/jobs").json().at("version")) << "which came later";
  stage.write("go", "1");
  ASSERT_EQ(stage.start("labs/run", {{"name", "causality"}, {"seeds", 4}}).status, 200);
  stage.when("finished", "lab");
  EXPECT_NE(stage.said().find("lab causality --lines --seeds 4"), std::string::npos);
  const Json after = stage.server().get("/page/labs").json().at("labs");
  for (const Json& lab : after) {
    EXPECT_EQ(lab.at("here").is_null(), lab.at("name") != "causality") << lab.at("name");
  }
}

TEST(Jobs, LinesOfAGrowingFileComeOnceAndAgainWhenItIsCutBack) {
  const TempFolder folder;
  server::GrowingLines lines(folder.path() / "log");
  bool restarted = false;
  EXPECT_TRUE(lines.take(restarted).empty());
  folder.write("log", "one\ntw");
  EXPECT_EQ(lines.take(restarted), std::vector<std::string>{"one"});
  folder.write("log", "one\ntwo\n");
  EXPECT_EQ(lines.take(restarted), std::vector<std::string>{"two"});
  EXPECT_FALSE(restarted);
  folder.write("log", "one\n");
  EXPECT_EQ(lines.take(restarted), std::vector<std::string>{"one"});
  EXPECT_TRUE(restarted);
}

#ifdef QKV_PROGRAM
std::string weights_hash(const fs::path& run) {
  const std::string bytes = read_file(run / "last" / "model.safetensors", size_t{64} << 20);
  return sha256_hex(std::as_bytes(std::span(bytes)));
}

// The program itself: watched from the page, paused and resumed in between, a training has the bits of one that nobody saw.
TEST(Jobs, WatchedTrainingHasTheSameWeightsAndTheMovieOfQkvMovie) {
  const Stage stage(QKV_PROGRAM);
  const Json knobs{{"layers", 1}, {"heads", 2}, {"width", 16}, {"steps", 12}, {"seed", 5}};
  ASSERT_EQ(stage.start("training/start", knobs).status, 200);
  Client watcher(stage.server().port());
  watcher.send("GET /page/jobs/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  stage.when("running", "training", 2);
  stage.start("training/pause");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  stage.start("training/resume");
  const Json done = stage.when("finished", "training", 12);
  ASSERT_TRUE(watcher.read_until(R"("state":"finished")"));
  EXPECT_EQ(done.at("knobs").at("width"), 16);
  EXPECT_GT(done.at("parameters").get<double>(), 1000);
  const fs::path run = stage.at("runs/demo-1");
  const Json shown = stage.server().get("/page/jobs/movie").json().at("movie");
  const Movie movie = make_movie(run);
  EXPECT_EQ(shown, parse_json(to_json(movie, movie_texts(run, movie.embedding.tokens)).dump(), "movie"));
  EXPECT_EQ(shown.at("steps").back(), 12);

  const std::string alone = stage.at("alone").string();
  const std::string command =
      std::string(QKV_PROGRAM) + " train demo --out " + alone +
      " --set model.num_hidden_layers=1 --set model.num_attention_heads=2 --set model.num_key_value_heads=2"
      " --set model.hidden_size=16 --set model.intermediate_size=32 --set steps=12 --set seed=5 --device cpu --threads "
      "1"
      " >/dev/null 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(weights_hash(run), weights_hash(alone));
}
#endif

}  // namespace
}  // namespace qkv
