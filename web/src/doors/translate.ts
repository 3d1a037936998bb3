// Translate: encoder, decoder and cross-attention as lines between two sentences, and the reference beside what the
// model writes by itself.
import { live } from "../core/api";
import { el, type Child } from "../core/dom";
import { clamp, list, num, percent, visible } from "../core/format";
import { fitting, asking, doorModel, modelPicker, needs, pickModel, textBox, waits } from "./kit";
import type { Head, Report, Token } from "../core/report";
import { section } from "../core/section";
import { computed, signal } from "../core/signal";
import { examplesOf, type Model } from "../core/looking";
import * as store from "../core/store";
import { guessBars, tip } from "../core/tip";
import { words } from "../core/words";
import { hasPieces } from "../core/word_spans";
import { chips, chipsOf } from "../parts/chips";
import { byWords, byWordsBox } from "../parts/sheet";
import { linesBetween, meanWeights, wordsOf, type Shown } from "./translate_lines";
import type { Door } from "./door";

const say = words({
  en: {
    name: "Translate", title: "Two sentences, and the lines between them", lead: "The encoder reads the whole source at once. The decoder writes token by token, and each token looks back at the source. Point at a word on either side.",
    source: "Sentence to translate", reference: "A translation of your own, to compare (optional)", own: "its own translation", given: "your reference", show: "Show", free: "The model writes", layer: "Layer", head: "Head", mean: "mean of all",
    start: "(start)", encoder: "encoder: source to source", decoder: "decoder: target to target", cross: "cross: target to source", hint: "Lines are attention; thicker is more. Without pointing, each token’s strongest line is shown.", tries: "Try",
    forcedTitle: "Teacher forcing against free running", forcedLead: "Teacher forcing: at every place the model reads your reference so far and is asked for its next token. Free running: it reads what it wrote itself, so one wrong word changes all that follow.",
    forced: "Reference, read token by token", freely: "Written freely", needsReference: "Write a reference above to see how likely the model finds it.", surer: "The deeper a token, the likelier the model found it.",
    total: (nats: string, n: number, per: string) => `−log p = ${nats} nats over ${n} tokens, ${per} per token`, parts: (word: string, other: string) => `They part at “${word}”: the model writes “${other}” there.`, same: "Both are the same.", likelier: "The model finds its own text likelier, as it should: it chose every token by that.", other: "The model finds the reference likelier than its own text: choosing the best token each time does not give the best sentence.",
    token: "token", p: "p", guess: "the model’s guess", text: "text", empty: "Write a sentence to translate.",
    explain: (d: { layer: string; word: string; best: string; p: string }) => [`Cross-attention: the query comes from the decoder, keys and values from the encoder’s output. For “${d.word}” in ${d.layer} the largest share, ${d.p}, is on “${d.best}”.`, "A token’s line is drawn from the row that predicts it: the one before it. The last layer but one aligns best, so it is shown first."],
  },
  zh: {
    name: "翻译", title: "两句话，和它们之间的连线", lead: "编码器一次读完原文。解码器一个词元一个词元地写，每写一个都回头看原文。指向任何一边的词。",
    source: "要翻译的句子", reference: "自己的译文，用来对照（可不填）", own: "模型的译文", given: "自己的译文", show: "显示", free: "模型写出", layer: "层", head: "头", mean: "全部取平均",
    start: "（开始）", encoder: "编码器：原文看原文", decoder: "解码器：译文看译文", cross: "交叉：译文看原文", hint: "线表示注意力，越粗越多。没有指向时，显示每个词元最强的一条。", tries: "试试",
    forcedTitle: "教师强制与自由生成", forcedLead: "教师强制：每一步都让模型读参考译文的前半部分，再问下一个词元。自由生成：它读的是自己写的，所以错一个词，后面都会变。",
    forced: "逐个读参考译文", freely: "自由写出", needsReference: "在上面写一句参考译文，看模型觉得它有多可能。", surer: "颜色越深，模型觉得越可能。",
    total: (nats: string, n: number, per: string) => `${n} 个词元的 −log p 共 ${nats} 纳特，平均每个 ${per}`, parts: (word: string, other: string) => `从“${word}”开始不同：模型在那里写的是“${other}”。`, same: "两者相同。", likelier: "模型觉得自己写的更可能：每个词元本来就是这样选的。", other: "模型觉得参考译文比自己写的更可能：每次都选最可能的词元，得到的未必是最可能的句子。",
    token: "词元", p: "概率", guess: "模型的猜测", text: "文本", empty: "写一句要翻译的话。",
    explain: (d: { layer: string; word: string; best: string; p: string }) => [`交叉注意力：查询来自解码器，键和值来自编码器的输出。写“${d.word}”时，${d.layer} 最大的一份（${d.p}）落在“${d.best}”上。`, "一个词元的线，是预测它的那一行（它前面一行）的注意力。倒数第二层对得最准，所以先显示它。"],
  },
});

