// /page/compare: two models, two forms of one, or one before and after a cut, on the same text.
#include <algorithm>
#include <cmath>

#include "base/log_sum_exp.h"
#include "infer/logits.h"
#include "inspect/look/looking.h"
#include "inspect/report/look_report.h"
#include "inspect/report/numbers.h"
#include "server/page/page_routes.h"
#include "text/tokenizer/files/base64.h"

namespace qkv::server {
namespace {

constexpr int64_t kMostCompared = 256, kComparedMap = 128, kMostComparedCells = 16'000'000;
constexpr int64_t kComparedRows = 16;  // of a pass: their logits are all that is kept
constexpr size_t kShownGuesses = 6;

class ComparedSide {
 public:
  ComparedSide(PageParts& page, const Fields& fields, const std::string& side) : json_(side_json(fields, side)) {
    const Fields own(json_, side);
    asked_.emplace(page_text_of(page, own));
    if (asked_->model.spec().kind == ModelSpec::Kind::encoder_only) {
      own.fail("model", "is an encoder: it has no next token");
    }
    if (tokens() > kMostCompared) {
      fields.fail("text", "has " + std::to_string(tokens()) + " tokens; at most " + std::to_string(kMostCompared) +
                              " are compared");
    }
    form_ = own.word("form", {std::begin(PageForms::kNames), std::end(PageForms::kNames)}).value_or("exact");
    opened_ = &page.forms.get(asked_->model, form_);
    probe_ = asked_->model.probe_of(asked_->cut);
  }

  const TokenText& text() const { return asked_->text; }
  int64_t tokens() const { return std::ssize(asked_->text.ids); }
  const OpenModel& opened() const { return *opened_; }
  PageModel& model() const { return asked_->model; }
  const std::unique_ptr<CutProbe>& probe() const { return probe_; }

  void start() {
    const auto room = [](int64_t tokens) { return KvCache::whole_pages(tokens) + KvCache::kPage; };
    runner_.reset(new Runner(opened_->runner({.cache = opened_->precision().compute,
                                              .positions = room(tokens()),
                                              .sources = room(std::ssize(text().source)),
                                              .probe = probe_.get()})));  // it cannot be moved
    sequence_ = text().source.empty() ? runner_->start() : runner_->start(text().source);
  }
  // The next rows' logits, [rows, V].
  std::span<const float> next(int64_t rows) {
    const auto from = static_cast<size_t>(runner_->length(sequence_));
    const Runner::Part part{
        .sequence = sequence_, .ids = std::span(text().ids).subspan(from, static_cast<size_t>(rows)), .logits = rows};
    return runner_->pass({&part, 1});
  }
  Json facts() const {
    return {{"model", asked_->model.name()},
            {"form", form_},
            {"weight_bytes", Runner::need(opened_->model(), opened_->engine(), runner_->options()).weights},
            {"parameters", facts_json(opened_->spec()).at("parameters")},
            {"tokens", tokens_json(shown_ids(&asked_->model.opened().target_tokenizer(), text().ids))}};
  }

 private:
  static OrderedJson side_json(const Fields& fields, const std::string& side) {
    const std::optional<Fields> own = fields.object(side);
    OrderedJson made = own ? own->json() : OrderedJson::object();
    for (const char* shared : {"text", "target"}) {
      if (const OrderedJson* value = fields.find(shared)) made[shared] = *value;
    }
    return made;
  }

