// The one binary. Exit codes: 0 done or yes, 1 the answer is no, 2 bad input, 3 internal error, 130 Ctrl-C.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/temporaries.h"
#include "common/commands.h"
#include "common/interrupt.h"
#include "common/terminal.h"
#include "help/help_text.h"
#include "help/mistakes.h"

namespace {

using namespace qkv::app;

constexpr int kAnswerNo = 1;
constexpr int kWrongInput = 2;
constexpr int kInternal = 3;

constexpr const char* kMainExamples = R"(Examples:
  ./qkv demo                                    train a small model and look inside it; --lang zh in Chinese
  ./qkv models                                  the models that ship, to be used by name
  ./qkv train demo --watch --out my-run         train a model, with snapshots of how it learns
  ./qkv run MODEL "Once upon a time"            let a model write
  ./qkv look MODEL "The cat sat on the"         guesses layer by layer, attention maps, one token's path
  ./qkv heads MODEL --data text.txt             what each head does
  ./qkv cut MODEL --heads L3H7 --data text.txt  what happens without a head
  ./qkv lab --list                              claims about Transformers as experiments
  ./qkv verify tests/golden/llama               a model against what Hugging Face transformers computed
  ./qkv info --preset llama3-8b                 a model as a picture, its parameters, its memory
  ./qkv help COMMAND                            options and examples of a command

Of the launcher, at the root of the repository:
  ./qkv test                                    build everything and run the tests
  ./qkv bench                                   measure speed

Exit codes: 0 done or yes, 1 the answer is no, 2 bad input, 3 internal error, 130 stopped with Ctrl-C.)";

#ifdef QKV_WITH_CUDA
// CUDA's runtime notes its kernels before main and goes on where it is refused memory for that: so whether there is some is asked
// before it.
__attribute__((constructor(101))) void need_memory_for_kernels() {
  constexpr size_t kBytes = 512 << 10;  // it takes 90 KB
  void* const memory = std::malloc(kBytes);
  if (memory != nullptr) return std::free(memory);
  constexpr std::string_view kText =
      "qkv: out of memory before the program began\n  hint: give it more address space (ulimit -v)\n";
  std::ignore = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kWrongInput);
}
#endif

int complain(const std::string& text, int code) {
  constexpr size_t kLongest = 2000;  // room for an Error: its message, its hint and the place
  std::cerr << "qkv: " << qkv::shortened(text, kLongest) << '\n';
  return code;
}

int complain(const Mistake& mistake) {
  return complain(qkv::shortened(mistake.what, qkv::kLongestMessage) + "\n  hint: " + mistake.hint, kWrongInput);
}

void add_commands(const Command& all, const CommandInfo& program) {
  const Command make = all.group("Make"), runs = all.group("Run"), judge = all.group("Judge"),
                change = all.group("Change"), see = all.group("See"), help = all.group("Help");
  add_new(make);
  add_train(make);
  add_tokenizer(make);
  add_data(make);
  add_world(make);
  add_run(runs);
  add_chat(runs);
  add_translate(runs);
  add_serve(runs);
  add_tokenize(runs);
  add_models(runs);
  add_eval(judge);
  add_score(judge);
  add_verify(judge);
  add_lab(judge);
  add_convert(change);
  add_quantize(change);
  add_cut(change);
  add_demo(see);
  add_info(see);
  add_look(see);
  add_heads(see);
  add_lens(see);
  add_attribute(see);
  add_patch(see);
  add_twins(see);
  add_align(see);
  add_route(see);
  add_taps(see);
  add_movie(see);
  add_version(help);
  add_completion(help, program);
  add_help(help, program);
}

// --help and --version are commands too.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words.front() == "--help" || words.front() == "-h") {
    words = {"help"};
  } else if (words.front() == "--version") {
    words.front() = "version";
  }
  return words;
}

int run_program(int argc, char** argv) {
  CLI::App app{"", "qkv"};
  app.require_subcommand(0, 1);
  CommandInfo program{.name = "qkv",
                      .path = "qkv",
                      .what = "qkv trains Transformers, runs them and looks inside them.",
                      .footer = kMainExamples};
  add_commands({app, program}, program);

  const std::vector<std::string> words = words_of(argc, argv);
  if (std::find(std::begin(kLauncherCommands), std::end(kLauncherCommands), words.front()) !=
      std::end(kLauncherCommands)) {
    return complain({"'" + words.front() + "' is a command of the launcher",
                     "run  ./qkv " + words.front() + "  at the root of the repository"});
  }
  if (!words.front().starts_with("-") && program.command(words.front()) == nullptr) {
    return complain(unknown_command(program, words.front()));
  }
  if (const auto mistake = old_spelling(program, words)) return complain(*mistake);
  int code = 0;
  const CommandInfo& command = command_of(program, words);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const AnswerNo&) {
    code = kAnswerNo;
  } catch (const Interrupted&) {
    code = kInterruptedExit;
  } catch (const ExitWith& ended) {
    code = ended.code;
  } catch (const CLI::CallForHelp&) {
    std::cout << help_text(command, help_columns());
  } catch (const CLI::ParseError& error) {
    return complain(mistake_in(command, app.remaining(true), error.what()));
  }
  std::cout.flush();
  if (!std::cout)
    return complain("could not write the output\n  hint: the disk is full or the reader went away", kWrongInput);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  qkv::open_standard_descriptors();
  qkv::note_failed_allocations();
  // A reader that went away or a file size limit is a failed write, which says what it is.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  qkv::remove_temporaries_on_signals();
  const SafeOutput safe_output;
  try {
    return run_program(argc, argv);
  } catch (const qkv::Error& error) {
    return complain(error.what(), error.kind() == qkv::Error::Kind::input ? kWrongInput : kInternal);
  } catch (const std::exception& error) {
    if (const auto known = qkv::environment_error(error)) return complain(known->what(), kWrongInput);
    return complain(std::string("unexpected failure: ") + error.what(), kInternal);
  }
}
