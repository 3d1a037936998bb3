// What doors share: a model that fits, questions that follow signals, a text box, and what to say when no model fits.
import { live, type Failure } from "../core/api";
import { el, type Child } from "../core/dom";
import { failureNote } from "../core/failure";
import { askLater, modelNow, models, type Model } from "../core/looking";
import { section } from "../core/section";
import { effect, signal, type Signal } from "../core/signal";
import * as store from "../core/store";
import { words } from "../core/words";

const say = words({
  en: { model: "Model", wait: "asking the model …", none: (what: string) => `No ${what} is served here. Start one with:`, what: { translate: "translator", experts: "model with experts", next: "model that writes" } },
  zh: { model: "模型", wait: "正在问模型……", none: (what: string) => `这里没有${what}。可以这样启动：`, what: { translate: "翻译模型", experts: "混合专家模型", next: "会写字的模型" } },
});
export type Need = keyof ReturnType<typeof needWords>;
const needWords = () => say("what");

export const fits = (model: Model, need: Need): boolean => Boolean(model.can?.includes(need));
// The models of the server that can do this; those that could not be opened are left out.
export const fitting = (need: Need, more: (model: Model) => boolean = () => true): Model[] => models().filter((one) => fits(one, need) && more(one));

// The model of a door: what is chosen, if it fits; else the first that does.
export function doorModel(need: Need, more?: (model: Model) => boolean): Model | undefined {
  const all = fitting(need, more), now = modelNow();
  return all.find((one) => one.name === now?.name) ?? all[0];
}

export function modelPicker(all: () => Model[], now: () => Model | undefined, choose: (name: string) => void = pickModel, label = say("model")): Child {
  return el("label", { class: "picker" }, el("span", {}, label), () => el("select", { onchange: (event: Event) => choose((event.target as HTMLSelectElement).value) },
    all().map((one) => el("option", { value: one.name, selected: one.name === now()?.name }, one.name))));
}
export function pickModel(name: string): void {
  store.model.set(name);
  store.text.set(null);
  store.cut.set("");
  store.token.set(null);
}

const start: Record<Need, string> = { translate: "qkv serve translator", experts: "qkv serve experts", next: "qkv serve" };
// A door without a model says which one it needs, and how to get it.
export function needs(need: Need, title: string, lead: string, show: () => Child): Child {
  return () => (fitting(need).length ? show() : section({ id: need, title, lead, figure: el("div", { class: "card" },
    !models().length ? waits() : el("p", { class: "missing" }, say("none")(say("what")[need]), " ", el("code", {}, start[need]))) }));
}

export interface Asked<T> { value: Signal<T | null>; failed: Signal<Failure | null>; waiting: Signal<boolean>; again: () => void; note: () => Child }

// Asks whenever what `question` read has changed; null asks nothing. An answer stays until the next one is there.
export function asking<T>(path: string, question: () => unknown, { delay = 60, until = (_: T) => true }: { delay?: number; until?: (value: T) => boolean } = {}): Asked<T> {
  const value = signal<T | null>(null), failed = signal<Failure | null>(null), waiting = signal(false), round = signal(0), later = signal(0);
  let last = "";
  effect(() => {
    round();
    const soon = later() > 0 ? 700 : delay;
    if (!live()) return;
    const body = question();
    if (body === null) return;
    if (JSON.stringify(body) !== last) waiting.set(true);
    last = JSON.stringify(body);
    askLater<T>(soon, path, body, (next) => {
      value.set(next);
      failed.set(null);
      waiting.set(false);
      if (!until(next)) later.set(later.peek() + 1);  // it is being measured: ask again
    }, (why) => { failed.set(why); waiting.set(false); });
  });
  const again = () => { failed.set(null); round.set(round.peek() + 1); };
  return { value, failed, waiting, again, note: () => (failed() ? failureNote(failed()!, again) : "") };
}

// A text box that sets a signal; it follows the signal while nobody types.
export function textBox(value: () => string, set: (text: string) => void, label: string, rows = 2): HTMLTextAreaElement {
  const box = el("textarea", { class: "door-text", rows, placeholder: label, spellcheck: "false", maxlength: "100000", "aria-label": label, oninput: () => { grow(); set(box.value); } });
  const grow = () => { box.style.height = "auto"; if (box.scrollHeight) box.style.height = `${Math.min(box.scrollHeight + 2, 180)}px`; };
  effect(() => {
    const text = value();
    if (document.activeElement !== box && box.value !== text) box.value = text;
    requestAnimationFrame(grow);
  });
  return box;
}

export const waits = (): Child => el("p", { class: "fine waits" }, say("wait"));
