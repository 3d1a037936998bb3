#include "server/page/page_first.h"

#include <algorithm>
#include <optional>
#include <span>

#include "inspect/look/worth_telling.h"
#include "inspect/report/look_report.h"
#include "text/sentence_end.h"

namespace qkv::server {
namespace {

constexpr const char* kEnglish[] = {
    "Oslo is the capital of Norway, and Ankara is the capital of Turkey. Of which country is Oslo the capital? Oslo is "
    "the capital of",
    "It was Anna's birthday, and Tom wanted to give her a red kite. What did Tom give to Anna? Tom gave a red kite to",
    "Anna met Ben in the library. She drew maps, and he told jokes. Anna, unlike Ben,",
    "Anna: cat boat star tea door salt bell road. Ben: star tea door",
};
constexpr const char* kChinese[] = {
    "奥斯陆是挪威的首都，安卡拉是土耳其的首都。奥斯陆是哪个国家的首都？奥斯陆是",
    "这天是安娜的生日，汤姆想送她一只红色的风筝。汤姆送给安娜什么？汤姆送给",
    "安娜在图书馆里碰见了本。她画地图，他讲笑话。安娜不像本，总是",
    "安娜：猫船星茶门盐铃路。本：星茶门",
};
constexpr const char* kToTranslate[] = {"Anna gave the red kite to Tom.", "安娜把红色的风筝送给了汤姆。"};

std::vector<std::string> written(std::span<const char* const> texts) {
  return {texts.begin(), texts.end()};
}

// Whether some of it is nothing but "unknown" to the model's tokenizer.
bool has_unknown(PageModel& model, const std::string& text) {
  if (!model.opened().has_tokenizer()) return false;
  const std::optional<int32_t> unknown = model.opened().tokenizer().named().unk;
  return unknown && std::ranges::count(model.opened().encode(text).ids, *unknown) > 0;
}

// How much there is to tell, and how well the model knows such texts: one that has never seen them is sure of nothing.
double worth_of(PageModel& model, const std::string& text) {
  const TokenText tokens = model.opened().encode(text);
  if (tokens.ids.empty() || (model.spec().context > 0 && std::ssize(tokens.ids) > model.spec().context)) return -1;
  Looked seen = look_at(model.model(), model.engine(), tokens, {.precision = model.precision()});
  Ladder ladder = climb(model.model(), model.engine(), seen, {.precision = model.precision()});
  const Tokenizer* tokenizer = model.opened().has_tokenizer() ? &model.opened().tokenizer() : nullptr;
  const LookedAt at(tokenizer, model.spec(), std::move(seen), std::move(ladder));
  const size_t output = at.ladder.levels.size() - 1;
  double sure = 0;
  const auto rows = static_cast<int64_t>(at.tokens.size());
  for (int64_t row = rows / 2; row < rows; ++row) sure += at.ladder.at(output, row).guesses.front().p;
  return sure / static_cast<double>(rows - rows / 2) * (0.2 + token_worth_telling(at.seen, at.ladder, at.tokens).worth);
}

// Puts the best first, and says what it is worth.
double try_examples(PageModel& model, bool chinese) {
  std::vector<std::string>& texts = model.examples(chinese);
  std::vector<std::pair<double, std::string>> tried;
  for (const std::string& text : texts) tried.emplace_back(worth_of(model, text), text);
  std::ranges::stable_sort(tried, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::ranges::transform(tried, texts.begin(), [](const auto& one) { return one.second; });
  return tried.front().first;
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
  // Those it can read: in this language, else in the other one, else all.
  std::vector<std::string> own = chinese ? written(kChinese) : written(kEnglish),
                           other = chinese ? written(kEnglish) : written(kChinese);
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
