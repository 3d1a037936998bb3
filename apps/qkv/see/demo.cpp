// qkv demo: a small model learns before your eyes, then it is looked into; all of it on one page at the end.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/continuation.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "common/reports.h"
#include "common/terminal.h"
#include "common/texts.h"
#include "inspect/cut/importance.h"
#include "inspect/heads/head_roles.h"
#include "inspect/report/report_html.h"
#include "inspect/watch/movie.h"
#include "kernels/tables.h"
#include "see/demo_training.h"
#include "see/look_view.h"
#include "see/movie_texts.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples =
    R"(It trains the recipe "world" on stories the program makes up, lets the model write, shows what each layer guesses, what
its heads do and what happens without them, and writes FOLDER/demo.html, one page that opens offline. Ctrl-C stops it;
the same command goes on.

Examples:
  qkv demo
  qkv demo --lang zh          the same in Chinese
  qkv demo --out /tmp/demo    another folder than qkv-demo)";

class Demo {
 public:
  explicit Demo(const DemoOptions& options) : options_(options), chinese_(options.chinese()), run_(options.run()) {}

  void run() {
    greet();
    title("It learns", "学习");
    train_demo(options_);
    model_.emplace((run_ / "last").string(), OpenOptions{.threads = options_.threads});
    reader_.emplace(model_->model(), model_->engine(), ReadOptions{.precision = model_->precision()});
    texts_ = read_texts(*model_, {.data = chinese_ ? "world:zh" : "world", .tokens = 6000, .length = 128});
    report_ = {{"report", "demo"},
               {"model", "world"},
               {"title", words("A model of one minute", "一分钟学成的模型")},
               {"lang", options_.lang},
               {"made_with", "qkv demo" + std::string(chinese_ ? " --lang zh" : "")}};
    const InterruptWatch watch;
    for (void (Demo::*part)() : {&Demo::movie, &Demo::write, &Demo::look, &Demo::find_heads, &Demo::cut_heads}) {
      (this->*part)();
      write_page();  // whatever comes next, this much is there
      if (!watch.seen()) continue;
      std::cout << words("\nStopped; what was made so far: ", "\n已停止；已经做好的：") << page().string() << '\n';
      throw Interrupted{};
    }
    say_where();
  }

 private:
  template <class Text>
  Text words(Text english, Text chinese) const {
    return options_.words(english, chinese);
  }
  void title(const char* english, const char* chinese) {
    std::cout << '\n' << inked(Ink::bold, fmt::format("{}. {}", ++part_, words(english, chinese))) << "\n\n";
    std::cout.flush();
  }
  fs::path page() const { return fs::path(options_.out) / "demo.html"; }

  void greet() {
    const Engine engine(kernels::best_table(), {.threads = options_.threads});
    const std::string level = engine.kernels().name;
    std::cout << words("qkv demo: a Transformer learns, writes and shows what is inside it.\n",
                       "qkv demo：一个 Transformer 学习、写作，并让人看到它的内部。\n")
              << fmt::format(fmt::runtime(words("This machine: {} thread{}, kernels {}.\n",
                                                "这台机器：{} 个线程{}，内核 {}。\n")),
                             engine.threads(), chinese_ || engine.threads() == 1 ? "" : "s", level);
    if (level.find("avx512") == std::string::npos) {
      std::cout << words("Without AVX-512 it takes some minutes longer, and is as right.\n",
                         "没有 AVX-512，要多等几分钟，结果同样正确。\n");
    }
  }

  void movie() {
    const Movie movie = make_movie(run_);
    report_["movie"] = to_json(movie, movie_texts(run_, movie.embedding.tokens));
    for (const Phase& phase : movie.phases) {
      std::cout << fmt::format("  {:<10} {}\n", phase.name,
                               phase.step ? fmt::format(fmt::runtime(words("step {}", "第 {} 步")), *phase.step)
                                          : std::string(words("not seen", "未见")));
    }
  }

  void write() {
    title("It writes", "写作");
    const auto longer =
        std::find_if(texts_.begin(), texts_.end(), [](const TokenText& t) { return t.ids.size() >= 48; });
    shown_ = longer == texts_.end() ? texts_.front() : *longer;
    const ContinuationOptions asked{.prompt = "", .start = shown_, .max_new = 40};
    const std::string prompt = continuation_prompt(*model_, asked), text = greedy_continuation(*model_, asked, nullptr);
    report_["written"] = {{"prompt", prompt}, {"text", text}};
    std::cout << "  " << inked(Ink::dim, without_controls(prompt)) << inked(Ink::green, without_controls(text)) << '\n'
              << inked(Ink::dim, words("  (the story it has never seen went on: ", "（它没见过的故事原文是："))
              << inked(Ink::dim, without_controls(shown_.text.substr(std::min(prompt.size(), shown_.text.size()))))
              << inked(Ink::dim, words(")\n", "）\n"));
  }

  void look() {
    title("What each layer guesses", "每一层的猜测");
    constexpr size_t kTokens = 32;
    TokenText text = shown_;
    text.ids.resize(std::min(text.ids.size(), kTokens));
    Looked seen = look_at(model_->model(), model_->engine(), text, {.precision = model_->precision()});
    Ladder ladder = climb(model_->model(), model_->engine(), seen, {.precision = model_->precision()});
    const LookedAt at(model_->tokenizer(), model_->spec(), std::move(seen), std::move(ladder));
    draw_ladder({.at = at, .out = std::cout, .columns = std::max(terminal_columns(), 40)});
    report_.update(look_parts(at));
  }

