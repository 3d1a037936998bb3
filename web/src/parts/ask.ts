// The text box with its answer: what the model reads, what it writes, the next token's bars, and the folded controls.
import { el, type Child } from "../core/dom";
import { list, millions, percent, shortened, visible } from "../core/format";
import { answer, can, chooseModel, chooseText, cutList, examplesOf, modelNow, models, refreshModels, textNow, waiting } from "../core/looking";
import { report } from "../core/report";
import { sampledShares, sampling } from "../core/sampling";
import { effect, untracked } from "../core/signal";
import * as store from "../core/store";
import { barLine, guessName } from "../core/tip";
import { words } from "../core/words";
import { chips } from "./chips";
import { cutResult } from "./cut_result";
import { tokenRow } from "./tokens";

const say = words({
  en: {
    hero: "What is it thinking?", lead: "Type a sentence. Every layer guesses the next word, every head looks somewhere. Cut a head and watch the answer change.",
    text: "Text for the model to read", continues: "The model goes on", nextTitle: "Next token", more: (model: string) => `Model and sampling: ${model}`,
    model: "Model", temperature: "temperature", greedy: "0: always the likeliest token", topK: "top-k", topP: "top-p", all: "all", draw: "Draw again", others: "all others", tryThis: "Try",
    looking: "looking …", empty: "Type something: the model needs at least one token. Below is what it last read.", reads: "Source, read by the encoder",
    about: (d: { layers: number; heads: number; width: number; parameters: string }) => `${d.layers} layers × ${d.heads} heads, width ${d.width}, ${d.parameters} parameters`,
    cannot: (why: string) => `This model cannot be opened: ${why}`, noText: "This model reads texts and writes none; its guesses are of the tokens themselves.",
  },
  zh: {
    hero: "它在想什么？", lead: "写一句话。每一层都在猜下一个词，每个头都在看某处。去掉一个头，看答案怎样变。",
    text: "给模型读的文字", continues: "模型接着写", nextTitle: "下一个词元", more: (model: string) => `模型与采样：${model}`,
    model: "模型", temperature: "温度", greedy: "0：总取概率最大的词元", topK: "top-k", topP: "top-p", all: "全部", draw: "再抽一次", others: "其余", tryThis: "试试",
    looking: "正在看……", empty: "写点什么：模型至少要读一个词元。下面是它上次读的。", reads: "编码器读入的原文",
    about: (d: { layers: number; heads: number; width: number; parameters: string }) => `${d.layers} 层 × ${d.heads} 个头，宽度 ${d.width}，${d.parameters} 个参数`,
    cannot: (why: string) => `这个模型打不开：${why}`, noText: "这个模型只读不写，它猜的是词元本身。",
  },
});

export function askPart(): Child {
  const box = el("textarea", { id: "text", rows: "2", spellcheck: "false", "aria-label": say("text"), oninput: () => { grow(); chooseText(box.value); } });
  const grow = () => { box.style.height = "auto"; box.style.height = `${Math.min(box.scrollHeight + 2, 220)}px`; };
  effect(() => {
    const text = textNow();
    if (document.activeElement !== box && box.value !== text) box.value = text;
    requestAnimationFrame(grow);
  });
  return el("section", { class: "ask", id: "ask", "aria-label": say("hero") },
    el("header", { class: "top" }, el("h1", {}, say("hero")), el("p", { class: "lead" }, say("lead"))),
    el("div", { class: "card ask-card" },
      el("div", { class: "ask-main" }, box, tries, el("div", { class: "ask-tokens" }, () => [report().source ? [el("h3", {}, say("reads")), chips(list(report().source))] : null, tokenRow()]), answerText()),
      el("div", { class: "ask-side" }, el("h3", {}, say("nextTitle")), nextBars, controls())));
}

// Other texts worth looking at; the one that is there is not offered again.
function tries(): Child {
  const model = modelNow(), chinese = store.lang() === "zh", now = textNow();
  const all = [...examplesOf(model, chinese), ...examplesOf(model, !chinese)].filter((text) => text !== now);
  const some = [...all.slice(0, 2), ...examplesOf(model, !chinese).filter((text) => text !== now).slice(0, 1)];
  if (!some.length) return null;
  return el("p", { class: "tries" }, say("tryThis"), [...new Set(some)].map((text) => el("button", { type: "button", class: "try", title: text, onclick: () => {
    chooseText(text);
    (document.activeElement as HTMLElement | null)?.blur();
  } }, shortened(text, 36))));
}

