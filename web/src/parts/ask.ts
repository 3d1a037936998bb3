// The text box with its answer: what the model reads, what it writes, the next token's bars, and the folded controls.
import { el, type Child } from "../core/dom";
import { failureNote } from "../core/failure";
import { list, percent, signed } from "../core/format";
import { answer, can, cutAnswer, cutList, failure, modelNow, models, retry, sampledShares, sampling, textNow, waiting } from "../core/looking";
import { report } from "../core/report";
import { effect, untracked } from "../core/signal";
import * as store from "../core/store";
import { barLine, guessName } from "../core/tip";
import { words } from "../core/words";
import { intervalText, struckTexts, whisker } from "./written";

const say = words({
  en: {
    hero: "What is it thinking?", lead: "Type a sentence. Every layer guesses the next word, every head looks somewhere. Cut a head and watch the answer change.",
    text: "Text for the model to read", continues: "The model goes on", nextTitle: "Next token", without: (heads: string) => `without ${heads}`,
    delta: "change of loss on other texts, nats per token", measuring: "measuring what the cut costs …", putBack: "Put all heads back", more: "Model and sampling",
    model: "Model", temperature: "temperature", greedy: "0: always the likeliest token", topK: "top-k", topP: "top-p", all: "all", draw: "Draw again", others: "all others", tryThis: "Try",
    examples: ["Tom has a red ball. Mia sees the", "Lily and Tom are in the park. Tom gives the kite to", "小明有一只猫。小明喜欢"], looking: "looking …", empty: "Type something: the model needs at least one token.",
    about: (d: { layers: number; heads: number; width: number; parameters: string }) => `${d.layers} layers × ${d.heads} heads, width ${d.width}, ${d.parameters} parameters`,
  },
  zh: {
    hero: "它在想什么？", lead: "写一句话。每一层都在猜下一个词，每个头都在看某处。去掉一个头，看答案怎样变。",
    text: "给模型读的文字", continues: "模型接着写", nextTitle: "下一个词元", without: (heads: string) => `去掉 ${heads}`,
    delta: "在其他文本上损失的变化，纳特／词元", measuring: "正在测量去掉它的代价……", putBack: "恢复所有的头", more: "模型与采样",
    model: "模型", temperature: "温度", greedy: "0：总取概率最大的词元", topK: "top-k", topP: "top-p", all: "全部", draw: "再抽一次", others: "其余", tryThis: "试试",
    examples: ["小明有一只猫。小明喜欢", "Tom has a red ball. Mia sees the", "Lily and Tom are in the park. Tom gives the kite to"], looking: "正在看……", empty: "写点什么：模型至少要读一个词元。",
    about: (d: { layers: number; heads: number; width: number; parameters: string }) => `${d.layers} 层 × ${d.heads} 个头，宽度 ${d.width}，${d.parameters} 个参数`,
  },
});

export function askPart(): Child {
  const box = el("textarea", { id: "text", rows: "2", spellcheck: "false", maxlength: "100000", "aria-label": say("text"), oninput: () => { grow(); store.text.set(box.value); store.token.set(null); } });
  const grow = () => { box.style.height = "auto"; box.style.height = `${Math.min(box.scrollHeight + 2, 220)}px`; };
  effect(() => {
    const text = textNow();
    if (document.activeElement !== box && box.value !== text) box.value = text;
    requestAnimationFrame(grow);
  });
  const examples = () => [...new Set([...models().map((one) => one.example ?? "").filter(Boolean), ...say("examples")])].slice(0, 4);
  return el("section", { class: "ask", "aria-label": say("hero") },
    el("header", { class: "top" }, el("h1", {}, say("hero")), el("p", { class: "lead" }, say("lead"))),
    el("div", { class: "card ask-card" },
      el("div", { class: "ask-main" }, box,
        el("p", { class: "tries" }, say("tryThis"), () => examples().map((text) => el("button", { type: "button", class: "try", onclick: () => choose(text) }, text.length > 34 ? `${text.slice(0, 32)}…` : text))),
        answerText()),
      el("div", { class: "ask-side" }, el("h3", {}, say("nextTitle")), nextBars)),
    () => (failure() ? failureNote(failure()!, retry) : ""),
    el("details", { class: "folded" }, el("summary", {}, say("more")), controls()));
}

