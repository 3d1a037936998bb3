// The live page's questions about its text: models, looks, answers. The newest question counts; older ones are dropped.
import { ask, Failure, live } from "./api";
import { known, list } from "./format";
import { report, setReport, story, type Facts, type Report, type Role } from "./report";
import { sampling } from "./sampling";
import { computed, effect, onCleanup, signal, untracked } from "./signal";
import * as store from "./store";

export interface Model {
  name: string; default?: boolean; kind?: string; family?: string; facts: Facts; error?: string;  // error: it cannot be opened
  can: string[]; examples?: string[]; examples_zh?: string[]; roles?: "none" | "measuring" | "ready" | "failed";
}
export interface CutAnswer {
  cut: string[]; before?: string; after?: string; changed?: boolean; delta?: number; low?: number; high?: number; n?: number; texts?: number; kl?: number; same_guess?: number;
  next?: { before: NonNullable<Report["next"]>; after: NonNullable<Report["next"]> };
}

export const models = signal<Model[]>([]);
const noFacts: Facts = { layers: 0, heads: 0, kv_heads: 0, width: 0, head_width: 0, ffn: 0, vocabulary: 0, context: 0, parameters: 0 };
const setModels = (all: unknown[]): void => models.set(all.map((one) => ({ facts: noFacts, can: [], ...(one as { name: string }) })));
export const failure = signal<Failure | null>(null);
export const waiting = signal(false);        // a question that took longer than a blink
export const answer = signal<string | null>(null);
export const cutAnswer = signal<CutAnswer | null>(null);
export const measuringRoles = signal(false);

const mostBytes = 256 << 10;  // of a text that is sent
const halfCharacter = /\p{Surrogate}/u;

export const modelNow = (): Model | undefined => models().find((one) => one.name === (store.model() || report().model)) ?? models().find((one) => one.default) ?? models()[0];
export const examplesOf = (model: Model | undefined, chinese: boolean): readonly string[] => list(chinese ? model?.examples_zh : model?.examples);
export function textNow(): string {
  const own = !store.model() || report().model === store.model();  // another model starts with its own example
  return store.text() ?? (own ? report().title : undefined) ?? examplesOf(modelNow(), untracked(store.lang) === "zh")[0] ?? "";
}
export const can = (what: string): boolean => modelNow()?.can.includes(what) ?? false;
export const cutList = (): string[] => store.cut().split(",").filter(Boolean);
export function toggleCut(head: string): void {
  const now = store.cut.peek().split(",").filter(Boolean);
  store.cut.set((now.includes(head) ? now.filter((one) => one !== head) : [...now, head]).join(","));
}
export function chooseText(text: string | null): void {
  store.text.set(text);
  store.token.set(null);
}
export function chooseModel(name: string): void {
  store.model.set(name);
  store.cut.set("");
  store.head.set("");
  store.locked.set(false);
  store.layer.set(null);
  chooseText(null);
}

// What every question about the text says.
export function subject(): { model?: string; text: string; cut?: string[] } {
  const cut = cutList();
  return { ...(store.model() ? { model: store.model() } : {}), text: textNow(), ...(cut.length ? { cut } : {}) };
}
// Why a text cannot be asked about at all.
function unfit(text: string): Failure | null {
  if (halfCharacter.test(text)) return new Failure("surrogate", "a lone surrogate");
  return text.length > mostBytes || new TextEncoder().encode(text).length > mostBytes ? new Failure("long", "too long") : null;
}
export const mended = (text: string): string => text.replace(new RegExp(halfCharacter, "gu"), "\ufffd");

// Asks after `delay` ms, unless the surrounding effect runs again before; the answer of an older question is dropped.
export function askLater<T>(delay: number, path: string, body: unknown, done: (value: T) => void, failed: (why: Failure) => void = (why) => failure.set(why)): void {
  const abort = new AbortController();
  const timer = setTimeout(() => {
    ask<T>(path, body, abort.signal).then((value) => { if (!abort.signal.aborted) done(value); },
      (why) => { if (why instanceof Failure && !abort.signal.aborted) failed(why); });
  }, delay);
  onCleanup(() => { clearTimeout(timer); abort.abort(); });
}

const again = signal(0);
export function refreshModels(): void {
  ask<{ models: unknown[] }>("/page/models").then((all) => { if (all.models.length !== models.peek().length) setModels(all.models); }, () => {});
}
export const retry = (): void => { failure.set(null); again.set(again.peek() + 1); };
export const lastText = signal<string | null>(null);  // the last one that could be shown

const lookKey = (text: string, model: string, cut: string): string => JSON.stringify([text, model, cut]);