interface Written { text: string; tokens: Token[]; finish: string }
const source = store.keep("from", signal("")), reference = store.keep("reference", signal(""));
const shownText = store.keep("shown", signal("")), layerAt = store.keep("xlayer", signal("")), headAt = store.keep("xhead", signal(""));
const stacks = signal({ encoder: false, decoder: false, cross: true });
const examples = ["Anna gives the clock to Tom.", "安娜把红色的风筝送给了汤姆。", "Tom went to the library on Monday.", "Oslo is the capital of Norway."];

export const translateDoor: Door = { id: "translate", name: () => say("name"), here: live, show: () => needs("translate", say("title"), say("lead"), open) };

// What it writes is read again as a target, perhaps with more tokens: it must fit.
const longest = ({ facts }: Model): number => (facts.context > 0 ? clamp(Math.floor(facts.context / 4), 1, 96) : 96);

function open(): Child {
  const model = computed(() => doorModel("translate")), text = () => (source() || (examplesOf(model(), store.lang() === "zh")[0] ?? "")).trim();
  const ask = () => (model() && text() ? { model: model()!.name, text: text() } : null);
  const free = asking<Written>("/page/write", () => (ask() ? { ...ask()!, max_tokens: longest(model()!) } : null), { delay: 250 });
  const ownLook = asking<Report>("/page/look", () => (ask() && free.value()?.text.trim() ? { ...ask()!, target: free.value()!.text.trim() } : null));
  const givenLook = asking<Report>("/page/look", () => (ask() && reference().trim() ? { ...ask()!, target: reference().trim() } : null), { delay: 250 });
  const given = () => (reference().trim() ? givenLook.value() : null);
  const look = () => (shownText() === "reference" && given() ? given() : ownLook.value());
  return [
    section({
      id: "translate", title: say("title"), lead: say("lead"), explain: () => explained(look()),
      figure: el("div", { class: "card translate" },
        el("div", { class: "pair" }, textBox(text, source.set, say("source")), textBox(reference, reference.set, say("reference"))),
        el("p", { class: "tries" }, say("tries"), examples.map((one) => el("button", { type: "button", class: "try", onclick: () => { source.set(one); reference.set(""); } }, one)),
          () => (fitting("translate").length > 1 ? modelPicker(() => fitting("translate"), model, pickModel) : "")),
        free.note, ownLook.note, givenLook.note,
        () => (!text() ? el("p", { class: "fine" }, say("empty")) : ""),
        el("p", { class: "kicker" }, say("free")), el("p", { class: "written-line" }, () => free.value()?.text.trim() ?? "…"),
        () => (look() ? [controls(look()!, Boolean(given())), linesBetween(shownOf(look()!))] : ownLook.failed() || free.failed() ? null : waits()),
        el("p", { class: "hint" }, say("hint"))),
      numbers: () => tableOf(look()),
    }),
    forcing(ownLook.value, given),
  ];
}

const crossHeads = (look: Report): Head[] => list(look.heads).filter((head) => head.stack === "cross");
const layersOf = (look: Report): number => Math.max(0, ...crossHeads(look).map((head) => head.layer)) + 1;
// Nobody chose a layer: the one whose heads are surest where to look.
const clearest = (look: Report): number => {
  const entropy = (layer: number) => { const own = crossHeads(look).filter((head) => head.layer === layer); return own.reduce((sum, head) => sum + (head.entropy ?? 9), 0) / Math.max(own.length, 1); };
  return Array.from({ length: layersOf(look) }, (_, i) => i).reduce((best, layer) => (entropy(layer) < entropy(best) ? layer : best), 0);
};
const layerNow = (look: Report): number => (layerAt() === "" ? clearest(look) : clamp(Number(layerAt()) || 0, 0, layersOf(look) - 1));

function shownOf(look: Report): Shown {
  const layer = layerNow(look), only = headAt() === "" ? null : Number(headAt());
  const of = (stack: string, rows: number, columns: number) => {
    const at = stack === "encoder" ? Math.min(layer, Math.max(0, ...list(look.heads).filter((head) => head.stack === "encoder").map((head) => head.layer))) : layer;
    return stacks()[stack as "cross"] ? meanWeights(list(look.heads).filter((head) => head.stack === stack && head.layer === at && (only === null || head.head === only)), rows, columns) : null;
  };
  // The decoder begins with a token that stands for nothing that was written.
  const tokens = list(look.tokens), from = list(look.source);
  const shown = { source: from, target: tokens, encoder: of("encoder", from.length, from.length), decoder: of("decoder", tokens.length, tokens.length), cross: of("cross", tokens.length, from.length) };
  const words = byWords() ? wordsOf(shown) : shown;
  return { ...words, target: words.target.map((token, i) => (i === 0 && /^<.*>$/.test(token.text) ? { ...token, text: say("start") } : token)) };
}

