// qkv chat: a conversation with a model that was trained to have one.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "api/generation.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "common/commands.h"
#include "common/interrupt.h"
#include "common/line_editor.h"
#include "common/model_options.h"
#include "common/terminal.h"
#include "common/text_flags.h"
#include "run/chat_setup.h"
#include "text/chat/chat_prompt.h"

namespace qkv::app {
namespace {

constexpr const char* kCommands = R"(  /help           this
  /system TEXT    start again with this instruction; without TEXT, with none
  /undo           take back the last message and its answer
  /reset          start again
  /exit           leave, as Ctrl-D and Ctrl-C on an empty line do
Ctrl-C while the model writes ends its answer. A message that starts with / has a space before it.
)";

struct ChatArguments {
  ModelOptions model;
  CacheOptions cache;
  TextFlags text;
  std::string system, chat_template, render, tools;
  std::vector<std::string> set;
  bool stats = false, json = false;

  ChatSetup setup() const { return {.model = model.path, .chat_template = chat_template, .set = set}; }
};

class Chat {
 public:
  explicit Chat(const ChatArguments& options)
      : options_(options),
        chosen_(generate_options(options.text)),
        template_(template_of(options.setup())),
        library_(open_library(options.model, options.cache, kTexts)),
        model_(inside(library_)),
        context_(context_of(model_, options.cache)),
        variables_(variables_of(options.setup(), &model_.tokenizer())),
        request_(api::request_of(model_, chosen_)),
        editor_(may_colour(STDOUT_FILENO) ? "\1\033[1;32m\1> \1\033[0m\1" : "> ", history_file()) {
    QKV_CHECK(!model_.spec().has_source(), options.model.path, ": a ", model_.spec().family,
              " translates and does not chat", Hint("qkv run translates a text"));
    request_.own_text = true;
    begin(options.system);
  }

  void run() {
    if (editor_.at_terminal()) note(fmt::format("{} tokens of context; /help says what can be done", context_));
    while (const std::optional<std::string> line = editor_.read()) {
      if (line->find_first_not_of(" \t\r") == line->npos) continue;
      if (line->starts_with('/')) {
        if (!command(*line)) return;
      } else {
        say(line->starts_with(" /") ? line->substr(1) : *line);
      }
    }
    if (editor_.at_terminal()) std::cout << '\n';
  }

 private:
  // The cache has room for the conversation so far and for its next turn, so nothing is prefilled twice.
  static constexpr int64_t kTexts = 2;

  void begin(const std::string& system) {
    system_ = system;
    messages_.clear();
    if (!system.empty()) messages_.push_back({.role = "system", .content = system});
  }

  // For whoever sits there, not a part of the conversation.
  void note(const std::string& text) const {
    std::cout.flush();
    const bool dim = may_colour(STDERR_FILENO);
    std::cerr << (dim ? terminal_code("[2m") : "") << text << (dim ? terminal_code("[0m") : "") << '\n';
  }

  // False: leave.
  bool command(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space), rest = line.substr(std::min(space + 1, line.size()));
    if (name == "/exit") return false;
    if (name == "/help") {
      std::cout << kCommands << std::flush;
    } else if (name == "/reset") {
      begin(system_);
      note("a new conversation");
    } else if (name == "/system") {
      begin(rest);
      note(rest.empty() ? "a new conversation without an instruction" : "a new conversation with this instruction");
    } else if (name == "/undo") {
      undo();
    } else {
      wrong(fmt::format("there is no command {}: see /help, or put a space before the / to say it", printable(name)));
    }
    return true;
  }

  void undo() {
    const size_t first = system_.empty() ? 0 : 1;
    if (messages_.size() == first) return note("nothing was said yet");
    while (messages_.size() > first && messages_.back().role != "user") messages_.pop_back();
    if (messages_.size() > first) messages_.pop_back();
    note(fmt::format("taken back; {} messages are left", messages_.size() - first));
  }

  // A person reads it and goes on; a script must not.
  void wrong(const std::string& text) const {
    QKV_CHECK(editor_.at_terminal(), text, Hint("the lines before were answered"));
    note(text);
  }

  void say(const std::string& text) {
    messages_.push_back({.role = "user", .content = text});
    const auto unsaid = [&] { messages_.pop_back(); };
    TextRequest request = request_;
    try {
      request.options.prompt =
          encode_chat(model_.tokenizer(), template_, {.messages = messages_json(messages_), .more = variables_});
    } catch (const Error& error) {
      unsaid();
      return wrong(error.message());
    }
    const auto length = static_cast<int64_t>(request.options.prompt.size());
    if (length >= context_) {
      unsaid();
      return wrong(
          fmt::format("with this message the conversation has {} tokens, and the context has room for {}: "
                      "/reset begins a new one, /undo takes back the last message, --context may give more",
                      length, context_));
    }
    answer(std::move(request));
  }