function choose(text: string): void {
  store.text.set(text);
  store.token.set(null);
  (document.activeElement as HTMLElement | null)?.blur();
}

// The answer; with cut heads, the old one struck through and the change of the loss beside it.
function answerText(): Child {
  return el("div", { class: "answer-box", "aria-live": "polite" }, () => {
    if (!textNow().trim()) return el("p", { class: "fine" }, say("empty"));
    const cut = cutAnswer(), heads = cutList();
    if (heads.length) {
      return [el("p", { class: "kicker" }, say("without")(heads.join(", ")), " ", el("button", { type: "button", class: "small-button", onclick: () => store.cut.set("") }, say("putBack"))),
        cut ? [struckTexts(cut.before, cut.after), typeof cut.delta === "number" ? el("div", { class: "cut-cost" }, el("b", {}, signed(cut.delta)), el("span", {}, say("delta")),
          whisker({ head: "", ...cut }, [cut.low ?? 0, cut.high ?? 0, cut.delta]), el("span", { class: "fine" }, intervalText({ head: "", ...cut }))) : ""]
          : el("p", { class: "fine" }, say("measuring"))];
    }
    const text = answer();
    return [el("p", { class: "kicker" }, say("continues"), () => (waiting() ? el("span", { class: "fine" }, ` ${say("looking")}`) : "")),
      text !== null ? el("p", { class: "written-line" }, el("span", { class: "prompt" }, shortened(textNow())), el("span", { class: "answer" }, text)) : ""];
  });
}
const shortened = (text: string): string => (text.length > 160 ? `…${Array.from(text).slice(-150).join("")}` : text);

const shownBars = 8;
export function nextBars(): Child {
  const next = report().next;
  if (!next) {
    const guesses = list(report().ladder?.guesses.at(-1)).at(-1);
    return el("div", { class: "bars" }, list(guesses).map((guess, i) => barLine(guessName(guess.text), guess.p, percent(guess.p), "", i ? "bar" : "bar first")));
  }
  return el("div", { class: "bars" }, () => {
    const settings = sampling(), shares = settings.temperature > 0 ? sampledShares(next.candidates, next.lse, settings) : next.candidates.map((c) => c.p);
    return next.candidates.slice(0, shownBars).map((c, i) => barLine(guessName(c.text), shares[i], percent(shares[i]), "", `bar ${i ? "" : "first"} ${shares[i] === 0 ? "out" : ""}`));
  });
}

export function samplingSliders(): Child {
  const slider = (name: "temperature" | "topK" | "topP", low: number, high: number, step: number, shown: (x: number) => string) => {
    const input = el("input", { type: "range", min: low, max: high, step, value: untracked(() => sampling())[name], "aria-label": say(name), oninput: () => sampling.set({ ...sampling.peek(), [name]: Number(input.value) }) });
    return el("label", { class: "slider" }, el("span", {}, say(name)), input, el("output", {}, () => shown(sampling()[name])));
  };
  return el("div", { class: "sliders" },
    slider("temperature", 0, 2, 0.05, (x) => (x === 0 ? say("greedy") : x.toFixed(2))), slider("topK", 0, 50, 1, (x) => (x === 0 ? say("all") : String(x))), slider("topP", 0.05, 1, 0.01, (x) => (x >= 1 ? say("all") : x.toFixed(2))),
    el("button", { type: "button", class: "small-button", onclick: () => sampling.set({ ...sampling.peek(), temperature: sampling.peek().temperature || 0.8, seed: sampling.peek().seed + 1 }) }, say("draw")));
}

function controls(): Child {
  return el("div", { class: "card controls" },
    el("label", { class: "picker" }, el("span", {}, say("model")), () => el("select", { onchange: (event: Event) => { store.model.set((event.target as HTMLSelectElement).value); store.text.set(null); store.cut.set(""); store.token.set(null); } },
      models().map((one) => el("option", { value: one.name, selected: one === modelNow() }, one.name)))),
    () => (modelNow() ? el("p", { class: "fine" }, say("about")({ ...modelNow()!.facts, parameters: millions(modelNow()!.facts.parameters) })) : ""),
    () => (can("next") ? samplingSliders() : ""));
}
const millions = (n: number): string => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} G` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : `${Math.round(n / 1e3)} k`);
