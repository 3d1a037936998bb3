// The one binary. Exit codes: 0 done, 1 the answer is no, 2 the request or its data is wrong, 3 we are wrong.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "common/commands.h"
#include "common/interrupt.h"

namespace {

constexpr int kAnswerNo = 1;
constexpr int kWrongInput = 2;
constexpr int kInternal = 3;

constexpr const char* kExamples = R"(Examples:
  ./qkv demo                                    trains a small model and looks inside it; --lang zh in Chinese
  ./qkv train world --watch --out my-world      a model from text, and snapshots of how it learns
  ./qkv run MODEL "Once upon a time"            what a model writes
  ./qkv look MODEL "The cat sat on the"         guesses layer by layer, who looks at whom, one token's way
  ./qkv heads MODEL --data text.txt             what each head does
  ./qkv cut MODEL --heads L3H7 --data text.txt  what happens without it
  ./qkv lab --list                              claims about Transformers as experiments
  ./qkv verify tests/golden/llama               a model against what transformers recorded
  ./qkv info --preset llama3-8b                 a model as a picture, its parameters, its memory
  ./qkv tokenize MODEL "床前明月光"               text as tokens
  ./qkv COMMAND --help                          options and examples of a command
  ./qkv test                                    build everything and run the tests

Exit codes: 0 done, 1 the answer is no, 2 the request or its data is wrong, 3 we are wrong.)";

int complain(const std::string& text, int code) {
  std::cerr << "qkv: " << text << '\n';
  return code;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

int unknown_command(const std::string& name, const std::vector<std::string>& commands) {
  if (name == "test") {
    return complain("'test' is a command of the launcher\n  hint: run  ./qkv test  at the root of the repository",
                    kWrongInput);
  }
  std::vector<std::string_view> known{"test"};
  known.insert(known.end(), commands.begin(), commands.end());
  const std::string near = qkv::nearest_key(name, known);
  const std::string advice = near.empty() ? "" : "did you mean  qkv " + near + "  ? Otherwise ";
  return complain("unknown command '" + name + "'\n  hint: " + advice + "see  qkv --help", kWrongInput);
}

int run(int argc, char** argv) {
  CLI::App app{"qkv: a transformer engine you can look into", "qkv"};
  app.set_version_flag("--version", "qkv " QKV_VERSION);
  app.require_subcommand(0, 1);
  const qkv::app::Command commands(app);
  qkv::app::add_align(commands);
  qkv::app::add_attribute(commands);
  qkv::app::add_chat(commands);
  qkv::app::add_convert(commands);
  qkv::app::add_cut(commands);
  qkv::app::add_demo(commands);
  qkv::app::add_data(commands);
  qkv::app::add_eval(commands);
  qkv::app::add_heads(commands);
  qkv::app::add_info(commands);
  qkv::app::add_lab(commands);
  qkv::app::add_lens(commands);
  qkv::app::add_look(commands);
  qkv::app::add_movie(commands);
  qkv::app::add_new(commands);
  qkv::app::add_quantize(commands);
  qkv::app::add_route(commands);
  qkv::app::add_run(commands);
  qkv::app::add_score(commands);
  qkv::app::add_taps(commands);
  qkv::app::add_tokenize(commands);
  qkv::app::add_tokenizer(commands);
  qkv::app::add_train(commands);
  qkv::app::add_translate(commands);
  qkv::app::add_twins(commands);
  qkv::app::add_verify(commands);
  qkv::app::add_world(commands);
  app.footer(kExamples);  // after the commands, which would inherit it

  const std::string first = argc > 1 ? argv[1] : "--help";
  if (first[0] != '-') {
    const std::vector<std::string> known = command_names(app);
    if (std::find(known.begin(), known.end(), first) == known.end()) return unknown_command(first, known);
  }
  int code = 0;
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) std::cout << app.help();
  } catch (const qkv::app::AnswerNo&) {
    code = kAnswerNo;
  } catch (const qkv::app::Interrupted&) {
    code = qkv::app::kInterruptedExit;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      app.exit(error);
    } else {
      return complain(std::string(error.what()) + "\n  hint: see  qkv --help", kWrongInput);
    }
  }
  std::cout.flush();
  if (!std::cout)
    return complain("could not write the output\n  hint: the disk is full or the reader went away", kWrongInput);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that went away or a file size limit is a failed write, which says what it is.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const qkv::Error& error) {
    return complain(error.what(), error.kind() == qkv::Error::Kind::input ? kWrongInput : kInternal);
  } catch (const std::exception& error) {
    return complain(std::string("unexpected failure: ") + error.what(), kInternal);
  }
}
