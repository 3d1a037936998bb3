// Thinking aloud: the same sum answered at once and by steps.
import { ask, Failure, live } from "../core/api";
import { canvas } from "../core/canvas";
import { ink, series } from "../core/colour";
import { el, type Child } from "../core/dom";
import { failureNote } from "../core/failure";
import { list, percent } from "../core/format";
import type { Model } from "../core/looking";
import { axes, frameOf } from "../core/plot";
import { section } from "../core/section";
import { computed, effect, onCleanup, signal, untracked } from "../core/signal";
import * as store from "../core/store";
import { words } from "../core/words";
import type { Door } from "./door";
import { asking, doorModel, fitting, modelPicker, needs, waits } from "./kit";

const say = words({
  en: {
    name: "Thinking aloud", title: "The same sum, at once and by steps", lead: "A model that must answer at once has one pass per token to find the whole answer. One that writes its steps can read them again: every step is small. The tokens it writes are its working memory.",
    first: "First number", second: "Second number", operation: "Operation", atOnce: "At once", bySteps: "By steps", right: "right", wrong: "wrong", no: "no answer", should: (n: number) => `The answer is ${n}.`, tokens: (n: number) => `${n} tokens, ${n} passes`,
    manyTitle: "By number of digits", manyLead: "Eight sums for each length of the first number, each asked both ways.", run: "Ask 32 sums", running: (i: number, n: number) => `${i} of ${n} lengths`, digits: "digits", share: "right answers", sum: "sum", answer: "answer", wanted: "wanted", again: "Ask 32 others", not: "This model was not taught sums, or not in this language: both ways fail alike.",
    explain: (d: { a: number; b: number; right: boolean; steps: string }) => [`At once it wrote ${d.a} tokens; with steps ${d.b}. A pass has a fixed number of layers, so it can only do a fixed amount of work: what does not fit into one pass must be written down and read again.`, d.steps ? `Its steps: ${d.steps}` : "", "The steps can be followed, but they are what the model learned to write; that they are the way it found the answer is a separate question."],
  },
  zh: {
    name: "边写边想", title: "同一道题：直接回答与分步写", lead: "必须直接回答的模型，每写一个词元只有一次计算，就要得出整个答案。把步骤写下来的模型可以再读一遍：每一步都很小。写出来的词元就是它的草稿纸。",
    first: "第一个数", second: "第二个数", operation: "运算", atOnce: "直接回答", bySteps: "一步一步", right: "对", wrong: "错", no: "没有答案", should: (n: number) => `正确答案是 ${n}。`, tokens: (n: number) => `${n} 个词元，${n} 次计算`,
    manyTitle: "按位数统计", manyLead: "第一个数每种位数各八道题，每道题都用两种方式问。", run: "问 32 道题", running: (i: number, n: number) => `第 ${i} 种位数，共 ${n} 种`, digits: "位数", share: "答对的比例", sum: "题目", answer: "回答", wanted: "正确答案", again: "再换 32 道", not: "这个模型没有学过算术，或者没有用这种语言学：两种方式都不行。",
    explain: (d: { a: number; b: number; right: boolean; steps: string }) => [`直接回答写了 ${d.a} 个词元，分步写了 ${d.b} 个。一次计算的层数是固定的，能做的事也是固定的：一次放不下的，就得写下来再读。`, d.steps ? `它的步骤：${d.steps}` : "", "步骤看得懂，但那是模型学会写的东西；它是不是真的这样得出答案，是另一个问题。"],
  },
});

interface Way { prompt: string; text: string; tokens: number; right: boolean; answer: number | null }
interface Sum { sum: string; result: number; at_once: Way; by_steps: Way }
interface Answer { sums: Sum[] }

const kept = store.keep("sum", signal(""));  // "568×5"
const signs = ["×", "+", "-", "÷"];
const parsed = (): { p: number; q: number; operation: string } => {
  const found = /^(\d{1,5})([+\-×÷])(\d{1,5})$/.exec(kept());
  return found ? { p: Number(found[1]), operation: found[2], q: Number(found[3]) } : { p: 168, q: 4, operation: "×" };
};
// Nobody chose a sum: the first of some that shows what steps are for, right with them and wrong without.
const drawn = { digits: 3, count: 16, operation: "×", seed: 1 };
const telling = (sums: readonly Sum[]): Sum | undefined => sums.find((one) => one.by_steps.right && !one.at_once.right) ?? sums.find((one) => one.by_steps.right) ?? sums[0];
const teaches = (model: Model): boolean => model.can.includes("write") && !model.can.includes("translate");
const lengths = [1, 2, 3, 4];

export const sumsDoor: Door = { id: "sums", name: () => say("name"), here: live, show: () => needs("next", say("title"), say("lead"), open) };

