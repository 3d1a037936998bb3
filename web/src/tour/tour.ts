// A guided tour of 90 seconds. It moves the page's own state, so every step shows the reader's own text and numbers.
import { el, type Child } from "../core/dom";
import { known, layerName, list, percent, roleName, tokenName, visible, wordOf } from "../core/format";
import { modelNow } from "../core/looking";
import { report } from "../core/report";
import { effect, onCleanup, signal, untracked } from "../core/signal";
import * as store from "../core/store";
import { stage } from "../doors/story";
import { calm, chosenToken } from "../parts/ladder";
import { strongestRole } from "../parts/maps";
import { tellingHead, type Telling } from "../parts/wall";
import { say, type TourFacts, type TourStep } from "./words";

interface Step { name: TourStep; door: "" | "story"; stage?: string; target: string }
const steps: Step[] = [
  { name: "tokens", door: "", target: ".ask-tokens" }, { name: "vector", door: "story", stage: "embed", target: ".story-stage" }, { name: "qkv", door: "story", stage: "q", target: ".story-stage" },
  { name: "match", door: "story", stage: "softmax", target: ".story-stage" }, { name: "heads", door: "", target: ".walls" }, { name: "output", door: "story", stage: "o", target: ".story-stage" },
  { name: "ladder", door: "", target: ".ladder-card" }, { name: "next", door: "", target: ".ask-side" }, { name: "cut", door: "", target: ".map-name" }, { name: "thoughts", door: "", target: ".answer-box" },
];
const seconds = 90 / steps.length;

const at = signal(-1);  // -1: no tour
const playing = signal(true);
export const touring = (): boolean => at() >= 0;
export const tourReady = (): boolean => Boolean(modelNow()?.facts.layers && report().story && list(report().tokens).length);
export function startTour(): void {
  playing.set(!calm.matches);
  at.set(0);
}
function endTour(): void {
  at.set(-1);
  store.door.set("");
}
export function tourStep(by: number): void {
  const next = at.peek() + by;
  if (next >= steps.length) endTour();
  else at.set(Math.max(next, 0));
}

const noHead: Telling = { name: "L0H0", layer: 0, key: 0, share: 0 };

function facts(): TourFacts {
  const tokens = list(report().tokens), ladder = report().ladder, model = modelNow()!.facts, t = report().story?.token ?? tokens.length - 1, telling = tellingHead() ?? noHead;
  const head = list(report().heads).find((one) => one.name === telling.name), role = head ? strongestRole(head) : null;
  const roles = list(report().heads).flatMap((one) => { const found = strongestRole(one); return found ? [`${one.name}: ${roleName(found.name)}`] : []; });
  const guessAt = (level: number) => list(list(ladder?.guesses.at(level))[tokens.length - 1])[0];
  const settled = list(ladder?.settled)[tokens.length - 1];
  return {
    tokens: tokens.length, token: tokenName(tokens, t), id: String(tokens[t]?.id ?? "?"), width: model.width, headWidth: model.head_width, layers: model.layers, heads: model.heads, head: telling.name, key: wordOf(tokens, telling.key), share: percent(telling.share),
    role: [...(role && head ? [`${head.name}: ${roleName(role.name)}`] : []), ...roles].filter((line, i, all) => all.indexOf(line) === i).slice(0, 3).join(store.lang() === "zh" ? "；" : "; "),
    settled: layerName(list(ladder?.layers)[known(settled) ? settled : list(ladder?.layers).length - 1] ?? "out"), first: visible(guessAt(0)?.text), guess: visible(guessAt(-1)?.text), p: percent(guessAt(-1)?.p), vocabulary: model.vocabulary,
  };
}

function goTo(step: Step): void {
  const telling = tellingHead() ?? noHead;
  store.door.set(step.door);
  store.token.set(report().story?.token ?? chosenToken(list(report().tokens).length));
  if (step.door) {
    store.layer.set(step.name === "vector" ? 0 : telling.layer);
    stage.set(step.stage ?? "");
  }
  if (step.name !== "tokens") { store.head.set(telling.name); store.locked.set(true); }
}

// Lights the target of a step as soon as it is there, and again where it was drawn anew.
function light(selector: string): void {
  let lit: HTMLElement | null = null;
  const look = () => {
    const node = document.querySelector<HTMLElement>(selector);
    if (!node || node === lit) return;
    if (!lit) node.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: node.clientHeight > innerHeight * 0.55 ? "start" : "center" });
    node.classList.add("tour-target");
    lit = node;
  };
  const timer = setInterval(look, 100);
  onCleanup(() => { clearInterval(timer); document.querySelectorAll(".tour-target").forEach((one) => one.classList.remove("tour-target")); });
}

export function tourCard(): Child {
  const index = at();
  if (index < 0 || !untracked(tourReady)) return null;
  const step = steps[index], [title, text] = say("steps")[step.name];
  untracked(() => goTo(step));
  effect(() => light(step.target));
  effect(() => {
    if (!playing()) return;
    const timer = setTimeout(() => tourStep(1), seconds * 1000);
    onCleanup(() => clearTimeout(timer));
  });
  const button = (name: string, words: Child, go: () => void, main = false) => el("button", { type: "button", "data-tour": name, class: main ? "step-button main" : "step-button", onclick: go }, words);
  return el("aside", { class: "tour", role: "dialog", "aria-label": say("name"), "data-step": step.name },
    el("div", { class: () => (playing() ? "tour-time going" : "tour-time"), "aria-hidden": "true" }, el("i", { style: { animationDuration: `${seconds}s` } })),
    el("p", { class: "fine" }, say("stepOf")(index + 1, steps.length)),
    el("div", { "aria-live": "polite" }, el("h2", {}, title as string), el("p", {}, untracked(() => (text as (d: TourFacts) => string)(facts())))),
    el("div", { class: "tour-foot" }, index ? button("back", `← ${say("back")}`, () => tourStep(-1)) : null, button("next", index + 1 < steps.length ? `${say("next")} →` : say("skip"), () => tourStep(1), true),
      button("pause", () => say(playing() ? "pause" : "play"), () => playing.set(!playing.peek())), index + 1 < steps.length ? button("skip", say("skip"), endTour) : null));
}

export const tourButton = (): Child => el("button", { type: "button", class: "lang tour-button", onclick: startTour }, say("start"));
// Keys while the tour runs: true if one was used.
export function tourKey(key: string): boolean {
  if (at.peek() < 0) return false;
  if (key === "Escape") endTour();
  else if (key === " " || key === "ArrowRight") tourStep(1);
  else if (key === "ArrowLeft") tourStep(-1);
  else return false;
  return true;
}