  OrderedJson json_;
  std::optional<PageText> asked_;
  std::string form_;
  const OpenModel* opened_ = nullptr;
  std::unique_ptr<CutProbe> probe_;
  std::unique_ptr<Runner> runner_;
  Runner::Sequence sequence_;
};

// What one side says after a row: its best guesses, and the probability of what really follows.
Json row_json(const ComparedSide& side, int64_t row, std::span<const double> log_p) {
  const Tokenizer& tokenizer = side.model().opened().target_tokenizer();
  const ShownGuess guess(tokenizer, std::span(side.text().ids).first(static_cast<size_t>(row + 1)));
  Json top = Json::array();
  for (const Scored& one : best_of(log_p, kShownGuesses)) {
    top.push_back({{"id", one.id},
                   {"text", tokenizer.has(one.id) ? guess.text(one.id) : "#" + std::to_string(one.id)},
                   {"p", brief(std::exp(one.score))}});
  }
  Json made{{"top", std::move(top)}};
  if (row + 1 < side.tokens()) {
    const auto next = static_cast<size_t>(side.text().ids[static_cast<size_t>(row + 1)]);
    made["loss"] = brief(-log_p[next]);
  }
  return made;
}

Json compared_rows(ComparedSide& a, ComparedSide& b, bool same) {
  Json rows = Json::array();
  const auto width = [](const ComparedSide& s) { return static_cast<size_t>(s.opened().spec().vocabulary); };
  const auto row_of = [&](std::span<const float> logits, const ComparedSide& s, int64_t r) {
    return log_softmax(logits.subspan(static_cast<size_t>(r) * width(s), width(s)));
  };
  for (int64_t first = 0; first < std::max(a.tokens(), b.tokens()); first += kComparedRows) {
    const auto rows_of = [&](const ComparedSide& s) {
      return std::clamp<int64_t>(s.tokens() - first, 0, kComparedRows);
    };
    const std::span<const float> of_a = rows_of(a) > 0 ? a.next(rows_of(a)) : std::span<const float>(),
                                 of_b = rows_of(b) > 0 ? b.next(rows_of(b)) : std::span<const float>();
    for (int64_t r = 0; r < std::max(rows_of(a), rows_of(b)); ++r) {
      Json row = Json::object();
      std::vector<double> p, q;
      if (r < rows_of(a)) row["a"] = row_json(a, first + r, p = row_of(of_a, a, r));
      if (r < rows_of(b)) row["b"] = row_json(b, first + r, q = row_of(of_b, b, r));
      if (same) row["kl"] = brief(std::max(kl_divergence(p, q), 0.0));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Looked looked_of(const ComparedSide& side) {
  return look_at(side.opened().model(), side.opened().engine(), side.text(),
                 {.precision = side.opened().precision(), .edit = side.probe().get()});
}

// Mean over the rows of half the sum of |A - B|: 0 for the same map, 1 for maps that share nothing.
double map_distance(const SeenAttention& x, const SeenAttention& y, int64_t head) {
  double sum = 0;
  for (int64_t i = 0; i < x.queries; ++i) {
    for (int64_t j = 0; j < x.keys; ++j) {
      sum += std::abs(static_cast<double>(x.weight(i, head, j)) - static_cast<double>(y.weight(i, head, j))) / 2;
    }
  }
  return sum / static_cast<double>(x.queries);
}

std::string map_bytes(const SeenAttention& seen, int64_t head) {
  std::string bytes;
  for (int64_t i = 0; i < seen.queries; ++i) {
    for (int64_t j = 0; j < seen.keys; ++j) bytes += map_byte(static_cast<double>(seen.weight(i, head, j)));
  }
  return encode_base64(bytes);
}

// All heads with their distances, and both maps of the one that is wanted: the one that differs most if none is.
void add_heads(const ComparedSide& a, const ComparedSide& b, const std::string& wanted, Json& answer) {
  const Looked of_a = looked_of(a), of_b = looked_of(b);
  Json heads = Json::array();
  struct Chosen {
    size_t attention = 0;
    int64_t head = 0;
    std::string name;
    double distance = -1;
  } chosen;
  for (size_t n = 0; n < of_a.attentions.size(); ++n) {
    const SeenAttention& x = of_a.attentions[n];
    for (int64_t h = 0; h < x.heads; ++h) {
      const HeadId id{x.place.stack, x.place.layer, static_cast<int16_t>(h)};
      const Chosen one{n, h, name_of(a.opened().spec(), id), map_distance(x, of_b.attentions[n], h)};
      heads.push_back({{"name", one.name}, {"layer", id.layer}, {"head", id.head}, {"distance", brief(one.distance)}});
      const bool found = !wanted.empty() && chosen.name == wanted;
      const bool better = one.name == wanted || (!found && one.distance > chosen.distance);
      if (better) chosen = one;
    }
  }
  answer["heads"] = std::move(heads);
  const SeenAttention& x = of_a.attentions[chosen.attention];
  if (std::max(x.queries, x.keys) > kComparedMap) return;
  answer["maps"] = {{"head", chosen.name},
                    {"rows", x.queries},
                    {"columns", x.keys},
                    {"a", map_bytes(x, chosen.head)},
                    {"b", map_bytes(of_b.attentions[chosen.attention], chosen.head)}};
}

bool same_heads(const ModelSpec& a, const ModelSpec& b, int64_t tokens) {
  const std::vector<HeadId> of_a = all_heads(a);
  return of_a == all_heads(b) && std::ssize(of_a) * tokens * tokens <= kMostComparedCells;
}

}  // namespace

HttpResponse page_compare(PageParts& page, const Fields& fields) {
  ComparedSide a(page, fields, "a"), b(page, fields, "b");
  const ModelSpec &of_a = a.opened().spec(), &of_b = b.opened().spec();
  const bool same =
      of_a.vocabulary == of_b.vocabulary && a.text().ids == b.text().ids && a.text().source == b.text().source;
  a.start();
  b.start();
  Json answer{{"same_tokens", same}, {"a", a.facts()}, {"b", b.facts()}, {"rows", compared_rows(a, b, same)}};
  const int64_t longest = std::max(a.tokens(), std::ssize(a.text().source));
  if (same && same_heads(of_a, of_b, longest)) {
    add_heads(a, b, fields.text("head", {0, 32}).value_or(""), answer);
  }
  return report_response(answer);
}

}  // namespace qkv::server
