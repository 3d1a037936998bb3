// Names of roles that gold labels show: "obj: dependent to head" is a syntactic relation (Universal Dependencies) and who
// looks at whom in it. Each relation has a word for the dependent and one for its head.
import { words } from "../core/words";

interface Names { relations: Record<string, [string, string]>; coreference: Record<string, string>; baseline: Record<string, string>; words: (n: string, way: string) => string }
const say = words<Names>({
  en: {
    relations: {
      nsubj: ["subject", "verb"], obj: ["object", "verb"], iobj: ["indirect object", "verb"], obl: ["adjunct", "verb"], advmod: ["adverb", "verb"], aux: ["auxiliary", "verb"], cop: ["copula", "predicate"],
      det: ["article", "noun"], amod: ["adjective", "noun"], nummod: ["number", "noun"], nmod: ["attribute", "noun"], compound: ["first part", "compound noun"], clf: ["measure word", "number"], case: ["preposition", "noun"],
      flat: ["later part", "name"], appos: ["apposition", "noun"], conj: ["second of two", "first of two"], cc: ["“and”", "second of two"], punct: ["mark", "verb"], mark: ["conjunction", "clause"], ccomp: ["what is said", "verb of saying"],
      xcomp: ["second verb", "verb"], advcl: ["side clause", "verb"], acl: ["clause", "noun"], parataxis: ["aside", "verb"], discourse: ["particle", "verb"], vocative: ["name called", "verb"],
    },
    coreference: { "": "mention → earlier mention", pronoun: "pronoun → whom it means", name: "name → earlier mention", noun: "noun → earlier mention" },
    baseline: { "same word": "the same word", "nearest mention": "the nearest mention", "the word before": "the word before", "the word after": "the word after" },
    words: (n: string, way: string) => `${n} words ${way}`,
  },
  zh: {
    relations: {
      nsubj: ["主语", "谓语"], obj: ["宾语", "动词"], iobj: ["间接宾语", "动词"], obl: ["状语", "动词"], advmod: ["副词", "动词"], aux: ["助词", "动词"], cop: ["系词", "表语"],
      det: ["限定词", "名词"], amod: ["形容词", "名词"], nummod: ["数词", "名词"], nmod: ["定语", "名词"], compound: ["前一部分", "复合词"], clf: ["量词", "数词"], case: ["介词", "名词"],
      flat: ["后一部分", "名字"], appos: ["同位语", "名词"], conj: ["并列后项", "并列前项"], cc: ["连词", "并列后项"], punct: ["标点", "动词"], mark: ["从句标记", "从句"], ccomp: ["所说的话", "“说”类动词"],
      xcomp: ["第二个动词", "动词"], advcl: ["状语从句", "动词"], acl: ["定语从句", "名词"], parataxis: ["插入语", "动词"], discourse: ["语气词", "动词"], vocative: ["称呼", "动词"],
    },
    coreference: { "": "提到的人 → 上一次提到", pronoun: "代词 → 所指的人", name: "名字 → 上一次提到", noun: "名词 → 上一次提到" },
    baseline: { "same word": "同一个词", "nearest mention": "最近一次提到", "the word before": "前一个词", "the word after": "后一个词" },
    words: (n: string, way: string) => (way === "before" ? `前第 ${n} 个词` : `后第 ${n} 个词`),
  },
});

// Null: no role of labels.
export function labelName(role: string): string | null {
  const [name, direction] = role.split(": ");
  if (!direction) return null;
  const mention = /^coreference(?: of an? (\w+))?$/.exec(name);
  if (mention) return say("coreference")[mention[1] ?? ""] ?? null;
  const pair = say("relations")[name.split(":")[0]];
  if (!pair) return `${name} ${direction}`;
  return direction === "head to dependent" ? `${pair[1]} → ${pair[0]}` : `${pair[0]} → ${pair[1]}`;
}

// "the word before", "2 words after": the best guess that needs no attention.
export function baselineName(name: string): string {
  const far = /^(\d+) words (before|after)$/.exec(name);
  return far ? say("words")(far[1], far[2]) : say("baseline")[name] ?? name;
}