  void answer(TextRequest request) {
    const InterruptWatch interrupt;
    api::Generation text = api::start_request(library_, std::move(request));
    bool told = false;
    while (const std::optional<api::Piece> piece = text.next()) {
      if (told) continue;
      told = !(std::cout << piece->text << std::flush) || interrupt.seen();
      if (told) text.cancel();
    }
    const api::Generated written = text.result();
    if (!written.text.ends_with('\n')) std::cout << '\n';
    std::cout.flush();
    QKV_CHECK(written.ended != Ended::failed, "writing failed: ", written.error, Hint(written.hint));
    messages_.push_back({.role = "assistant", .content = written.text});
    if (written.ended == Ended::context) {
      note(fmt::format("the answer ends here: the context of {} tokens is full; /reset begins a new conversation",
                       context_));
    }
    if (options_.stats) {
      note(fmt::format("{} of {} tokens were known, first word after {:.2f} s, {} written in {:.2f} s, ended: {}",
                       written.cached_tokens, written.prompt_tokens, written.read_seconds, written.tokens.size(),
                       written.write_seconds, name_of(written.ended)));
    }
    if (!std::cout) throw AnswerNo{};  // nobody reads any more; main says so
  }

  const ChatArguments& options_;
  api::GenerateOptions chosen_;  // read before the model: a schema may be wrong
  ChatTemplate template_;
  api::Model library_;
  const OpenModel& model_;
  int64_t context_;  // most tokens of the conversation
  OrderedJson variables_;
  TextRequest request_;  // of every answer, but for its prompt
  LineEditor editor_;
  std::string system_;
  std::vector<ChatMessage> messages_;
};

}  // namespace

void add_chat(Command app) {
  const Command command = app.add_command("chat", "Talk with a model, using its own chat template");
  const auto options = std::make_shared<ChatArguments>();
  add_model_options(command, options->model);
  command.option("MODEL").optional();
  add_cache_options(command, options->cache);
  command.add_option("--system TEXT", options->system, "An instruction the conversation begins with");
  command.add_option("--template FILE", options->chat_template,
                     "A file with a Jinja template, instead of the model's own");
  command.add_option("--set NAME=VALUE", options->set, "A variable of the template; may be repeated").one_value();
  const Option render = command.add_option(
      "--render FILE", options->render, "Print what the template makes of the messages in this JSON file, and leave");
  command.add_option("--tools FILE", options->tools, "With --render: a JSON file with the tools to offer")
      .needs(render);
  command.add_flag("--json", options->json, "With --render: JSON with the text and, with a tokenizer, the ids")
      .needs(render);
  add_text_flags(command, options->text);
  command.add_flag("--stats", options->stats, "Token counts and speeds of each answer on standard error");
  command.footer(std::string(kTextFlagsHelp) + "\n\nWhile it runs:\n" + kCommands + R"(
What was said stays in the cache, so only the new message is computed. Without a terminal each line of standard input is
a message, of at most 1 MiB, and each answer is printed. Control tokens spelled out in a message are text.

--render needs no weights: MODEL gives the template and the tokenizer, or --template the template alone. The file is a
list of messages, or an object with "messages" and other variables; --set add_generation_prompt=false leaves out the
start of an answer. With --json, "generated" are the bytes between {% generation %} and {% endgeneration %}.

Examples:
  qkv chat MODEL
  qkv chat MODEL --system "你是一位诗人。" --temperature 0.7
  qkv chat MODEL --set enable_thinking=false
  printf 'Hello\nAnd now?\n' | qkv chat MODEL --max-new 50
  echo 'Who wrote Faust, and when?' | qkv chat MODEL --json-schema answer.json
  qkv chat MODEL --render messages.json --tools tools.json --json
  qkv chat --template chat_template.jinja --render messages.json --set bos_token="<s>")");
  command.callback([options] {
    if (!options->render.empty()) {
      return render_chat({options->setup(), options->render, options->tools, options->json});
    }
    QKV_CHECK(!options->model.path.empty(), "qkv chat needs a MODEL", Hint("only --render works without one"));
    Chat(*options).run();
  });
}

}  // namespace qkv::app
