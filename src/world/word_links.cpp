#include "world/word_links.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "world/lexicon.h"
#include "world/meanings.h"

namespace qkv {
namespace {

using Numbers = std::vector<size_t>;

std::string_view plain_relation(const StoryWord& word) {
  return word.relation.substr(0, word.relation.find(':'));
}

struct PairTree {
  const std::vector<StoryWord>& words;

  Numbers children(size_t of, std::string_view relation) const {
    Numbers found;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i].head == static_cast<int>(of) + 1 && plain_relation(words[i]) == relation) found.push_back(i);
    }
    return found;
  }
  std::optional<size_t> only_child(size_t of, std::string_view relation) const {
    const Numbers found = children(of, relation);
    return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
  }
  std::map<int, Numbers> mentions() const {
    std::map<int, Numbers> found;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i].entity >= 0) found[words[i].entity].push_back(i);
    }
    return found;
  }
  // The relations from a word to the root, and its kind.
  std::string place(size_t at) const {
    std::string path(words[at].upos);
    for (int i = static_cast<int>(at) + 1; i > 0; i = words[static_cast<size_t>(i - 1)].head) {
      path += '/';
      path += plain_relation(words[static_cast<size_t>(i - 1)]);
    }
    return path;
  }
};

bool is_title(std::string_view form) {
  static constexpr std::array<std::string_view, 8> kTitles{"Mr",    "Mrs",     "Miss", "Ms",
                                                           "Uncle", "Grandpa", "Aunt", "Grandma"};
  return std::find(kTitles.begin(), kTitles.end(), form) != kTitles.end();
}

// Words that stand at the same place of both patterns but mean something else: "Who has the book?", 书在谁手里？
struct NoPair {
  std::string_view en, zh;
};
constexpr NoPair kNoPairs[] = {
    {"have", "在"},        {"have", "归"},       {"have", "带"},        {"have", "想"},
    {"have", "长"},        {"everywhere", "都"}, {"go", "带"},          {"go", "慢行"},
    {"take", "走"},        {"out", "却"},        {"count", "扳"},       {"how", "一共"},
    {"how", "真"},         {"walk", "带"},       {"walk", "穿"},        {"buy", "花"},
    {"buy", "准备"},       {"back", "身后"},     {"house", "隔壁"},     {"begin", "下"},
    {"home", "一路"},      {"home", "就"},       {"home", "都"},        {"laugh", "忍"},
    {"laugh", "没有"},     {"come", "喜欢"},     {"come", "起"},        {"come", "走"},
    {"cup", "茶"},         {"sit", "挡"},        {"want", "看"},        {"want", "尝"},
    {"want", "修"},        {"want", "当"},       {"want", "包"},        {"want", "听"},
    {"want", "种"},        {"want", "点"},       {"show", "看"},        {"show", "带"},
    {"complain", "有"},    {"like", "没有"},     {"know", "没有"},      {"ask", "没有"},
    {"listen", "没有"},    {"now", "都"},        {"there", "原来"},     {"say", "看见"},
    {"say", "道歉"},       {"cream", "鼻子"},    {"morning", "星期一"}, {"afternoon", "星期天"},
    {"evening", "星期五"}, {"weigh", "有"},      {"good", "亮"},        {"cost", "没"},
    {"do", "想"},          {"do", "用来"},       {"speak", "理"},       {"one", "这"},
    {"everyone", "谁"},    {"try", "喝"},        {"spill", "震"},       {"stand", "是"},
    {"shine", "出来"},
};

