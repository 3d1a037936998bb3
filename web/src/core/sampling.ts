// Temperature, top-k and top-p: what they leave of the next token's candidates.
import type { Candidate } from "./report";
import { signal } from "./signal";
import { keepAs } from "./store";

export interface Sampling { temperature: number; topK: number; topP: number; seed: number }
const plain: Sampling = { temperature: 0, topK: 0, topP: 1, seed: 1 };
export const sampling = signal<Sampling>(plain);

const keepNumber = (name: string, key: keyof Sampling, low: number, high: number): void => keepAs(name, {
  read: (text) => { const x = Number(text); sampling.set({ ...sampling.peek(), [key]: text !== "" && x >= low && x <= high ? x : plain[key] }); },
  write: () => (sampling()[key] === plain[key] ? "" : String(sampling()[key])),
});
keepNumber("temperature", "temperature", 0, 2);
keepNumber("top_k", "topK", 0, 50);
keepNumber("top_p", "topP", 0.05, 1);
keepNumber("seed", "seed", 1, 1e9);

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
