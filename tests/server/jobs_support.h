// A server whose page may start work, and a program that does the work as a test says.
#pragma once

#include <sys/stat.h>

#include "server/test_server.h"

namespace qkv::test {

// Commands of a program that does what a test says, in place of qkv train and qkv lab. A training takes a step whenever
// the file "go" has one more byte, saves when it is told to stop, and ends after its last step.
inline constexpr const char* kActor = R"sh(#!/bin/sh
here=$(dirname "$0")
echo "$@" >>"$here/said"
if [ "$1" = lab ]; then
  trap 'exit 130' TERM
  echo '{"seed": 1, "seeds": 3, "checks": 1, "doing": "measuring"}'
  while [ ! -e "$here/go" ]; do sleep 0.02; done
  echo '{"seed": 2, "seeds": 3, "checks": 1, "doing": "measuring"}'
  echo '{"lab": "causality", "verdict": "seen", "stopped": false, "seeds": [1, 2, 3], "rows": [], "rules": [], "curves": []}'
  exit 0
fi
while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done
if [ -e "$here/fail" ]; then
  printf 'writing stories: 1 of 2\nqkv: the disk has 3 bytes, 4 are needed\n  hint: make room\n  at src/some.cpp:3\n' >&2
  exit 2
fi
echo $$ >"$here/pid"
mkdir -p "$out"
echo '{"name": "demo", "steps": 5, "seed": 7, "model": {"num_hidden_layers": 2}}' >"$out/recipe.json"
trap 'echo saved >"$here/saved"; echo "{\"ended\": \"stopped as asked, and saved\"}"; exit 0' TERM
step=0
while [ $step -lt 5 ]; do
  while [ "$(cat "$here/go" 2>/dev/null | wc -c)" -le $step ]; do sleep 0.02; done
  step=$((step + 1))
  echo "{\"step\": $step, \"loss\": $((6 - step)).5}" >>"$out/log.jsonl"
done
echo '{"ended": "done"}'
)sh";

// The knobs of recipes/demo.json.
inline const Json& small_recipe() {
  static const Json recipe = {{"name", "demo"},
                              {"steps", 600},
                              {"seed", 1},
                              {"model",
                               {{"num_hidden_layers", 2},
                                {"num_attention_heads", 4},
                                {"num_key_value_heads", 4},
                                {"hidden_size", 64},
                                {"intermediate_size", 128}}},
                              {"data", {{"world", "en"}}}};
  return recipe;
}

// A server whose page may start what the actor does.
class Stage {
 public:
  explicit Stage(const std::string& program = "") {
    const std::filesystem::path actor = folder_.write("actor", kActor);
    ::chmod(actor.c_str(), 0755);
    ServerOptions options = RunningServer::usual({"plain"});
    options.drain = server::Seconds(1);
    options.origins.cors = {"https://friend.example"};
    options.jobs = {.program = program.empty() ? actor.string() : program,
                    .recipes = {small_recipe()},
                    .runs = (folder_.path() / "runs").string()};
    if (!program.empty()) options.jobs.arguments = {"--device", "cpu", "--threads", "1"};
    server_.emplace(options);
    const std::string page = server_->get("/page").body;
    token_ = page.substr(page.find("\"token\":\"") + 9, 64);
  }

  std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }
  void write(const std::string& name, std::string_view text) const { folder_.write(name, text); }
  std::string said() const { return std::filesystem::exists(at("said")) ? read_file(at("said"), 1 << 20) : ""; }
  const RunningServer& server() const { return *server_; }
  RunningServer& server() { return *server_; }
  void close() { server_.reset(); }

  std::string origin() const { return "Origin: http://127.0.0.1\r\n"; }
  std::string token() const { return "X-QKV-Token: " + token_ + "\r\n"; }
  HttpAnswer start(const std::string& path, const Json& body, const std::string& headers) const {
    return server_->ask({.path = "/page/" + path, .body = body.dump(), .headers = headers});
  }
  HttpAnswer start(const std::string& path, const Json& body = Json::object()) const {
    return start(path, body, origin() + token());
  }
  Json state(const char* kind = "training") const { return server_->get("/page/jobs").json().at(kind); }
  // Waits until the process of the training stands.
  bool stands() const {
    const std::string pid = std::to_string(std::stoi(read_file(at("pid"), 100)));
    for (int i = 0; i < 1000; ++i) {
      const std::string status = read_file("/proc/" + pid + "/stat", 1 << 12);
      if (status.find(") T ") != status.npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  // Waits for it; an empty object if it does not come.
  Json when(const std::string& wanted, const char* kind = "training", int64_t step = 0) const {
    for (int i = 0; i < 3000; ++i) {
      const Json now = state(kind);
      if (now.is_object() && now.at("state") == wanted && now.value("step", int64_t{0}) >= step) return now;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << "never " << wanted << ": " << state(kind).dump();
    return Json::object();
  }

 private:
  TempFolder folder_;
  std::optional<RunningServer> server_;
  std::string token_;
};

}  // namespace qkv::test