export function startLooking(): void {
  if (!live()) return;
  const first = report.peek();
  setModels(first.models ?? []);
  if (first.title) lastText.set(first.title);
  effect(askModels);
  effect(waitForServer);
  let shown = first.title ? lookKey(first.title, "", "") : "";
  effect(() => {  // the look
    again();
    const model = modelNow(), text = textNow(), asked = lookKey(text, store.model(), store.cut());
    if (!model || model.error || asked === shown || !text.trim()) return;
    const wrong = unfit(text);
    if (wrong) return failure.set(wrong);
    const slow = setTimeout(() => waiting.set(true), 300), done = () => { clearTimeout(slow); waiting.set(false); };
    onCleanup(done);
    askLater<Report>(120, "/page/look", { ...subject(), ...(store.token.peek() === null ? {} : { token: store.token.peek() }) }, (next) => {
      done();
      shown = asked;
      lastText.set(text);
      failure.set(null);
      if ((store.token.peek() ?? 0) >= list(next.tokens).length) store.token.set(null);
      setReport(next);
    }, (why) => { done(); failed(why); });
  });
  effect(() => {  // the story follows the selected token
    const token = store.token(), told = report().story?.token;
    if (!known(token) || !known(told) || token === story.peek()?.token || token >= list(report().tokens).length || !modelNow()) return;
    askLater<Report>(150, "/page/look", { ...subject(), token, only: "story" }, (next) => story.set(next.story ?? null));
  });
  let written = first.answer !== undefined ? JSON.stringify([first.title, "", sampling.peek()]) : "";
  if (first.answer !== undefined) answer.set(first.answer);
  effect(() => {  // the answer
    again();
    const text = textNow(), key = JSON.stringify([text, store.model(), sampling()]);
    if (!modelNow() || key === written) return;
    if (!can("write") || !text.trim() || unfit(text)) return answer.set(null);
    const { temperature, topK, topP, seed } = sampling();
    const body = { ...subject(), cut: undefined, max_tokens: 24, temperature, ...(temperature > 0 ? { top_k: topK || undefined, top_p: topP < 1 ? topP : undefined, seed } : {}) };
    askLater<{ text: string; sentence?: string }>(120, "/page/write", body, (next) => { written = key; answer.set(next.sentence || next.text); }, () => answer.set(null));
  });
  const cutOf = computed(() => lookKey(textNow(), modelNow()?.name ?? "", store.cut()));
  effect(() => { cutOf(); askCut(); });
  effect(askRoles);
}

// A head or a token that the address names and this model has not: said, and left out (core/link.ts).
export const unknownCut = signal("");
function failed(why: Failure): void {
  if (why.param === "cut") {
    unknownCut.set(store.cut.peek());
    store.cut.set("");
  } else if (why.param === "token" && store.token.peek() !== null) {
    store.token.set(null);
    again.set(again.peek() + 1);
  } else {
    failure.set(why);
    if (why.kind === "loading") setTimeout(retry, 1000);
  }
}

function askModels(): void {
  again();
  if (untracked(models).length && !again.peek()) return;  // the page came with them
  askLater<{ models: unknown[] }>(0, "/page/models", undefined, (all) => {
    setModels(all.models);
    if (!all.models.length) setTimeout(retry, 2000);  // one may be learning
    if (failure.peek()?.kind === "loading") failure.set(null);
  }, (why) => {
    failure.set(why);
    if (why.kind === "loading") setTimeout(retry, 1000);
  });
}

// A server that is gone may come back.
function waitForServer(): void {
  const kind = failure()?.kind;
  if (kind !== "gone" && kind !== "stopping") return;
  const timer = setInterval(() => { fetch("/health").then((said) => { if (said.ok) retry(); }, () => {}); }, 2000);
  onCleanup(() => clearInterval(timer));
}

// What the cut heads change: the answer at once, then the loss over many texts. A report that says more about the same text
// asks nothing anew.
function askCut(): void {
  again();
  cutAnswer.set(null);
  const wanted = untracked(() => (cutList().length && modelNow() && textNow().trim() && !unfit(textNow()) ? subject() : null));
  if (!wanted) return;
  const body = { ...wanted, max_tokens: 24 }, abort = new AbortController();
  onCleanup(() => abort.abort());
  const step = (loss: boolean) => ask<CutAnswer>("/page/cut", { ...body, loss }, abort.signal);
  step(false).then((quick) => { cutAnswer.set(quick); return step(true); }).then((whole) => cutAnswer.set(whole))
    .catch((why) => { if (why instanceof Failure && why.param !== "cut") failure.set(why); });
}

// Roles are measured while the page is looked at; they come when they are known, those of gold labels a little later.
const allRoles = new Set<string>();  // models of which nothing more will come
function askRoles(): void {
  const heads = list(report().heads), model = modelNow(), of = report().model ?? model?.name ?? "";
  measuringRoles.set(false);
  if (!model || !heads.length || (allRoles.has(of) && heads.some((head) => head.roles))) return;
  let timer = 0;
  const abort = new AbortController();
  onCleanup(() => { clearTimeout(timer); abort.abort(); });
  const poll = () => {
    ask<{ state: string; labels?: string; heads?: { name: string; roles: Role[] }[] }>("/page/roles", { model: of }, abort.signal).then((got) => {
      measuringRoles.set(got.state === "measuring" || got.labels === "measuring");
      if (measuringRoles.peek()) timer = setTimeout(poll, 600) as unknown as number;
      if (got.state !== "ready") return;
      if (got.labels !== "measuring") allRoles.add(of);
      const asked = untracked(() => textNow() === report().title && modelNow()?.name === report().model && !cutList().length);  // not about to be replaced
      if (asked && heads.some((head) => head.map && !head.top)) {  // the page came with maps alone: now with exact weights too
        ask<Report>("/page/look", { ...untracked(subject), token: story.peek()?.token }, abort.signal).then((exact) => report.set(exact), () => {});
        return;
      }
      const roles = new Map(list(got.heads).map((head) => [head.name, head.roles])), names = (all?: Role[]) => all?.map((role) => role.name).join();
      if (heads.every((head) => names(head.roles) === names(roles.get(head.name) ?? []))) return;
      report.set({ ...report.peek(), heads: heads.map((head) => ({ ...head, roles: roles.get(head.name) ?? [] })) });
    }, () => measuringRoles.set(false));
  };
  poll();
}
