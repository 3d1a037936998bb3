// qkv demo: a small model is trained, then shown from the inside; all of it on one page at the end.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "common/reports.h"
#include "common/texts.h"
#include "inspect/cut/importance.h"
#include "inspect/heads/head_roles.h"
#include "inspect/report/heads_report.h"
#include "inspect/report/report_html.h"
#include "inspect/watch/movie.h"
#include "open/continuation.h"
#include "see/demo_page.h"
#include "see/demo_parts.h"
#include "see/demo_training.h"
#include "see/demo_words.h"
#include "see/look_view.h"
#include "see/movie_report.h"
#include "text/sentence_end.h"
#include "text/tokenizer/display_spans.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDemoExamples =
    R"(On a terminal it serves the page at once, to this machine alone, and opens it where there is a screen: type a
sentence, look inside the built-in model, watch another one learn. The page stays until Ctrl-C.

It shows what the built-in model writes and what its heads do. Then it trains the recipe "demo", a game of echo, lets
that model write, shows what each layer guesses, what its heads do and what happens without them, and writes
DIR/demo.html, one page that opens offline. Ctrl-C stops it; the same command continues.

Examples:
  qkv demo
  qkv demo --lang zh          the same in Chinese
  qkv demo --port 8000        the page at this port, also without a terminal; 0: any that is free
  qkv demo --out /tmp/demo    another folder than qkv-demo)";

class Demo {
 public:
  explicit Demo(const DemoOptions& options) : options_(options), chinese_(options.chinese()), run_(options.run()) {}

  const Json& report() const { return report_; }

  void run() {
    const bool resume = goes_on(options_);
    greet();
    DemoPage page(options_);
    title("A model that ships, trained already", "自带的模型，已经训练好");
    const Json built_in = show_builtin(options_);
    title("A small one learns", "一个小模型开始学习");
    page.training();
    train_demo(options_, resume);
    page.trained();
    model_.emplace(
        (run_ / "last").string(),
        OpenOptions{.looks = true, .threads = options_.compute.threads, .device = options_.compute.device()});
    reader_.emplace(model_->model(), model_->engine(), ReadOptions{.precision = model_->precision()});
    texts_ = read_texts(*model_, {.data = echo_, .tokens = 6000, .length = 128});
    report_ = {{"report", "demo"},
               {"model", "world"},
               {"title", words("A model trained in minutes", "几分钟训练出的模型")},
               {"lang", options_.lang},
               {"made_with", made_with()}};
    if (!built_in.is_null()) report_["built_in"] = built_in;
    show_parts();
    say_where();
    page.stay();
  }

 private:
  void show_parts() {
    const InterruptWatch watch;
    for (void (Demo::*part)() : {&Demo::movie, &Demo::write, &Demo::look, &Demo::find_heads, &Demo::cut_heads}) {
      (this->*part)();
      write_page();  // whatever comes next, this much is there
      if (!watch.seen()) continue;
      std::cout << words("\nStopped; what was made so far: ", "\n已停止；已经做好的：") << options_.page().string()
                << '\n';
      throw Interrupted{};
    }
  }
  std::string made_with() const {
    CommandLine line("qkv demo");
    if (chinese_) line.option("--lang", "zh");
    if (!options_.out.empty()) line.option("--out", options_.out);
    if (options_.compute.device_name != "auto") line.option("--device", options_.compute.device_name);
    return line.text();
  }
  template <class Text>
  Text words(Text english, Text chinese) const {
    return options_.words(english, chinese);
  }
  void title(const char* english, const char* chinese) {
    std::cout << '\n' << inked(Ink::bold, fmt::format("{}. {}", ++part_, words(english, chinese))) << "\n\n";
    std::cout.flush();
  }

  void greet() {
    constexpr int64_t kNeeded = int64_t{1} << 30;  // more than its model and batches take
    const Engine engine(kernels_for(options_.compute, kNeeded), {.threads = options_.compute.threads});
    const std::string level = engine.kernels().name;
    std::cout << words("qkv demo: a Transformer learns, writes and shows what is inside it.\n",
                       "qkv demo：一个 Transformer 学习、写作，并展示内部。\n")
              << fmt::format(fmt::runtime(words("This machine: {} thread{}, kernels {}.\n",
                                                "这台机器：{} 个线程{}，内核 {}。\n")),
                             engine.threads(), chinese_ || engine.threads() == 1 ? "" : "s", level);
    if (level.find("avx512") == std::string::npos && &engine.device() == &cpu_device()) {
      std::cout << words("Without AVX-512 it takes some minutes longer; the result is as good.\n",
                         "没有 AVX-512，要多等几分钟，结果同样正确。\n");
    }
  }

  void movie() {
    const Movie movie = make_movie(run_);
    report_["movie"] = to_json(movie, movie_texts(run_, movie.embedding.tokens));
    for (const Phase& phase : movie.phases) {
      std::cout << "  " << in_cells(phase_words(phase.name, chinese_), 17)
                << (phase.step ? fmt::format(fmt::runtime(words("step {}", "第 {} 步")), *phase.step)
                               : std::string(words("not seen", "未出现")))
                << '\n';
    }
  }

  void write() {
    title("It writes", "写作");
    shown_ = text_to_continue(texts_);
    report_["written"] = show_writing(options_, *model_, shown_);
  }

