#include "world/labels.h"

#include <fmt/format.h>

#include "world/word_links.h"

namespace qkv {
namespace {

using Object = nlohmann::ordered_json;

size_t characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

Object span(const std::string& text, size_t begin, size_t end) {
  const size_t first = characters(std::string_view(text).substr(0, begin));
  const size_t length = characters(std::string_view(text).substr(begin, end - begin));
  return {{"text", text.substr(begin, end - begin)}, {"bytes", {begin, end}}, {"chars", {first, first + length}}};
}

std::string_view name_of(MentionKind kind) {
  switch (kind) {
    case MentionKind::name:
      return "name";
    case MentionKind::noun:
      return "noun";
    case MentionKind::pronoun:
      return "pronoun";
  }
  return "";
}

}  // namespace

std::string to_conllu(const AnnotatedText& annotated, std::string_view document) {
  std::string out = fmt::format("# newdoc id = {}\n", document);
  for (size_t s = 0; s < annotated.sentences.size(); ++s) {
    const StorySentence& sentence = annotated.sentences[s];
    out += fmt::format("# sent_id = {}-{}\n# text = {}\n", document, s + 1,
                       std::string_view(annotated.text).substr(sentence.begin, sentence.end - sentence.begin));
    for (size_t w = 0; w < sentence.words.size(); ++w) {
      const StoryWord& word = sentence.words[w];
      std::string misc;
      if (word.entity >= 0) misc = fmt::format("Entity=e{}", word.entity);
      if (!word.space_after) misc += misc.empty() ? "SpaceAfter=No" : "|SpaceAfter=No";
      out += fmt::format("{}\t{}\t{}\t{}\t_\t{}\t{}\t{}\t_\t{}\n", w + 1, word.form, word.lemma, word.upos,
                         word.feats.empty() ? "_" : word.feats, word.head, word.relation, misc.empty() ? "_" : misc);
    }
    out += '\n';
  }
  return out;
}

std::string to_pairs(const Story& story) {
  std::string out;
  for (size_t s = 0; s < story.english.sentences.size(); ++s) {
    const StorySentence& en = story.english.sentences[s];
    const StorySentence& zh = story.chinese.sentences[s];
    out.append(story.english.text, en.begin, en.end - en.begin).append("\t");
    out.append(story.chinese.text, zh.begin, zh.end - zh.begin).append("\n");
  }
  return out;
}

std::string to_alignments(const Story& story, Language source) {
  const bool english = source == Language::english;
  std::string out;
  for (size_t s = 0; s < story.english.sentences.size(); ++s) {
    Object row;
    for (const auto& [side, annotated] :
         {std::pair("source", &story.in(source)), {"target", english ? &story.chinese : &story.english}}) {
      const StorySentence& sentence = annotated->sentences[s];
      row[side] = annotated->text.substr(sentence.begin, sentence.end - sentence.begin);
      Object& words = row[std::string(side) + "_words"] = Object::array();
      for (const StoryWord& word : sentence.words)
        words.push_back({word.begin - sentence.begin, word.end - sentence.begin});
    }
    const WordLinks links = word_links(story.english.sentences[s], story.chinese.sentences[s]);
    for (const auto& [name, some] : {std::pair("pairs", &links.sure), {"possible", &links.possible}}) {
      Object& pairs = row[name] = Object::array();
      for (const auto& [en, zh] : *some) pairs.push_back({english ? en : zh, english ? zh : en});
    }
    out += row.dump() + '\n';
  }
  return out;
}

nlohmann::ordered_json mentions_json(const AnnotatedText& annotated) {
  Object out = Object::array();
  for (const Mention& mention : annotated.mentions) {
    Object row = span(annotated.text, mention.begin, mention.end);
    row["entity"] = fmt::format("e{}", mention.entity);
    row["kind"] = name_of(mention.kind);
    if (!mention.antecedents.empty()) row["antecedents"] = mention.antecedents;
    out.push_back(std::move(row));
  }
  return out;
}

nlohmann::ordered_json answers_json(const AnnotatedText& annotated) {
  Object out = Object::array();
  for (const Answer& answer : annotated.answers) {
    Object row{{"question", answer.question}, {"answer", span(annotated.text, answer.begin, answer.end)}};
    if (answer.asked_at != std::string::npos) row["context_bytes"] = answer.asked_at;
    out.push_back(std::move(row));
  }
  return out;
}

nlohmann::ordered_json brackets_json(const AnnotatedText& annotated) {
  Object out = Object::array();
  for (const BracketPair& pair : annotated.brackets) out.push_back({pair.open, pair.close});
  return out;
}

}  // namespace qkv