// The answer; with cut heads, the old one struck through and the change of the loss beside it.
function answerText(): Child {
  return el("div", { class: "answer-box", "aria-live": "polite" }, () => {
    if (!textNow().trim()) return el("p", { class: "fine" }, say("empty"));
    if (cutList().length) return cutResult();
    const text = answer();
    return [el("p", { class: "kicker" }, say("continues"), () => (waiting() ? el("span", { class: "fine" }, ` ${say("looking")}`) : "")),
      text !== null ? el("p", { class: "written-line" }, el("span", { class: "prompt" }, shortened(textNow(), 60, "last")), el("span", { class: "answer" }, text)) : modelNow() && !can("write") ? el("p", { class: "fine" }, say("noText")) : ""];
  });
}

const shownBars = 8;
export function nextBars(): Child {
  const next = report().next;
  if (!next) {
    const guesses = list(report().ladder?.guesses.at(-1)).at(-1);
    return el("div", { class: "bars" }, list(guesses).map((guess, i) => barLine(guessName(guess.text), guess.p, percent(guess.p), "", i ? "bar" : "bar first")));
  }
  return el("div", { class: "bars next-bars" }, () => {
    const settings = sampling(), shares = settings.temperature > 0 ? sampledShares(next.candidates, next.lse, settings) : next.candidates.map((c) => c.p);
    const rest = 1 - shares.slice(0, shownBars).reduce((a, b) => a + b, 0);
    // A token may be the beginning of a word: the rest of it stands in what the model writes.
    const written = settings.temperature > 0 || cutList().length ? "" : answer() ?? "", first = next.candidates[0]?.text ?? "";
    const comes = first && written.startsWith(first) && /\p{L}$/u.test(first) ? /^[\p{Script=Latin}\p{M}]*/u.exec(written.slice(first.length))![0] : "";
    return [next.candidates.slice(0, shownBars).map((c, i) => barLine(i === 0 && comes ? [visible(c.text), el("span", { class: "to-come" }, comes)] : guessName(c.text), shares[i], percent(shares[i]), "", `bar ${i ? "" : "first"} ${shares[i] === 0 ? "out" : ""}`)),
      rest > 0.0005 ? barLine(say("others"), rest, percent(rest), "var(--faint)", "bar rest") : ""];
  });
}

export function samplingSliders(): Child {
  const slider = (name: "temperature" | "topK" | "topP", low: number, high: number, step: number, shown: (x: number) => string) => {
    const input = el("input", { type: "range", min: low, max: high, step, value: untracked(() => sampling())[name], "data-sampling": name, "aria-label": say(name), oninput: () => sampling.set({ ...sampling.peek(), [name]: Number(input.value) }) });
    effect(() => { const value = String(sampling()[name]); if (input.value !== value) input.value = value; });
    return el("label", { class: "slider" }, el("span", {}, say(name)), input, el("output", {}, () => shown(sampling()[name])));
  };
  return el("div", { class: "sliders" },
    slider("temperature", 0, 2, 0.05, (x) => (x === 0 ? say("greedy") : x.toFixed(2))), slider("topK", 0, 50, 1, (x) => (x === 0 ? say("all") : String(x))), slider("topP", 0.05, 1, 0.01, (x) => (x >= 1 ? say("all") : x.toFixed(2))),
    el("button", { type: "button", class: "small-button", onclick: () => sampling.set({ ...sampling.peek(), temperature: sampling.peek().temperature || 0.8, seed: sampling.peek().seed + 1 }) }, say("draw")));
}

function controls(): Child {
  const facts = () => {
    const model = modelNow();
    return model?.error ? el("p", { class: "fine" }, say("cannot")(model.error)) : model?.facts ? el("p", { class: "fine" }, say("about")({ ...model.facts, parameters: millions(model.facts.parameters) })) : "";
  };
  return el("details", { class: "folded", ontoggle: refreshModels }, el("summary", {}, () => say("more")(modelNow()?.name ?? "")), el("div", { class: "controls" },
    el("label", { class: "picker" }, el("span", {}, say("model")), () => el("select", { id: "model", "aria-label": say("model"), onchange: (event: Event) => chooseModel((event.target as HTMLSelectElement).value) },
      models().map((one) => el("option", { value: one.name, selected: one === modelNow() }, one.name)))),
    facts, () => (can("next") ? samplingSliders() : "")));
}
