// Chinese realiser: no spaces, measure words, 的, aspect particles, full-width punctuation.
#include <array>
#include <string>
#include <unordered_map>

#include "world/realiser.h"

namespace qkv::world {
namespace {

struct ChineseFunctionWord {
  std::string_view relation, upos;
};

const std::unordered_map<std::string_view, ChineseFunctionWord>& chinese_function_words() {
  static const auto map = [] {
    std::unordered_map<std::string_view, ChineseFunctionWord> out;
    const auto add = [&](std::string_view relation, std::string_view upos, auto... forms) {
      (out.emplace(forms, ChineseFunctionWord{relation, upos}), ...);
    };
    add("case", "ADP", "在", "把", "给", "对", "跟", "从", "到", "向", "为", "被", "用", "比", "往", "沿着", "除了",
        "关于", "为了", "朝", "像", "离", "替", "按", "由");
    add("case:loc", "ADP", "里", "上", "下", "旁边", "后面", "前面", "中", "下面", "上面", "边", "之后", "之前", "以前",
        "以后", "外面", "时", "外", "中间");
    add("mark", "SCONJ", "因为", "如果", "虽然", "只要", "既然", "即使", "由于", "要是", "自从", "不管");
    add("cc", "CCONJ", "和", "但是", "可是", "不过", "而且", "还是", "或者", "但", "而", "与");
    add("aux", "PART", "了", "着", "过");
    add("discourse:sp", "PART", "了_", "吗", "呢", "吧", "啊", "呀", "的_", "啦", "嘛");
    add("mark", "PART", "得");
    add("mark", "PART", "地");
    add("advmod", "ADV", "不", "没", "很", "太", "也", "都", "就", "又", "还", "才", "再", "只", "真", "非常", "已经",
        "一直", "终于", "总是", "从来", "正", "马上", "正在", "刚", "刚刚", "忽然", "突然", "其实", "一起", "常常",
        "从不", "立刻", "永远", "更", "最", "别", "不要", "所以", "于是", "然后", "原来", "果然", "仍然", "却", "先",
        "后来", "当然", "大概", "也许", "那么", "这么", "怎么", "为什么", "到处", "有点", "好", "只好", "居然", "竟然",
        "恐怕", "差点", "至少", "特别", "慢慢", "悄悄", "轻轻", "互相", "几乎", "本来", "便", "始终", "多么", "多",
        "挺", "偏偏");
    add("aux", "AUX", "会", "能", "可以", "应该", "必须", "想", "要", "愿意", "得_", "可", "敢", "肯", "打算", "该");
    add("cop", "AUX", "是");
    add("det", "DET", "这", "那", "每", "某", "这些", "那些", "所有", "任何", "各", "哪");
    add("discourse", "INTJ", "啊呀", "哎呀", "嗯", "喂", "唉", "哦", "请");
    return out;
  }();
  return map;
}

bool is_chinese_punctuation(std::string_view form) {
  static constexpr std::array<std::string_view, 14> kMarks{"。", "，", "？", "！", "：", "；", "“",
                                                           "”",  "（", "）", "、", "《", "》", "……"};
  for (const std::string_view mark : kMarks) {
    if (form == mark) return true;
  }
  return false;
}

std::string number_word(int n, bool before_classifier) {
  constexpr std::array<std::string_view, 11> kWords{"零", "一", "二", "三", "四", "五", "六", "七", "八", "九", "十"};
  if (n == 2 && before_classifier) return "两";
  if (n <= 10) return std::string(kWords[static_cast<size_t>(n)]);
  if (n < 20) return "十" + std::string(kWords[static_cast<size_t>(n - 10)]);
  if (n == 20) return "二十";
  return std::to_string(n);
}

}  // namespace

void Chinese::literal(Group& group, Token token) {
  std::string_view body = token.body;
  std::string_view relation = token.relation;
  bool usual = false;
  if (is_chinese_punctuation(body)) {
    place(group, add(body, {}, "PUNCT"), relation.empty() ? "punct" : relation);
    return;
  }
  std::string_view upos;
  if (const size_t slash = body.rfind('/'); slash != std::string_view::npos && slash + 2 == body.size() && slash > 0) {
    upos = upos_of_code(body.back());
    body = body.substr(0, slash);
  }
  const bool verb = body.size() > 1 && body.back() == '*';
  if (verb) body.remove_suffix(1);
  if (body == "的" && relation.empty()) {
    const bool clause = group.relation.starts_with("acl") || group.relation == "amod";
    place(group, add(body, {}, "PART"), clause ? "mark:rel" : "case");
    return;
  }
  if (const auto found = chinese_function_words().find(body);
      found != chinese_function_words().end() && upos.empty() && !verb) {
    if (relation.empty()) relation = found->second.relation, usual = true;
    upos = found->second.upos;
  }
  if (body.ends_with('_')) body.remove_suffix(1);
  if (upos.empty()) {
    upos = relation.empty() ? (group.relation.starts_with("conj") ? group.head_upos : usual_upos(group.relation))
                            : usual_upos(relation);
  }
  place(group, add(body, {}, upos), relation, usual);
  if (verb && group.form == Form::le) place(group, add("了", {}, "PART"), "aux");
}

int Chinese::name_phrase(int index) {
  const Entity& who = entity(index);
  if (who.kind == EntityKind::group) {
    const int head = member(who.members[0]);
    const int cc = add("和", {}, "CCONJ");
    const int second = member(who.members[1]);
    attach(cc, second, "cc");
    attach(second, head, "conj");
    return head;
  }
  std::string_view name = seen(index) && !who.short_name_zh.empty() ? who.short_name_zh : who.name_zh;
  int head = -1;
  while (!name.empty()) {
    const size_t space = std::min(name.find(' '), name.size());
    const int part = add(name.substr(0, space), {}, "PROPN");
    if (head < 0) {
      head = part;
    } else {
      attach(part, head, "flat");
    }
    name.remove_prefix(std::min(space + 1, name.size()));
  }
  return head;
}

int Chinese::noun_phrase(int index, char mode) {
  const Entity& what = entity(index);
  const Noun& noun = *what.noun;
  if (mode == '^') return add(noun.classifier, {}, "NOUN");
  const bool first = !seen(index);
  const bool indefinite = mode == '+' || mode == '?' || (mode == ' ' && first && what.kind != EntityKind::place);
  const bool pointed = mode == ' ' && !first && what.kind == EntityKind::thing && chooses(index, 30, 1);
  std::vector<std::pair<int, std::string_view>> before;
  if (indefinite || (pointed && what.count == 1)) {
    const int n = indefinite ? add(number_word(what.count, true), {}, "NUM") : add("那", {}, "DET");
    before.emplace_back(n, indefinite ? "nummod" : "det");
    attach(add(noun.classifier, {}, "NOUN"), n, "clf");
  } else if (pointed || (mode == '!' && what.count > 1)) {
    before.emplace_back(add("那些", {}, "DET"), "det");
  }
  const bool described =
      what.adjective != nullptr && (indefinite || mode == '=' || mode == '!' || (first && mode == '-'));
  if (described) {
    const int quality = add(what.adjective->zh, {}, "ADJ");
    before.emplace_back(quality, "amod");
    if (what.adjective->zh.size() > 3) attach(add("的", {}, "PART"), quality, "mark:rel");
  }
  const int head = add(noun.zh, {}, "NOUN");
  for (const auto& [word, relation] : before) attach(word, head, relation);
  return head;
}

int Chinese::pronoun(int index, std::string_view which, std::string_view) {
  const Entity& who = entity(index);
  const Gender gender = pronoun_gender(who);
  const auto [form, person] =
      which == "self"                                            ? std::pair{std::string_view("自己"), ""}
      : which == "I" || which == "me" || which.starts_with("my") ? std::pair{std::string_view("我"), "Person=1"}
      : which == "you" || which.starts_with("your")              ? std::pair{std::string_view("你"), "Person=2"}
      : which == "we" || which == "us" || which == "our" ? std::pair{std::string_view("我们"), "Number=Plur|Person=1"}
      : who.kind == EntityKind::group || (who.count > 1 && who.kind == EntityKind::person)
          ? std::pair{std::string_view(gender == Gender::female ? "她们" : "他们"), "Number=Plur|Person=3"}
      : who.count > 1            ? std::pair{std::string_view("它们"), "Number=Plur|Person=3"}
      : gender == Gender::male   ? std::pair{std::string_view("他"), "Person=3"}
      : gender == Gender::female ? std::pair{std::string_view("她"), "Person=3"}
                                 : std::pair{std::string_view("它"), "Person=3"};
  const int out = add(form, {}, "PRON");
  word(out).feats = person;
  return out;
}

void Chinese::possessive_mark(int head, std::string_view which) {
  if (which.ends_with('0')) return;
  attach(add("的", {}, "PART"), head, "case");
}

void Chinese::add_place_word(Group& group, const Entity& place_) {
  if (!place_.at_zh.empty()) place(group, add(place_.at_zh, {}, "ADP"), "case:loc");
}

void Chinese::finish_sentence(StorySentence& sentence) {
  for (StoryWord& word : sentence.words) word.space_after = false;
}

}  // namespace qkv::world
