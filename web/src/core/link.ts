// An address that names what is not here: said plainly, with a way back.
import { live } from "./api";
import { el, type Child } from "./dom";
import { list } from "./format";
import { models, unknownCut } from "./looking";
import { report } from "./report";
import { effect, signal, untracked } from "./signal";
import * as store from "./store";
import { words } from "./words";

const say = words({
  en: {
    title: "This link is from another time:", bytes: "it holds bytes that are no text", door: (x: string) => `there is no view “${x}”`, model: (x: string) => `there is no model “${x}” here`,
    head: (x: string) => `this model has no head ${x}`, cut: (x: string) => `${x} cannot be cut here`, token: (x: number, n: number) => `it selects token ${x}, but this text has ${n}`,
    rest: "The rest is shown as far as it can be.", afresh: "Start afresh", close: "Close",
  },
  zh: {
    title: "这个链接已经过时：", bytes: "里面有不成文字的字节", door: (x: string) => `没有“${x}”这个视图`, model: (x: string) => `这里没有模型“${x}”`,
    head: (x: string) => `这个模型没有 ${x} 这个头`, cut: (x: string) => `这里去不掉 ${x}`, token: (x: number, n: number) => `它选了第 ${x} 个词元，这段文字只有 ${n} 个`,
    rest: "其余能显示的照样显示。", afresh: "从头开始", close: "关闭",
  },
});

type Problem = () => string;
const problems = signal<Problem[]>([]);
const add = (problem: Problem): void => problems.set([...problems.peek(), problem]);

// Looks once at each address that is opened, when what it names can be judged; later changes are the reader's own.
export function watchLinks(known: readonly { id: string }[]): void {
  effect(() => {
    if (!store.linked()) return;
    problems.set([]);
    if (store.damaged.peek()) add(() => say("bytes"));
    const door = store.door.peek();
    if (door && !known.some((one) => one.id === door)) {
      add(() => say("door")(door));
      store.door.set("");
    }
  });
  let judgedModel = 0, judgedReport = 0;
  effect(() => {
    const opened = store.linked();
    if (!opened || judgedModel === opened || !models().length) return;
    judgedModel = opened;
    const model = store.model.peek();
    if (!model || models().some((one) => one.name === model)) return;
    add(() => say("model")(model));
    store.model.set("");
  });
  effect(() => {
    const opened = store.linked(), { tokens, heads, model, title } = report();
    if (!opened || judgedReport === opened || !list(tokens).length || (live() && judgedModel !== opened)) return;
    if (live() && untracked(() => (store.text() !== null && store.text() !== title) || (store.model() && store.model() !== model))) return;  // of another text
    judgedReport = opened;
    untracked(() => judge(list(tokens).length, list(heads).map((one) => one.name)));
  });
  effect(() => { const names = unknownCut(); if (names) add(() => say("cut")(names)); });
}

function judge(tokens: number, heads: readonly string[]): void {
  const token = store.token(), head = store.head();
  if (token !== null && (token < 0 || token >= tokens)) {
    add(() => say("token")(token, tokens));
    store.token.set(null);
  }
  if (head && heads.length && !heads.includes(head)) {
    add(() => say("head")(head));
    store.head.set("");
    store.locked.set(false);
  }
}

export function linkNote(): Child {
  if (!problems().length) return null;
  const button = (text: string, go: () => void) => el("button", { type: "button", class: "small-button", onclick: go }, text);
  return el("div", { class: "failure link", role: "alert" },
    el("p", {}, el("b", {}, say("title")), ` ${problems().map((problem) => problem()).join(store.lang() === "zh" ? "；" : "; ")}${store.lang() === "zh" ? "。" : ". "}`, say("rest")),
    button(say("afresh"), () => { location.hash = "#/"; problems.set([]); }), button(say("close"), () => problems.set([])));
}