  void look() {
    title("What each layer guesses", "每一层的猜测");
    constexpr size_t kTokens = 32;
    TokenText text = shown_;
    size_t count = std::min(text.ids.size(), kTokens);
    const DisplaySpans spans = display_spans(model_->tokenizer(), text.ids);
    while (count > 1 && count < text.ids.size() && spans.continues(count)) --count;  // no half characters
    text.ids.resize(count);
    Looked seen = look_at(model_->model(), model_->engine(), text, {.precision = model_->precision()});
    Ladder ladder = climb(model_->model(), model_->engine(), seen, {.precision = model_->precision()});
    const LookedAt at(&model_->tokenizer(), model_->spec(), std::move(seen), std::move(ladder));
    draw_ladder({.at = at, .out = std::cout, .columns = std::max(terminal_columns(), 40), .chinese = chinese_});
    report_.update(look_parts(at));
  }

  void find_heads() {
    title("What its heads do", "各个头在做什么");
    Progress progress(words("reading heads", "观察各个头"), std::ssize(texts_), stderr, {.chinese = chinese_});
    const RoleScores scores = head_roles(*reader_, &model_->tokenizer(), texts_, {.finished = [&](size_t done) {
      progress.update(static_cast<int64_t>(done));
      return true;
    }});
    progress.finish();
    int found = 0;
    for (const HeadScore& head : scores.heads) {
      const std::string name = name_of(model_->spec(), head.id);
      for (const Role& role : roles_of(head)) {
        print_role(name, role.rule->name, role.score, chinese_);
        ++found;
      }
      for (Json& of_report : report_["heads"]) {
        if (of_report["name"] == name) of_report["roles"] = roles_json(head);
      }
    }
    if (found > 0) return;
    std::cout << words("  none found: after so few steps no role is clear enough. The nearest:\n",
                       "  没有找到：步数这么少，还没有足够清楚的角色。最接近的是：\n");
    for (const Measure measure : {Measure::previous, Measure::duplicate, Measure::induction, Measure::first}) {
      const auto best = std::max_element(scores.heads.begin(), scores.heads.end(), [&](const auto& a, const auto& b) {
        return a[measure].mean < b[measure].mean;
      });
      print_role(name_of(model_->spec(), best->id), name_of(measure), (*best)[measure], chinese_);
    }
  }

  void cut_heads() {
    title("What happens without them", "没有它们会怎样");
    const std::vector<HeadId> heads = all_heads(model_->spec());
    Progress progress(words("cutting each head", "逐个去掉各个头"), std::ssize(heads), stderr, {.chinese = chinese_});
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
    const std::string before = up_to_sentence_end(greedy_continuation(*model_, asked, nullptr)),
                      after = up_to_sentence_end(greedy_continuation(*model_, asked, &probe));
    std::cout << fmt::format(fmt::runtime(words("  {}, {}: loss {:+.4f} [{:+.4f}, {:+.4f}] n={}\n",
                                                "  {}，{}：损失 {:+.4f} [{:+.4f}, {:+.4f}] n={}\n")),
                             name, shown, head.raw.mean, head.raw.low, head.raw.high, head.raw.n)
              << std::flush;
    print_paragraph(words("with it", "保留"), Ink::green, before);
    print_paragraph(words("without it", "去掉"), before == after ? Ink::green : Ink::red, after);
    report_["cuts"].push_back({{"head", name},
                               {"kind", kind},
                               {"delta", head.raw.mean},
                               {"low", head.raw.low},
                               {"high", head.raw.high},
                               {"n", head.raw.n},
                               {"before", before},
                               {"after", after}});
  }

  // The last token that is whole characters: what follows it is copied.
  size_t last_whole_token(const std::string& sentence) {
    const std::vector<int32_t> ids = model_->encode(sentence).ids;
    const DisplaySpans spans = display_spans(model_->tokenizer(), ids);
    size_t token = ids.size() - 1;
    while (token > 0 && spans.spans[spans.span_of[token]].token_count > 1) --token;
    return token;
  }

  void write_page() { write_out(options_.page().string(), report_html(report_)); }

  void say_where() {
    title("Look for yourself", "自己看看");
    const std::string model = (run_ / "last").string();
    const std::string sentence =
        words("Anna: cat boat star tea door salt bell road. Ben: star tea door", "安娜：猫船星茶门盐铃路。本：星茶门");
    std::cout << fmt::format(fmt::runtime(words("  {}   all of this on one page: open it in a browser\n",
                                                "  {}   全部在一页里：用浏览器打开\n")),
                             options_.page().string())
              << fmt::format("  ./qkv run {} \"{}\"\n", model, sentence)
              << fmt::format("  ./qkv look {} \"{}\" --token {}\n", model, sentence, last_whole_token(sentence))
              << fmt::format("  ./qkv heads {} --data {}\n", model, echo_)
              << fmt::format("  ./qkv movie {}\n", run_.string())
              << words("  ./qkv lab --list   claims about Transformers as experiments\n",
                       "  ./qkv lab --list   关于 Transformer 的说法，做成实验\n");
  }

  const DemoOptions& options_;
  bool chinese_;
  const char* echo_ = words("world:echo", "world:zh:echo");  // what the model learns
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
  const Command command = app.add_command("demo", "Train a small model, look inside it, and write a page about it");
  const auto options = std::make_shared<DemoOptions>();  // lives as long as the callback
  command.add_option("--lang", options->lang, "Language of the stories and of what is said")
      .one_of({"en", "zh"})
      .show_default();
  command.add_option("--out DIR", options->out, "The demo's folder; otherwise qkv-demo, or qkv-demo-zh");
  command.add_option("--port", options->port, "Port of the page; otherwise 8080 or any that is free, on a terminal")
      .between(0, 65535);
  add_compute_options(command, options->compute);
  command.add_flag("--json", options->json, "Print the report as JSON, and nothing else");
  command.footer(kDemoExamples);
  command.callback([options] {
    Demo demo(*options);
    if (!options->json) return demo.run();
    {
      const OutputSilence silence;
      demo.run();
    }
    print_json(demo.report());
  });
}

}  // namespace qkv::app
