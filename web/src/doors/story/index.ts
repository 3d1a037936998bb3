// The story of one token: step by step, every number with its formula.
import { live } from "../../core/api";
import { el, type Child } from "../../core/dom";
import { failureNote } from "../../core/failure";
import { clamp, list, tokenName } from "../../core/format";
import { askLater, can, modelNow, subject, textNow } from "../../core/looking";
import { blocks, pinned, pointed, type Made } from "../../core/matrix";
import { shownNumber } from "../../core/formula";
import { report } from "../../core/report";
import { section, table } from "../../core/section";
import { effect, signal, untracked } from "../../core/signal";
import { offerStep } from "../../core/steps";
import * as store from "../../core/store";
import type { Failure } from "../../core/api";
import { chips, chipsOf } from "../../parts/chips";
import { chosenToken } from "../../parts/ladder";
import type { Door } from "../door";
import { blockPicture } from "./picture";
import { updateOf, type Numbers } from "./data";
import { stagesOf, type Stage } from "./stages";
import { say } from "./words";

const numbers = signal<Numbers | null>(null);
const failed = signal<Failure | null>(null);
export const stage = store.keep("stage", signal(""));  // its name, or its place

const headIndex = (): { layer: number; head: number } => {
  const found = /^L(\d+)H(\d+)$/.exec(store.head()), layers = modelNow()?.facts.layers ?? 1, heads = modelNow()?.facts.heads ?? 1;
  return { layer: clamp(store.layer() ?? Number(found?.[1] ?? 0), 0, layers - 1), head: clamp(Number(found?.[2] ?? 0), 0, heads - 1) };
};
const choose = (layer: number, head: number): void => { store.layer.set(layer); store.head.set(`L${layer}H${head}`); store.locked.set(true); };

export const storyDoor: Door = {
  id: "story",
  name: () => say("name"),
  here: () => live() && can("story"),
  show() {
    const token = () => chosenToken(list(report().tokens).length);
    effect(() => {
      if (modelNow()?.name !== report().model || textNow() !== report().title) return;  // its tokens are still to come
      const { layer, head } = headIndex();
      askLater<Numbers>(60, "/page/story", { ...subject(), token: token(), layer, head }, (next) => { numbers.set(next); failed.set(null); }, (why) => failed.set(why));
    });
    const update = () => (numbers()!.layer === 0 && modelNow()?.kind === "decoder-only" && !subject().cut ? updateOf({ ...(store.model() ? { model: store.model() } : {}), text: textNow(), token: numbers()!.token }) : null);
    const stages = () => (numbers() ? stagesOf({ numbers: numbers()!, tokens: list(report().tokens), model: store.model() || undefined, update: update() }) : []);
    return [() => (failed() ? failureNote(failed()!, () => failed.set(null)) : ""), () => section({
      id: "numbers", title: say("title")(tokenName(list(report().tokens), token())), lead: say("lead"),
      figure: el("div", { class: "card story-door" }, pickers(token), () => (numbers() ? body(stages) : el("p", { class: "fine" }, say("wait")))),
    })];
  },
};

function pickers(token: () => number): Child {
  const row = chips(list(report().tokens), { onPick: (t) => store.token.set(t) });
  row.classList.add("strip");
  effect(() => { const chosen = token(); chipsOf(row).forEach((node, t) => node.classList.toggle("chosen", t === chosen)); });
  const facts = () => modelNow()?.facts;
  const select = (label: string, count: () => number, value: () => number, set: (x: number) => void) => el("label", { class: "picker" }, el("span", {}, label), () => el("select", {
    onchange: (event: Event) => set(Number((event.target as HTMLSelectElement).value)) }, Array.from({ length: count() }, (_, i) => el("option", { value: i, selected: i === value() }, String(i)))));
  return el("div", { class: "story-pick" }, row,
    el("div", { class: "picks" }, select(say("chooseLayer"), () => facts()?.layers ?? 1, () => headIndex().layer, (layer) => choose(layer, headIndex().head)),
      select(say("chooseHead"), () => facts()?.heads ?? 1, () => headIndex().head, (head) => choose(headIndex().layer, head))));
}

function body(stages: () => Stage[]): Child {
  const names = stages().map((stage) => stage.name);
  const index = () => Math.max(names.findIndex((name, i) => String(i) === stage() || name === stage()), 0);
  const go = (i: number) => { stage.set(names[clamp(i, 0, names.length - 1)]); pinned.set(null); pointed.set(null); };
  const layers = modelNow()?.facts.layers ?? 1;
  const forward = () => {
    if (index() + 1 < names.length) return go(index() + 1);
    const { layer, head } = headIndex();
    if (layer + 1 < layers) { choose(layer + 1, head); go(0); }
  };
  offerStep(() => untracked(forward));
  const track = el("ol", { class: "track" }, names.map((name, i) => el("li", { class: () => (i === index() ? "now" : i < index() ? "done" : "") },
    el("button", { type: "button", "data-stage": name, "aria-current": () => (i === index() ? "step" : null), onclick: () => go(i) }, say("stages")[name]))));
  const made = el("div", { class: "story-steps", tabindex: "0", role: "group", "aria-label": say("name") }, track,
    el("div", { class: "story-foot" }, el("button", { type: "button", class: "step-button", disabled: () => index() === 0, onclick: () => go(index() - 1) }, `← ${say("previous")}`),
      el("button", { type: "button", class: "step-button main", disabled: () => index() + 1 >= names.length && headIndex().layer + 1 >= layers, onclick: forward }, `${say("next")} →`)),
    el("div", { class: "story-split" }, () => blockPicture(names[index()], (name) => go(names.indexOf(name)), names), el("div", { class: "story-stage" }, () => stageView(stages()[index()]))));
  made.addEventListener("keydown", (event) => {
    const onButton = (event.target as Element).tagName === "BUTTON";
    if (event.key === "ArrowRight" || (event.key === " " && !onButton)) forward();
    else if (event.key === "ArrowLeft") go(index() - 1);
    else return;
    event.preventDefault();
  });
  return made;
}

function stageView(stage: Stage | undefined): Child {
  if (!stage) return null;
  const drawn = blocks(stage.blocks);
  const explained = stage.blocks.some((one) => typeof one !== "string" && one.id === pinned.peek()?.block && one.made);  // it may be of another stage
  if (!explained) pinned.set(stage.start);
  const check = numbers.peek()?.checks?.[stage.name === "scores" || stage.name === "softmax" ? "z" : stage.name === "o" ? "out" : stage.name];
  return [el("p", { class: "story-text" }, stage.text), stage.large ? el("p", { class: "fine" }, say("tooLarge")) : null, drawn.node, stage.extra?.(),
    stage.name === "sample" ? null : el("div", { class: "how", "aria-live": "polite" }, el("h3", {}, say("how")), () => {
      const found = drawn.made();
      return found ? [el("div", { class: "formula", tabindex: "0", role: "group", "aria-label": say("how") }, found.made.formula), termsTable(found.made)] : el("p", { class: "fine" }, say("pick"));
    }),
    typeof check === "number" ? el("p", { class: "fine" }, say("check")(shownNumber(check))) : null];
}

function termsTable(made: Made): Child {
  const { terms } = made;
  if (!terms) return null;
  return el("details", { class: "folded" }, el("summary", {}, say("terms")), table("products", {
    columns: ["i", terms.names[0], terms.names[1], "×"], rows: terms.a.map((a, i) => [i, a, terms.b[i], a * terms.b[i]]) }));
}
