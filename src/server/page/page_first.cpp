#include "server/page/page_first.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "inspect/look/worth_telling.h"
#include "inspect/report/look_report.h"
#include "text/sentence_end.h"

namespace qkv::server {
namespace {

struct Example {
  const char* text;
  const char* answer;  // what follows, if one has understood it
};
constexpr Example kEnglish[] = {
    {"Oslo is the capital of Norway, and Ankara is the capital of Turkey. Of which country is Oslo the capital? Oslo "
     "is the capital of",
     "Norway"},
    {"It was Anna's birthday, and Tom wanted to give her a red kite. What did Tom give to Anna? Tom gave a red kite to",
     "Anna"},
    {"Anna met Ben in the library. She drew maps, and he told jokes. Anna, unlike Ben,", "drew maps"},
    {"Anna: cat boat star tea door salt bell road. Ben: star tea door", "salt"},
};
constexpr Example kChinese[] = {
    {"奥斯陆是挪威的首都，安卡拉是土耳其的首都。挪威的首都是哪里？挪威的首都是", "奥斯陆"},
    {"这天是安娜的生日，汤姆想送她一只红色的风筝。谁想送安娜一只风筝？", "汤姆"},
    {"安娜在图书馆里碰见了本。她画地图，他讲笑话。安娜不像本，总是", "画地图"},
    {"安娜：猫船星茶门盐铃路。本：星茶门", "盐"},
};
constexpr const char* kToTranslate[] = {"Anna gives the clock to Tom.", "安娜把红色的风筝送给了汤姆。"};

std::vector<std::string> written(std::span<const Example> examples) {
  std::vector<std::string> texts;
  for (const Example& one : examples) texts.emplace_back(one.text);
  return texts;
}

// Whether this token can begin the right answer.
bool begins_answer(std::string_view text, std::string_view token) {
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  const auto right = [&](const Example& one) {
    return one.text == text && !token.empty() && std::string_view(one.answer).starts_with(token);
  };
  return std::ranges::any_of(kEnglish, right) || std::ranges::any_of(kChinese, right);
}

// Whether some of it is nothing but "unknown" to the model's tokenizer.
bool has_unknown(PageModel& model, const std::string& text) {
  if (!model.opened().has_tokenizer()) return false;
  const std::optional<int32_t> unknown = model.opened().tokenizer().named().unk;
  return unknown && std::ranges::count(model.opened().encode(text).ids, *unknown) > 0;
}

// How much there is to tell, and how well the model knows such texts: one that has never seen them is sure of nothing.
struct Tried {
  std::string text;
  double worth = 0;
  bool right = false;
};
Tried tried(PageModel& model, const std::string& text) {
  const TokenText tokens = model.opened().encode(text);
  const bool fits = model.spec().context <= 0 || std::ssize(tokens.ids) <= model.spec().context;
  if (tokens.ids.empty() || !fits) return {.text = text, .worth = -1};
  Looked seen = look_at(model.model(), model.engine(), tokens, {.precision = model.precision()});
  Ladder ladder = climb(model.model(), model.engine(), seen, {.precision = model.precision()});
  const Tokenizer* tokenizer = model.opened().has_tokenizer() ? &model.opened().tokenizer() : nullptr;
  const LookedAt at(tokenizer, model.spec(), std::move(seen), std::move(ladder));
  const size_t output = at.ladder.levels.size() - 1;
  double sure = 0;
  const auto rows = static_cast<int64_t>(at.tokens.size());
  for (int64_t row = rows / 2; row < rows; ++row) sure += at.ladder.at(output, row).guesses.front().p;
  const std::array guess{at.ladder.at(output, rows - 1).guesses.front().id};
  const double telling = token_worth_telling(at.seen, at.ladder, at.tokens).worth;
  return {.text = text,
          .worth = sure / static_cast<double>(rows - rows / 2) * (0.2 + telling),
          .right = telling > 0 && begins_answer(text, shown_ids(tokenizer, guess).front().text)};
}

// Puts those that it answers right first, as they are listed; then those with most to tell. Says what the best is worth.
double try_examples(PageModel& model, bool chinese) {
  std::vector<std::string>& texts = model.examples(chinese);
  std::vector<Tried> all;
  for (const std::string& text : texts) all.push_back(tried(model, text));
  std::ranges::stable_sort(
      all, [](const Tried& a, const Tried& b) { return a.right != b.right ? a.right : !a.right && a.worth > b.worth; });
  std::ranges::transform(all, texts.begin(), &Tried::text);
  return std::ranges::max(all, {}, &Tried::worth).worth;
}

}  // namespace

const std::vector<std::string>& page_examples(PageModel& model, bool chinese) {
  std::vector<std::string>& texts = model.examples(chinese);
  if (!texts.empty()) return texts;
  if (model.spec().has_source()) {
    texts.assign(std::begin(kToTranslate), std::end(kToTranslate));
    if (chinese) std::ranges::reverse(texts);
    return texts;
  }
  // Those it can read: in this language, if it was trained on it, else in the other one, else all.
  const auto in_chinese = [](const std::string& data) { return data.starts_with("world:zh"); };
  const bool reads = chinese ? std::ranges::any_of(model.world_data(), in_chinese)
                             : !std::ranges::all_of(model.world_data(), in_chinese);
  const bool asked = reads ? chinese : !chinese;
  std::vector<std::string> own = asked ? written(kChinese) : written(kEnglish),
                           other = asked ? written(kEnglish) : written(kChinese);
  texts = own;
  std::erase_if(texts, [&](const std::string& text) { return has_unknown(model, text); });
  if (!texts.empty()) return texts;
  std::erase_if(other, [&](const std::string& text) { return has_unknown(model, text); });
  texts = other.empty() ? own : other;
  return texts;
}

Json first_look(PageParts& page, bool chinese) {
  PageModel& model = *page.models.all().front();
  std::string text = page_examples(model, chinese).front();
  if (!model.spec().has_source()) {
    // A model of one language begins with what it can read.
    page_examples(model, !chinese);
    constexpr double kMuchLess = 0.25;
    const double own = try_examples(model, chinese), other = try_examples(model, !chinese);
    text = page_examples(model, own < kMuchLess * other ? !chinese : chinese).front();
  }
  const PageText asked{.model = model, .text = model.opened().encode(text), .title = text};
  Json report = page_look_report(asked, std::nullopt);
  if (model.spec().kind != ModelSpec::Kind::encoder_only) {
    report["answer"] = up_to_sentence_end(page_write_text(asked, {}, nullptr).text);
  }
  // Maps alone, to the 255th of their root: the exact weights of every row come with the first question.
  for (Json& head : report["heads"]) {
    if (head.contains("map")) head.erase("top");
  }
  report["models"] = Json(page_models_json(page));
  return report;
}

}  // namespace qkv::server