function controls(look: Report, hasReference: boolean): Child {
  const heads = crossHeads(look).filter((head) => head.layer === 0).length;
  const select = (label: string, value: string, options: [string, string][], set: (value: string) => void) => el("label", { class: "picker" }, el("span", {}, label),
    el("select", { onchange: (event: Event) => set((event.target as HTMLSelectElement).value) }, options.map(([id, name]) => el("option", { value: id, selected: id === value }, name))));
  const check = (stack: "encoder" | "decoder" | "cross") => {
    const box: HTMLInputElement = el("input", { type: "checkbox", checked: stacks.peek()[stack], "data-stack": stack, onchange: () => stacks.set({ ...stacks.peek(), [stack]: box.checked }) });
    return el("label", { class: `check stack-${stack}` }, box, el("i"), say(stack));
  };
  return el("div", { class: "picks" },
    hasReference ? select(say("show"), shownText(), [["", say("own")], ["reference", say("given")]], shownText.set) : null,
    select(say("layer"), String(layerNow(look)), Array.from({ length: layersOf(look) }, (_, i) => [String(i), String(i)]), layerAt.set),
    select(say("head"), headAt(), [["", say("mean")], ...Array.from({ length: heads }, (_, i): [string, string] => [String(i), String(i)])], headAt.set),
    check("cross"), check("encoder"), check("decoder"), hasPieces(list(look.source)) || hasPieces(list(look.tokens)) ? byWordsBox() : null);
}

// --- probabilities -------------------------------------------------------------------------------------------------------

const lossesOf = (look: Report): (number | null)[] => (look.ladder as unknown as { losses?: (number | null)[] })?.losses ?? [];
// Of each token after the first: what the row before it said.
function said(look: Report): { token: Token; p: number | null; guesses: { text: string; p: number }[] }[] {
  const tokens = list(look.tokens), losses = lossesOf(look), top = look.ladder?.guesses.at(-1) ?? [];
  return tokens.slice(1).map((token, i) => ({ token, p: typeof losses[i] === "number" ? Math.exp(-losses[i]!) : null, guesses: list(top[i]).slice(0, 5) }));
}
const natsOf = (look: Report): number => said(look).reduce((sum, one) => sum - Math.log(Math.max(one.p ?? 1, 1e-30)), 0);

function row(look: Report, title: string): Child {
  const all = said(look), nats = natsOf(look);
  const line = chips(all.map((one) => one.token), { sureness: all.map((one) => one.p), right: all.map((one) => one.guesses[0]?.text === one.token.text) });
  line.addEventListener("pointermove", (event) => {
    const node = (event.target as Element).closest<HTMLElement>(".chip");
    if (!node) return tip.hide();
    const one = all[Number(node.dataset.token)];
    tip.show(event.clientX, event.clientY, el("b", {}, `${visible(one.token.text)} ${percent(one.p)}`), guessBars(one.guesses));
  });
  line.addEventListener("pointerleave", () => tip.hide());
  chipsOf(line).forEach((node, i) => node.append(el("small", {}, percent(all[i].p))));
  return el("div", { class: "forced-row" }, el("h3", {}, title), line, el("p", { class: "fine" }, say("total")(num(nats), all.length, num(nats / Math.max(all.length, 1)))));
}

function forcing(own: () => Report | null, given: () => Report | null): Child {
  return section({
    id: "forcing", title: say("forcedTitle"), lead: say("forcedLead"),
    figure: el("div", { class: "card" }, () => {
      const a = own(), b = given();
      if (!a) return waits();
      if (!b) return [row(a, say("freely")), el("p", { class: "fine" }, say("needsReference"))];
      const left = list(b.tokens), right = list(a.tokens), at = left.findIndex((token, i) => token.id !== right[i]?.id);
      const same = at < 0 && left.length === right.length;
      return [row(b, say("forced")), row(a, say("freely")), el("p", { class: "parting" }, same ? say("same") : say("parts")(visible(left[at < 0 ? left.length - 1 : at]?.text), visible(right[at < 0 ? left.length : at]?.text ?? "∎")), " ",
        same ? "" : say(natsOf(a) <= natsOf(b) ? "likelier" : "other")), el("p", { class: "legend" }, say("surer"))];
    }),
    numbers: () => {
      const rows = ([[given(), say("given")], [own(), say("own")]] as [Report | null, string][]).flatMap(([look, name]) => (look ? said(look).map((one) => [name, one.token.text, one.p, one.guesses[0]?.text, one.guesses[0]?.p]) : []));
      return { columns: [say("text"), say("token"), say("p"), say("guess"), say("p")], rows };
    },
  });
}

function explained(look: Report | null): Child[] {
  const shown = look && shownOf(look), cross = shown?.cross;
  if (!look || !shown || !cross) return [];
  const { target: tokens, source: from } = shown, at = Math.min(2, tokens.length - 1);
  const weights = cross[Math.max(at - 1, 0)] ?? [], best = weights.indexOf(Math.max(...weights));
  return say("explain")({ layer: `X${layerNow(look)}`, word: visible(tokens[at]?.text), best: visible(from[best]?.text), p: percent(weights[best]) });
}

function tableOf(look: Report | null) {
  const shown = look && shownOf(look), cross = shown?.cross, from = list(shown?.source), tokens = list(shown?.target);
  return { columns: [say("token"), ...from.map((token) => visible(token.text))], rows: cross ? tokens.slice(1).map((token, i) => [visible(token.text), ...cross[i]]) : [] };
}