std::string lower(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

// Meanings, and the nouns and adjectives of the lexicon.
bool is_meaning(const std::string& lemma, const std::string& chinese) {
  static const auto known = [] {
    std::set<std::pair<std::string_view, std::string_view>> all;
    for (const world::Meaning& meaning : world::meanings()) all.emplace(meaning.en, meaning.zh);
    for (const world::Noun* noun : world::all_nouns()) all.emplace(noun->en, noun->zh);
    for (const auto& table : {world::thing_qualities(), world::colours(), world::baked_qualities(),
                              world::fruit_qualities(), world::animal_qualities(), world::person_qualities()}) {
      for (const world::Adjective& adjective : table) all.emplace(adjective.en, adjective.zh);
    }
    return all;
  }();
  return known.contains({lemma, chinese}) || known.contains({lower(lemma), chinese});
}

bool mean_the_same(const StoryWord& en, const StoryWord& zh) {
  // A measure word may stand for its noun, a day of the week for a part of it, 去 for going to do something.
  const bool measure = zh.upos == "NOUN" && (zh.form == "个" || zh.form == "块" || zh.form == "张");
  const bool day = zh.form.starts_with("星期") && !en.form.ends_with("day") && en.lemma != "week";
  const bool goes = zh.form == "去" && en.lemma != "go";
  return !measure && !day && !goes && std::none_of(std::begin(kNoPairs), std::end(kNoPairs), [&](const NoPair& pair) {
    return pair.en == en.lemma && pair.zh == zh.form;
  });
}

class PairFinder {
 public:
  PairFinder(const StorySentence& english, const StorySentence& chinese) : en_{english.words}, zh_{chinese.words} {}

  WordLinks find() {
    const std::map<int, Numbers> chinese = zh_.mentions();
    for (const auto& [entity, here] : en_.mentions()) {
      const auto there = chinese.find(entity);
      if (there != chinese.end()) pair_mentions(here, there->second);
    }
    pair_nouns();
    pair_places();
    pair_meanings();
    pair_marks();
    pair_compounds();
    return {.sure = {pairs_.begin(), pairs_.end()}, .possible = possible()};
  }

 private:
  void link(size_t en, size_t zh) {
    pairs_.emplace(en, zh);
    paired_en_.insert(en);
    paired_zh_.insert(zh);
  }

  // In order; where one language has more of them, those of the same kind and relation.
  void pair_mentions(const Numbers& en, const Numbers& zh) {
    if (en.size() == zh.size()) {
      for (size_t k = 0; k < en.size(); ++k) pair_phrases(en[k], zh[k]);
      return;
    }
    std::set<size_t> used;
    for (const size_t e : en) {
      for (const size_t z : zh) {
        if (plain_relation(en_.words[e]) != plain_relation(zh_.words[z]) || en_.words[e].upos != zh_.words[z].upos ||
            !used.insert(z).second) {
          continue;
        }
        pair_phrases(e, z);
        break;
      }
    }
  }

  void pair_phrases(size_t en, size_t zh) {
    if (pair_units(en, zh)) return;
    pair_names(en, zh);
    pair_parts(en, zh);
  }

  // "a cup of tea": in English the unit is the head, in Chinese the noun.
  bool pair_units(size_t en, size_t zh) {
    const std::optional<size_t> noun = en_.only_child(en, "nmod");
    const std::optional<size_t> number = zh_.only_child(zh, "nummod");
    if (!noun || !number || en_.words[*noun].entity >= 0) return false;
    const std::optional<size_t> unit = zh_.only_child(*number, "clf"), of = en_.only_child(*noun, "case");
    if (!unit || !of || en_.words[*of].form != "of") return false;
    link(*noun, zh);
    link(en, *unit);
    pair_parts(en, zh);
    pair_described(*noun, zh);
    return true;
  }

  // The words of a name. A title stands before an English name and after a Chinese one.
  void pair_names(size_t en, size_t zh) {
    Numbers english{en}, chinese{zh};
    for (const size_t part : en_.children(en, "flat")) english.push_back(part);
    for (const size_t part : zh_.children(zh, "flat")) chinese.push_back(part);
    if (english.size() == 2 && chinese.size() == 2 && is_title(en_.words[en].form)) std::swap(chinese[0], chinese[1]);
    if (english.size() == chinese.size()) {
      for (size_t k = 0; k < english.size(); ++k) link(english[k], chinese[k]);
    } else if (chinese.size() == 1) {
      for (const size_t part : english) link(part, zh);
    } else if (english.size() == 1) {
      for (const size_t part : chinese) link(en, part);
    }
  }

  void pair_described(size_t en, size_t zh) {
    for (const std::string_view relation : {"amod", "nummod"}) {
      const std::optional<size_t> here = en_.only_child(en, relation), there = zh_.only_child(zh, relation);
      if (here && there) link(*here, *there);
    }
    for (const size_t part : en_.children(en, "compound")) link(part, zh);
  }

  void pair_parts(size_t en, size_t zh) {
    pair_described(en, zh);
    const std::optional<size_t> article = en_.only_child(en, "det"), one = zh_.only_child(zh, "nummod");
    if (article && one && en_.words[*article].lemma == "a" && zh_.words[*one].form == "一") link(*article, *one);
    // "on the table", 在桌子上: the preposition is both words. "Tom's", 汤姆的.
    const std::optional<size_t> preposition = en_.only_child(en, "case");
    if (!preposition) return;
    const std::string_view kind = en_.words[*preposition].upos;
    for (const size_t part : zh_.children(zh, "case")) {
      if (zh_.words[part].upos == kind) link(*preposition, part);
    }
  }

  // A word that is not paired yet, alone at its place in both trees.
  void pair_places() {
    const auto places = [](const PairTree& tree, const std::set<size_t>& paired) {
      std::map<std::string, Numbers> found;
      for (size_t i = 0; i < tree.words.size(); ++i) {
        const StoryWord& word = tree.words[i];
        if (word.entity >= 0 || paired.contains(i) || word.upos == "PUNCT" || word.upos == "DET" ||
            word.upos == "PART" || word.upos == "ADP" || word.relation == "clf") {
          continue;
        }
        found[tree.place(i)].push_back(i);
      }
      return found;
    };
    const auto chinese = places(zh_, paired_zh_);
    for (const auto& [place, here] : places(en_, paired_en_)) {
      const auto there = chinese.find(place);
      if (here.size() != 1 || there == chinese.end() || there->second.size() != 1) continue;
      if (mean_the_same(en_.words[here[0]], zh_.words[there->second[0]])) link(here[0], there->second[0]);
    }
  }

  // "jasmine tea", 茉莉花茶: all words of an English noun are the Chinese one.
  void pair_nouns() {
    for (const world::Noun* noun : world::all_nouns()) {
      const size_t words = 1 + static_cast<size_t>(std::count(noun->en.begin(), noun->en.end(), ' '));
      if (words == 1) continue;
      for (size_t z = 0; z < zh_.words.size(); ++z) {
        if (zh_.words[z].form != noun->zh) continue;
        for (size_t e = 0; e + words <= en_.words.size(); ++e) {
          std::string found;
          for (size_t k = 0; k < words; ++k) found += (k == 0 ? "" : " ") + lower(en_.words[e + k].lemma);
          const bool here = found == noun->en && (!paired_zh_.contains(z) || pairs_.contains({e + words - 1, z}));
          for (size_t k = 0; here && k < words; ++k) link(e + k, z);
        }
      }
    }
  }

  // A word and what it means, each without a pair so far; those that stand at similar places of their sentences first.
  void pair_meanings() {
    std::vector<std::tuple<double, size_t, size_t>> found;
    for (size_t e = 0; e < en_.words.size(); ++e) {
      if (paired_en_.contains(e)) continue;
      for (size_t z = 0; z < zh_.words.size(); ++z) {
        if (paired_zh_.contains(z) || !is_meaning(en_.words[e].lemma, zh_.words[z].form)) continue;
        const auto share = [](size_t at, const PairTree& tree) {
          return static_cast<double>(at) / static_cast<double>(tree.words.size());
        };
        found.emplace_back(std::abs(share(e, en_) - share(z, zh_)), e, z);
      }
    }
    std::sort(found.begin(), found.end());
    for (const auto& [distance, e, z] : found) {
      if (!paired_en_.contains(e) && !paired_zh_.contains(z)) link(e, z);
    }
  }

  Numbers partners(const PairTree& tree, size_t of) const {
    Numbers found;
    for (const auto& [e, z] : pairs_) {
      if (&tree == &en_ && e == of) found.push_back(z);
      if (&tree == &zh_ && z == of) found.push_back(e);
    }
    return found;
  }
  void link_with_head(const PairTree& tree, size_t word, size_t head, std::set<std::pair<size_t, size_t>>& into) const {
    for (const size_t partner : partners(tree, head)) {
      into.insert(&tree == &en_ ? std::pair(word, partner) : std::pair(partner, word));
    }
  }

  // "wake up", 举起: a word that is part of another has its pairs.
  void pair_compounds() {
    for (const PairTree* tree : {&en_, &zh_}) {
      for (size_t i = 0; i < tree->words.size(); ++i) {
        const StoryWord& word = tree->words[i];
        const bool paired = (tree == &en_ ? paired_en_ : paired_zh_).contains(i);
        if (paired || plain_relation(word) != "compound") continue;
        std::set<std::pair<size_t, size_t>> found;
        link_with_head(*tree, i, static_cast<size_t>(word.head - 1), found);
        for (const auto& [e, z] : found) link(e, z);
      }
    }
  }

  // Articles, particles, measure words: with the words their heads are paired with.
  std::vector<std::pair<size_t, size_t>> possible() const {
    static constexpr std::array<std::string_view, 7> kSmall{"DET", "PART", "ADP", "AUX", "CCONJ", "SCONJ", "PRON"};
    static constexpr std::array<std::string_view, 10> kAdverbs{"都", "也", "就", "又", "还",
                                                               "才", "很", "正", "在", "却"};
    std::set<std::pair<size_t, size_t>> found;
    for (const PairTree* tree : {&en_, &zh_}) {
      for (size_t i = 0; i < tree->words.size(); ++i) {
        const StoryWord& word = tree->words[i];
        const bool measure = plain_relation(word) == "clf";
        const bool small = measure || std::find(kSmall.begin(), kSmall.end(), word.upos) != kSmall.end() ||
                           std::find(kAdverbs.begin(), kAdverbs.end(), word.form) != kAdverbs.end();
        if (!small || word.head == 0 || (tree == &en_ ? paired_en_ : paired_zh_).contains(i)) continue;
        const auto head = static_cast<size_t>(word.head - 1);
        link_with_head(*tree, i, head, found);
        if (i > 0 && word.form == "地") link_with_head(*tree, i, i - 1, found);  // 开心地
        // 一本书, 有名的饺子: the measure word hangs on the number, the number on the noun.
        const int noun = tree->words[head].head;
        if ((measure || word.form == "的") && noun > 0) link_with_head(*tree, i, static_cast<size_t>(noun - 1), found);
      }
    }
    return {found.begin(), found.end()};
  }

  void pair_marks() {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kMarks{
        {{",", "，、"}, {".", "。"}, {"?", "？"}, {"!", "！"}, {":", "："}, {"(", "（"}, {")", "）"}, {";", "；"}}};
    const auto marks = [](const PairTree& tree, std::string_view forms, const std::set<size_t>& paired) {
      Numbers found;
      for (size_t i = 0; i < tree.words.size(); ++i) {
        const StoryWord& word = tree.words[i];
        if (word.upos == "PUNCT" && forms.find(word.form) != std::string_view::npos && !paired.contains(i)) {
          found.push_back(i);
        }
      }
      return found;
    };
    pair_quotes();
    for (const auto& [english, chinese] : kMarks) {
      const Numbers here = marks(en_, english, paired_en_), there = marks(zh_, chinese, paired_zh_);
      for (size_t k = 0; here.size() == there.size() && k < here.size(); ++k) link(here[k], there[k]);
    }
  }

  void pair_quotes() {
    const auto quotes = [](const PairTree& tree) {
      Numbers found;
      for (size_t i = 0; i < tree.words.size(); ++i) {
        const std::string_view form = tree.words[i].form;
        if (form == "\"" || form == "“" || form == "”") found.push_back(i);
      }
      return found;
    };
    const Numbers english = quotes(en_), chinese = quotes(zh_);
    if (english.size() != chinese.size()) return;
    for (size_t k = 0; k < english.size(); ++k) {
      link(english[k], chinese[k]);
      // The mark before a quote: said, “Rome.” 说：“罗马。”
      if (english[k] == 0 || chinese[k] == 0) continue;
      const size_t here = english[k] - 1, there = chinese[k] - 1;
      if (en_.words[here].upos == "PUNCT" && zh_.words[there].upos == "PUNCT" && !paired_en_.contains(here) &&
          !paired_zh_.contains(there)) {
        link(here, there);
      }
    }
  }

  PairTree en_, zh_;
  std::set<std::pair<size_t, size_t>> pairs_;
  std::set<size_t> paired_en_, paired_zh_;
};

}  // namespace

WordLinks word_links(const StorySentence& english, const StorySentence& chinese) {
  return PairFinder(english, chinese).find();
}

}  // namespace qkv