function open(): Child {
  const model = computed(() => doorModel("next", teaches));
  const one = asking<Answer>("/page/sums", () => (model() ? { model: model()!.name, language: store.lang(), ...(kept() ? parsed() : drawn) } : null), { delay: 250 });
  const now = () => { const [p, operation, q] = kept() ? [] : (sum()?.sum ?? "").split(/\s*([+\-×÷])\s*/); return operation ? { p: Number(p), operation, q: Number(q) } : parsed(); };
  const set = (part: Partial<ReturnType<typeof parsed>>) => { const next = { ...untracked(now), ...part }; kept.set(`${next.p}${next.operation}${next.q}`); };
  const number = (name: "p" | "q", label: string) => el("label", { class: "picker" }, el("span", {}, label), el("input", { type: "number", min: 0, max: 99999, value: () => now()[name], class: "sum-number", oninput: (event: Event) => set({ [name]: Math.min(Math.max(Math.round(Number((event.target as HTMLInputElement).value)) || 0, 0), 99999) }) }));
  const sum = () => telling(list(one.value()?.sums));
  return [
    section({
      id: "sums", title: say("title"), lead: say("lead"),
      figure: el("div", { class: "card" },
        el("div", { class: "picks" }, () => (fitting("next", teaches).length > 1 ? modelPicker(() => fitting("next", teaches), model) : ""), number("p", say("first")),
          el("label", { class: "picker" }, el("span", {}, say("operation")), () => el("select", { onchange: (event: Event) => set({ operation: (event.target as HTMLSelectElement).value }) }, signs.map((sign) => el("option", { value: sign, selected: sign === now().operation }, sign)))), number("q", say("second"))),
        one.note, () => (sum() ? [el("div", { class: "ways" }, way(sum()!.at_once, say("atOnce")), way(sum()!.by_steps, say("bySteps"))), el("p", { class: "fine" }, say("should")(sum()!.result))] : one.failed() ? null : waits())),
      explain: () => (sum() ? say("explain")({ a: sum()!.at_once.tokens, b: sum()!.by_steps.tokens, right: sum()!.by_steps.right, steps: sum()!.by_steps.right ? sum()!.by_steps.text.trim() : "" }) : []),
    }),
    many(model),
  ];
}

function way(one: Way, title: string): HTMLElement {
  const state = one.answer === null ? "no" : one.right ? "right" : "wrong";
  return el("article", { class: `way ${state}` }, el("header", {}, el("h3", {}, title), el("span", { class: `verdict ${state}` }, state === "right" ? "✓ " : "✗ ", say(state), one.answer !== null ? ` · ${one.answer}` : "")),
    el("p", { class: "way-text" }, el("span", { class: "prompt" }, one.prompt), el("span", { class: "answer" }, one.text)), el("p", { class: "fine" }, say("tokens")(one.tokens)));
}

// Eight sums of each length, one length after the other, so that the picture grows.
function many(model: () => Model | undefined): Child {
  const done = signal<Map<number, Sum[]>>(new Map()), running = signal(0), failed = signal<Failure | null>(null), seed = signal(0);
  let abort = new AbortController();
  const count = async () => {
    abort.abort();
    abort = new AbortController();
    const { signal: mine } = abort;
    done.set(new Map());
    failed.set(null);
    seed.set(seed.peek() + 1);
    try {
      for (const digits of lengths) {
        running.set(digits);
        const { operation } = parsed();
        const got = await ask<Answer>("/page/sums", { model: model()?.name, language: store.lang.peek(), digits, count: 8, operation, seed: seed.peek() }, mine);
        done.set(new Map(done.peek()).set(digits, got.sums));
      }
    } catch (why) {
      if (why instanceof Failure) failed.set(why);
    }
    if (!mine.aborted) running.set(0);
  };
  onCleanup(() => abort.abort());
  const share = (digits: number, way: "at_once" | "by_steps"): number | null => { const sums = done().get(digits); return sums ? sums.filter((one) => one[way].right).length / sums.length : null; };
  const picture = canvas(say("manyTitle"), () => 240, (context, width, height) => {
    const g = frameOf(width, height, lengths.length, 0, 1, 12), wide = (g.right - g.left) / lengths.length;
    axes(context, g, 0, 1, 0);
    context.textAlign = "center";
    lengths.forEach((digits, i) => {
      (["at_once", "by_steps"] as const).forEach((way, n) => {
        const value = share(digits, way);
        if (value === null) return;
        context.fillStyle = n === 0 ? series.heldOut : series.training;
        const x = g.x(i) + wide * (0.2 + 0.32 * n), top = Math.min(g.y(value), g.bottom - 2);
        context.fillRect(x, top, wide * 0.28, g.bottom - top);
        context.fillStyle = ink.soft;
        context.fillText(percent(value), x + wide * 0.14, top - 8);
      });
      context.fillStyle = ink.soft;
      context.fillText(`${digits} ${say("digits")}`, g.x(i + 0.5), g.bottom + 13);
    });
  });
  effect(() => { done(); picture.paint(); });
  const sums = () => [...done().values()].flat();
  return section({
    id: "many-sums", title: say("manyTitle"), lead: say("manyLead"),
    figure: el("div", { class: "card" },
      el("div", { class: "picks" }, el("button", { type: "button", class: "step-button main count", disabled: () => running() > 0, onclick: () => { void count(); } }, () => say(done().size && !running() ? "again" : "run")), () => (running() ? el("span", { class: "fine" }, say("running")(running(), lengths.length)) : "")),
      () => (failed() ? failureNote(failed()!, () => { void count(); }) : ""), () => (done().size ? [picture.holder, el("p", { class: "legend dots" }, el("span", {}, el("i", { style: { background: series.heldOut } }), say("atOnce")), el("span", {}, el("i", { style: { background: series.training } }), say("bySteps"))),
        !running() && !sums().some((one) => one.at_once.right || one.by_steps.right) ? el("p", { class: "fine" }, say("not")) : null] : null)),
    numbers: () => ({ columns: [say("digits"), say("sum"), say("wanted"), say("atOnce"), "", say("bySteps"), ""], rows: [...done()].flatMap(([digits, all]) => list(all).map((one) => [digits, one.sum, one.result, one.at_once.answer, say(one.at_once.right ? "right" : "wrong"), one.by_steps.answer, say(one.by_steps.right ? "right" : "wrong")])) }),
  });
}
