// /page/sums: sums as the built-in world writes them, answered at once and by steps.
#include <array>

#include "base/error.h"
#include "base/philox.h"
#include "infer/text_run.h"
#include "server/page/page_routes.h"
#include "server/page/sum_answer.h"

namespace qkv::server {
namespace {

constexpr int64_t kMostSums = 16, kAnswerTokens = 16, kStepTokens = 200, kLargestTerm = 99999;
constexpr std::array<std::string_view, 4> kOperations = {"+", "-", "×", "÷"};

struct Sum {
  int64_t p = 0, q = 0;
  std::string sign;

  int64_t result() const {
    if (sign == "+") return p + q;
    if (sign == "-") return p - q;
    return sign == "×" ? p * q : p / q;
  }
  std::string text(bool chinese) const {
    const char* space = chinese ? "" : " ";
    return std::to_string(p) + space + sign + space + std::to_string(q);
  }
};

int64_t of_digits(uint32_t random, int64_t digits) {
  int64_t low = 1;
  for (int64_t i = 1; i < digits; ++i) low *= 10;
  const int64_t least = digits == 1 ? 2 : low;
  return least + random % (low * 10 - least);
}

// The same seed gives the same sums. Numbers as the world has them: products and quotients by one digit.
std::vector<Sum> drawn_sums(const Fields& fields, const std::string& sign) {
  const int64_t digits = fields.whole("digits", {1, 4}).value_or(2),
                count = fields.whole("count", {1, kMostSums}).value_or(8);
  const auto seed = static_cast<uint64_t>(fields.whole("seed", {0, 1 << 30}).value_or(1));
  const PhiloxKey key = fold({.seed = seed});
  std::vector<Sum> sums;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<uint64_t>(i);
    const bool by_one = sign == "×" || sign == "÷";
    Sum sum{of_digits(random_u32(key, at, 0), digits), of_digits(random_u32(key, at, 1), by_one ? 1 : digits), sign};
    if (sign == "-" && sum.p < sum.q) std::swap(sum.p, sum.q);
    if (sign == "÷") sum.p *= sum.q;
    sums.push_back(sum);
  }
  return sums;
}

std::vector<Sum> sums_of(const Fields& fields) {
  const std::string sign = fields.word("operation", {kOperations.begin(), kOperations.end()}).value_or("×");
  const std::optional<int64_t> p = fields.whole("p", {0, kLargestTerm}), q = fields.whole("q", {0, kLargestTerm});
  if (!p && !q) return drawn_sums(fields, sign);
  if (!p || !q) fields.fail(p ? "q" : "p", "is missing: a sum has two numbers");
  if (sign == "÷" && (*q == 0 || *p % *q != 0)) fields.fail("q", "must divide p without a rest");
  if (sign == "-" && *p < *q) fields.fail("q", "must not be larger than p");
  return {{*p, *q, sign}};
}

// One way of asking for a sum, and what came of it.
struct SumAnswer {
  std::string prompt, before, text = {}, error = {}, hint = {};
  int64_t tokens = 0;
  std::optional<int64_t> number = {};

  Json json(int64_t right) const {
    Json made{{"prompt", prompt}, {"text", text}, {"tokens", tokens}, {"right", number == right}};
    made["answer"] = number ? Json(*number) : Json(nullptr);
    return made;
  }
};

void submit_sum(Scheduler& scheduler, const OpenModel& model, SumAnswer& answer, int64_t most) {
  SessionOptions session{.sampling = {.temperature = 0}, .max_new = most};
  session.prompt = model.encode(answer.prompt).ids;
  submit_text(scheduler, model.tokenizer(),
              {.options = session,
               .on_text =
                   [&answer](std::string_view more) {  // ends once the answer is there
                     answer.text += more;
                     return !number_after(answer.text, answer.before);
                   },
               .on_end =
                   [&answer](const WrittenText& w) {
                     answer.error = w.error;
                     answer.hint = w.hint;
                     answer.tokens = std::ssize(w.tokens);
                     answer.number = number_after(answer.text + "\n", answer.before);
                   }});
}

}  // namespace

HttpResponse page_sums(PageParts& page, const Fields& fields) {
  PageModel& model = page_model_of(page, fields);
  if (model.spec().kind != ModelSpec::Kind::decoder_only) fields.fail("model", "does not continue texts");
  const bool chinese = fields.word("language", {"en", "zh"}).value_or("en") == "zh";
  const std::vector<Sum> sums = sums_of(fields);
  const OpenModel& opened = model.opened();
  const int64_t each = KvCache::whole_pages(64 + kStepTokens) + KvCache::kPage;
  Runner runner = opened.runner({.cache = model.precision().compute, .positions = 2 * std::ssize(sums) * each});
  Scheduler scheduler(runner);
  std::vector<std::array<SumAnswer, 2>> answers;
  answers.reserve(sums.size());
  for (const Sum& sum : sums) {
    const std::string text = sum.text(chinese);
    answers.push_back({SumAnswer{.prompt = text + (chinese ? "=" : " ="), .before = ""},
                       SumAnswer{.prompt = chinese ? "一步一步地算" + text + "。" : "Compute " + text + " by steps.",
                                 .before = chinese ? "所以" + text + "=" : "So " + text + " ="}});
    submit_sum(scheduler, opened, answers.back()[0], kAnswerTokens);
    submit_sum(scheduler, opened, answers.back()[1], kStepTokens);
  }
  while (scheduler.step()) model.give_way();
  Json list = Json::array();
  for (size_t i = 0; i < sums.size(); ++i) {
    for (const SumAnswer& answer : answers[i]) {
      QKV_CHECK(answer.error.empty(), "the model cannot continue this sum: ", answer.error, Hint(answer.hint));
    }
    list.push_back({{"sum", sums[i].text(chinese)},
                    {"result", sums[i].result()},
                    {"at_once", answers[i][0].json(sums[i].result())},
                    {"by_steps", answers[i][1].json(sums[i].result())}});
  }
  return report_response({{"model", model.name()}, {"sums", std::move(list)}});
}

}  // namespace qkv::server
