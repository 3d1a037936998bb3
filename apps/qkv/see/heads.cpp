// qkv heads: what each head does, found over many texts.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "common/commands.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/texts.h"
#include "see/heads_view.h"
#include "text/unicode/utf8.h"

namespace qkv::app {
namespace {

constexpr const char* kHeadsHelp =
    R"(Nobody assigns roles to heads; this command finds them. Each is shown with its score, 95 % interval, n, the number of texts,
and the share of the head's attention it explains. A role is named only where the whole interval is above its threshold (--json lists them).
With --labels, --data is the labelled file and heads are also held to it: syntactic relations of a CoNLL-U file, the two
names of a GAP file, both relations and coreference of the built-in world. A relation is found if the head is right about
it, enough of its attention goes there, and it carries something from there: patched alone, it brings an answer back.

Examples:
  qkv heads MODEL --data world
  qkv heads MODEL --data text.txt --tokens 100000 --out heads.json
  qkv heads MODEL --data world --labels world
  qkv heads MODEL --data en_ewt-ud-dev.conllu --labels conllu
  qkv heads MODEL --data gap-development.tsv --labels gap
  qkv heads MODEL --data ids.txt --ids                   token ids, a text a line; needs no tokenizer)";

struct HeadsArguments {
  ModelOptions model;
  TextOptions text;
  std::string labels;
  ReportOptions report;
  int64_t skip = 0;
};

// Labelled texts, as many as there are tokens for.
std::vector<LabelledText> labelled_texts(const HeadsArguments& options, const OpenModel& model) {
  const std::string& data = options.text.data;
  std::vector<LabelledText> all;
  if (options.labels == "world") {
    QKV_CHECK(data == "world" || data == "world:zh", "the labels of the world do not belong to ", data,
              Hint("use --data world or world:zh"));
    for (const AnnotatedText& story :
         labelled_world(model, data, {.tokens = options.text.tokens, .skip = static_cast<uint64_t>(options.skip)})) {
      all.push_back(labelled(story));
    }
    return all;
  }
  const std::string content = read_text(data, kLargestTextFile);
  QKV_CHECK(is_utf8(content), data, " is not UTF-8", Hint("convert it, for example with  iconv"));
  std::vector<LabelledText> found = options.labels == "gap" ? read_gap(content, data) : read_conllu(content, data);
  auto room_for = [&, tokens = int64_t{0}](const LabelledText& text) mutable {
    const bool room = tokens < options.text.tokens;
    tokens += std::ssize(model.tokenizer().encode(text.text));
    return room;
  };
  for (auto i = static_cast<size_t>(options.skip); i < found.size() && room_for(found[i]); ++i) {
    all.push_back(std::move(found[i]));
  }
  return all;
}

std::vector<TokenText> texts_of(const HeadsArguments& options, const OpenModel& model,
                                const std::vector<LabelledText>& labelled) {
  std::vector<TokenText> texts;
  if (options.labels.empty()) {
    TextOptions wanted = options.text;
    wanted.tokens += options.skip * options.text.length;
    texts = read_texts(model, wanted);
    texts.erase(texts.begin(), texts.begin() + std::min(std::ssize(texts), options.skip));
    int64_t tokens = 0;
    const auto last = std::find_if(texts.begin(), texts.end(), [&](const TokenText& text) {
      const bool full = tokens >= options.text.tokens;
      tokens += std::ssize(text.ids);
      return full;
    });
    texts.erase(last, texts.end());
    return texts;
  }
  const int64_t context = model.spec().context,
                length = context > 0 ? std::min(options.text.length, context) : options.text.length;
  for (const LabelledText& text : labelled) {
    TokenText one = model.encode(text.text);
    for (std::vector<int32_t>* ids : {&one.ids, &one.source})
      ids->resize(static_cast<size_t>(std::min(std::ssize(*ids), length)));
    if (one.ids.size() > 1 || !one.source.empty()) texts.push_back(std::move(one));
  }
  return texts;
}

class Blind : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site) const override { return Ask::none; }
  void visit(Context&, const Tap&, Tensor&) override {}
};

// The first pass' texts three times: what looking costs.
void price(Reader& reader, const Tokenizer* tokenizer, std::span<const TokenText> texts, HeadsReport& report) {
  size_t count = 0;
  int64_t tokens = 0;
  while (count < texts.size() && tokens < reader.options().rows) tokens += std::ssize(texts[count++].ids);
  const std::span<const TokenText> first = texts.first(count);
  Blind blind;
  for (int round = 0; round < 2; ++round) {  // the first reads the weights
    const auto start = std::chrono::steady_clock::now();
    reader.look(first, blind);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    report.plain = static_cast<double>(tokens) / took.count();
  }
  const auto rate = [&](RoleOptions options) {
    options.repeated_texts = 0;
    return static_cast<double>(tokens) / head_roles(reader, tokenizer, first, options).seconds;
  };
  report.fast = rate({.patterns = false});
  report.all = rate({});
}

void heads(HeadsArguments options) {
  const api::Model library = open_library(options.model);
  const OpenModel& model = looking_inside(library);
  QKV_CHECK(!options.text.data.empty() || options.labels.empty() || options.labels == "world", "--labels ",
            options.labels, " without --data", Hint("--data FILE is the labelled file"));
  choose_data(model.spec(), options.text);
  const std::vector<LabelledText> labelled =
      options.labels.empty() ? std::vector<LabelledText>() : labelled_texts(options, model);
  const std::vector<TokenText> texts = texts_of(options, model, labelled);
  QKV_CHECK(std::ssize(texts) >= Estimate::kFewestTexts, options.text.data, " gives ", texts.size(),
            " texts; an interval needs ", Estimate::kFewestTexts,
            Hint("raise --tokens, or cut shorter texts with --window", options.skip > 0 ? ", or --skip fewer" : ""));
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  const Tokenizer* tokenizer = model.has_tokenizer() ? &model.tokenizer() : nullptr;
  HeadsReport report{.model = model.path(), .data = options.text.data, .spec = &model.spec()};
  price(reader, tokenizer, texts, report);
  report.roles = watched("reading", std::ssize(texts), [&](const Reader::Finished& finished) {
    return head_roles(reader, tokenizer, texts, {.finished = finished});
  });
  if (!options.labels.empty()) {
    report.labels = watched("asking for labels", std::ssize(labelled), [&](const Reader::Finished& finished) {
      return label_scores(reader, *tokenizer, labelled, {.length = options.text.length, .finished = finished});
    });
  }
  write_report(options.report, to_json(report));
  if (!options.report.json) show(report);
}

}  // namespace

void add_heads(Command app) {
  const Command command = app.add_command("heads", "What each head does: roles found over many texts");
  auto options = std::make_shared<HeadsArguments>();
  add_model_options(command, options->model, ModelUse::looks);
  add_text_options(command, options->text);
  const Option labels = command.add_option("--labels", options->labels, "What --data is labelled with")
                            .one_of({"conllu", "gap", "world"});
  add_ids_option(command, options->text).excludes(labels);
  command.add_option("--skip", options->skip, "Leave out the first N texts: for a second, disjoint sample")
      .between(int64_t{0}, int64_t{1} << 40);
  add_report_options(command, options->report);
  command.footer(kHeadsHelp);
  command.callback([options] { heads(*options); });
}

}  // namespace qkv::app
