// The live page's questions about its text: models, looks, answers. The newest question counts; older ones are dropped.
import { ask, Failure, live } from "./api";
import { known, list } from "./format";
import { report, setReport, story, type Candidate, type Facts, type Report, type Token } from "./report";
import { effect, onCleanup, signal } from "./signal";
import * as store from "./store";

export interface Model {
  name: string; default?: boolean; kind: "decoder_only" | "encoder_only" | "encoder_decoder"; family?: string; facts: Facts;
  can: string[]; languages?: string[]; example?: string; example_token?: number; roles?: "none" | "measuring" | "ready";
}
export interface CutAnswer {
  cut: string[]; before: string; after: string; changed: boolean; delta?: number; low?: number; high?: number; n?: number; texts?: number; kl?: number; same_guess?: number;
  next?: { before: NonNullable<Report["next"]>; after: NonNullable<Report["next"]> };
}

export const models = signal<Model[]>([]);
export const failure = signal<Failure | null>(null);
export const waiting = signal(false);        // a question that took longer than a blink
export const answer = signal<string | null>(null);
export const cutAnswer = signal<CutAnswer | null>(null);
export const sampling = signal({ temperature: 0, topK: 0, topP: 1, seed: 1 });

export function textNow(): string {
  const own = !store.model() || report().model === store.model();  // another model starts with its own example
  return store.text() ?? (own ? report().title : undefined) ?? modelNow()?.example ?? "";
}
export const modelNow = (): Model | undefined => models().find((one) => one.name === (store.model() || report().model)) ?? models().find((one) => one.default) ?? models()[0];
export const can = (what: string): boolean => modelNow()?.can.includes(what) ?? false;
export const cutList = (): string[] => store.cut().split(",").filter(Boolean);
export function toggleCut(head: string): void {
  const now = store.cut.peek().split(",").filter(Boolean);
  store.cut.set((now.includes(head) ? now.filter((one) => one !== head) : [...now, head]).join(","));
}

// What every question about the text says.
export function subject(): { model?: string; text: string; cut?: string[] } {
  const cut = cutList();
  return { ...(store.model() ? { model: store.model() } : {}), text: textNow(), ...(cut.length ? { cut } : {}) };
}

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
export const retry = (): void => { failure.set(null); again.set(again.peek() + 1); };

export function startLooking(): void {
  if (!live()) return;
  effect(() => {  // the models; while they load, ask again
    again();
    askLater<{ models: Model[] }>(0, "/page/models", undefined, (all) => { models.set(all.models); failure.set(null); }, (why) => {
      failure.set(why);
      if (why.kind === "loading") setTimeout(retry, 1000);
    });
  });
  let shown = report.peek().title ? lookKey(report.peek().title!, "", "") : "";
  effect(() => {  // the look
    again();
    const model = modelNow(), asked = lookKey(textNow(), store.model(), store.cut());
    if (!model || asked === shown) return;
    const body = subject();
    if (!body.text) return;
    const slow = setTimeout(() => waiting.set(true), 300);
    onCleanup(() => { clearTimeout(slow); waiting.set(false); });
    askLater<Report>(120, "/page/look", { ...body, ...(store.token.peek() === null ? {} : { token: store.token.peek() }) }, (next) => {
      clearTimeout(slow);
      waiting.set(false);
      shown = asked;
      failure.set(null);
      if ((store.token.peek() ?? 0) >= list(next.tokens).length) store.token.set(null);
      setReport(next);
    }, (why) => { clearTimeout(slow); waiting.set(false); failure.set(why); });
  });
  effect(() => {  // the story follows the selected token
    const token = store.token(), told = report().story?.token;
    if (!known(token) || !known(told) || token === story.peek()?.token || !modelNow()) return;
    askLater<Report>(150, "/page/look", { ...subject(), token }, (next) => story.set(next.story ?? null));
  });
  effect(() => {  // the answer
    again();
    if (!modelNow() || !can("next") || !textNow()) return answer.set(null);
    const { temperature, topK, topP, seed } = sampling();
    const body = { ...subject(), cut: undefined, max_tokens: 24, temperature, ...(temperature > 0 ? { top_k: topK || undefined, top_p: topP < 1 ? topP : undefined, seed } : {}) };
    askLater<{ text: string; tokens: Token[] }>(120, "/page/write", body, (next) => answer.set(next.text));
  });
  effect(() => {  // what the cut heads change
    again();
    cutAnswer.set(null);
    if (!cutList().length || !modelNow() || !textNow()) return;
    askLater<CutAnswer>(0, "/page/cut", { ...subject(), max_tokens: 24 }, (next) => cutAnswer.set(next));
  });
}
const lookKey = (text: string, model: string, cut: string): string => JSON.stringify([text, model, cut]);

// The shares of the candidates after temperature, top-k and top-p, as a sampler draws from them. 0: left out.
export function sampledShares(candidates: readonly Candidate[], lse: number, { temperature, topK, topP }: { temperature: number; topK: number; topP: number }): number[] {
  if (temperature <= 0) return candidates.map((_, i) => (i === 0 ? 1 : 0));
  const top = candidates[0]?.logit ?? 0;
  const weights = candidates.map((c) => Math.exp((c.logit - top) / temperature));
  // Those beyond the listed ones: as if all had the last one's logit, so many that they make up the rest at temperature 1.
  const listed = candidates.reduce((sum, c) => sum + Math.exp(c.logit - lse), 0), least = candidates.at(-1)?.logit ?? 0;
  const others = (Math.max(1 - listed, 0) / Math.exp(least - lse)) * Math.exp((least - top) / temperature);
  const whole = weights.reduce((a, b) => a + b, 0) + (topK > 0 ? 0 : others);
  let sum = 0;
  const kept = weights.map((w, i) => {
    const stays = (topK <= 0 || i < topK) && (i === 0 || sum / whole < topP);
    sum += w;
    return stays ? w : 0;
  });
  const left = kept.reduce((a, b) => a + b, 0) + (topK > 0 || topP < 1 ? 0 : others);
  return kept.map((w) => w / (left || 1));
}