  void find_heads() {
    title("What its heads do", "各个头在做什么");
    Progress progress(words("looking at heads", "观察各个头"), std::ssize(texts_));
    const RoleScores scores = head_roles(*reader_, &model_->tokenizer(), texts_, {.finished = [&](size_t done) {
      progress.update(static_cast<int64_t>(done));
      return true;
    }});
    progress.finish();
    int found = 0;
    for (const HeadScore& head : scores.heads) {
      const std::string name = name_of(model_->spec(), head.id);
      Json roles = Json::array();
      for (const Role& role : roles_of(head)) {
        roles.push_back({{"name", role.rule->name},
                         {"score", role.score.mean},
                         {"low", role.score.low},
                         {"high", role.score.high},
                         {"n", role.score.n}});
        std::cout << fmt::format("  {:<6}{:<14}{} n={}\n", name, role.rule->name, with_interval(role.score),
                                 role.score.n);
        ++found;
      }
      for (Json& of_report : report_["heads"]) {
        if (of_report["name"] == name) of_report["roles"] = roles;
      }
    }
    if (found > 0) return;
    std::cout << words("  none found: after so few steps no role is clear enough. The nearest:\n",
                       "  没有找到：步数这么少，还没有足够清楚的角色。最接近的是：\n");
    for (const Measure measure : {Measure::previous, Measure::duplicate, Measure::induction, Measure::first}) {
      const auto best = std::max_element(scores.heads.begin(), scores.heads.end(), [&](const auto& a, const auto& b) {
        return a[measure].mean < b[measure].mean;
      });
      std::cout << fmt::format("  {:<6}{:<14}{} n={}\n", name_of(model_->spec(), best->id), name_of(measure),
                               with_interval((*best)[measure]), (*best)[measure].n);
    }
  }

  void cut_heads() {
    title("What happens without them", "没有它们会怎样");
    const std::vector<HeadId> heads = all_heads(model_->spec());
    Progress progress(words("cutting each head", "逐个切除"), std::ssize(heads));
    const auto outputs = measure_outputs(*reader_, texts_, Ablation::mean);
    std::vector<HeadImportance> alone =
        ablation_importance(*reader_, texts_, Ablation::mean, outputs, [&](size_t done) {
          progress.update(static_cast<int64_t>(done));
          return true;
        });
    progress.finish();
    std::sort(alone.begin(), alone.end(),
              [](const HeadImportance& a, const HeadImportance& b) { return a.raw.mean < b.raw.mean; });
    show_cut(alone.back(), "most", words("the most important", "最重要的"), outputs);
    show_cut(alone.front(), "least", words("the least important", "最不重要的"), outputs);
  }

  void show_cut(const HeadImportance& head, const char* kind, const char* shown,
                const std::shared_ptr<const HeadOutputs>& outputs) {
    const std::string name = name_of(model_->spec(), head.head);
    CutProbe probe(model_->spec(), {.heads = {head.head}}, outputs);
    const ContinuationOptions asked{.prompt = "", .start = shown_, .max_new = 24};
    const std::string before = greedy_continuation(*model_, asked, nullptr),
                      after = greedy_continuation(*model_, asked, &probe);
    std::cout << fmt::format(fmt::runtime(words("  {}, {}: loss {:+.4f} [{:+.4f}, {:+.4f}] n={}\n",
                                                "  {}，{}：损失 {:+.4f} [{:+.4f}, {:+.4f}] n={}\n")),
                             name, shown, head.raw.mean, head.raw.low, head.raw.high, head.raw.n)
              << "    " << words("with    ", "有它  ") << inked(Ink::green, without_controls(before)) << '\n'
              << "    " << words("without ", "没它  ")
              << inked(before == after ? Ink::green : Ink::red, without_controls(after)) << '\n';
    report_["cuts"].push_back({{"head", name},
                               {"kind", kind},
                               {"delta", head.raw.mean},
                               {"low", head.raw.low},
                               {"high", head.raw.high},
                               {"n", head.raw.n},
                               {"before", before},
                               {"after", after}});
  }

  void write_page() { write_out(page().string(), report_html(report_)); }

  void say_where() {
    title("Look for yourself", "自己看看");
    const std::string model = (run_ / "last").string();
    if (!options_.json.empty()) write_json(options_.json, report_);
    std::cout << fmt::format(fmt::runtime(words("  {}   all of it on one page: open it in a browser\n",
                                                "  {}   全部在一页里：用浏览器打开\n")),
                             page().string())
              << fmt::format("  ./qkv run {} \"{}\"\n", model, words("In the morning", "早上"))
              << fmt::format("  ./qkv look {} \"{}\" --token 3\n", model,
                             words("Anna put the key in the drawer.", "小明把钥匙放在抽屉里。"))
              << fmt::format("  ./qkv movie {}\n", run_.string())
              << words("  ./qkv lab --list   claims about Transformers as experiments\n",
                       "  ./qkv lab --list   关于 Transformer 的说法，做成实验\n");
  }

  const DemoOptions& options_;
  bool chinese_;
  fs::path run_;
  int part_ = 0;
  std::optional<OpenModel> model_;
  std::optional<Reader> reader_;
  std::vector<TokenText> texts_;
  TokenText shown_;
  Json report_;
};

}  // namespace

void add_demo(Command app) {
  const Command command = app.add_command("demo", "Train a small model, look inside, and write a page about it");
  const auto options = std::make_shared<DemoOptions>();  // lives as long as the callback
  command.add_option("--lang", options->lang, "The stories' language").one_of({"en", "zh"}).show_default();
  command.add_option("--out", options->out, "Where it goes").show_default();
  command.add_option("--json", options->json, "Write the report there too");
  command.add_option("--threads", options->threads, "0: as many as there are").between(0, 1024);
  command.footer(kExamples);
  command.callback([options] { Demo(*options).run(); });
}

}  // namespace qkv::app
