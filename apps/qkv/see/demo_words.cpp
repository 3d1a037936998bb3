#include "see/demo_words.h"

#include <algorithm>
#include <span>

namespace qkv::app {
namespace {

struct Named {
  std::string_view name, english, chinese;
};
constexpr Named kPhases[] = {
    {"unigram", "counts words", "掌握词频"},
    {"bigram", "knows pairs", "掌握词对"},
    {"induction", "copies patterns", "学会照搬上文"},
    {"plateau", "levels off", "趋于平稳"},
};
constexpr Named kRoles[] = {
    {"always previous token", "always previous token", "总看前一个词元"},
    {"always next token", "always next token", "总看后一个词元"},
    {"previous token", "previous token", "看前一个词元"},
    {"next token", "next token", "看后一个词元"},
    {"current token", "current token", "看当前词元"},
    {"two back", "two back", "看前面第二个"},
    {"three back", "three back", "看前面第三个"},
    {"four back", "four back", "看前面第四个"},
    {"duplicate token", "duplicate token", "看相同的词元"},
    {"duplicate of random tokens", "duplicate of random tokens", "看相同的随机词元"},
    {"induction", "induction", "归纳：照搬上文"},
    {"induction on random tokens", "induction on random tokens", "归纳：照搬随机词元"},
    {"first token", "first token", "看开头"},
    {"learned sink", "learned sink", "停在汇点"},
    {"punctuation", "punctuation", "看标点"},
    {"separators", "separators", "看分隔符"},
    {"rare word", "rare word", "看罕见词"},
    {"previous", "previous token", "看前一个词元"},
    {"duplicate", "duplicate token", "看相同的词元"},
    {"first", "first token", "看开头"},
};

std::string words_for(std::span<const Named> all, std::string_view name, bool chinese) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Named& each) { return each.name == name; });
  return std::string(found == all.end() ? name : chinese ? found->chinese : found->english);
}

}  // namespace

std::string phase_words(std::string_view phase, bool chinese) {
  return words_for(kPhases, phase, chinese);
}

std::string role_words(std::string_view role, bool chinese) {
  return words_for(kRoles, role, chinese);
}

}  // namespace qkv::app
