// Every number of one token in one layer and head, as the server sends it; and rows and columns of weights on request.
import { ask } from "../../core/api";
import { signal } from "../../core/signal";

export interface Norm { kind: "rms" | "layer" | "none"; eps: number; weight: number[]; bias?: number[]; mean?: number; scale: number; values: number[] }
export interface Projected { linear: number[]; bias?: number[]; norm?: Norm; rope?: { cos: number[]; sin: number[]; first: number; width: number; style: "half" | "pairs" }; values: number[] }
export interface Numbers {
  token: number; layer: number; head: number; name: string; kv_head: number; width: number; head_width: number; value_width: number; heads: number; kv_heads: number;
  embedding?: { id: number; token: number[]; position?: number[]; values: number[] };
  x: number[]; norm?: Norm; q?: Projected; k?: Projected; v?: Projected;
  keys?: number[][]; value_rows?: number[][]; qk?: number[]; scale: number; scores?: number[]; pattern?: number[]; lse: number;
  z?: number[]; concat?: number[]; head_out?: number[]; out?: number[]; out_bias?: number[]; mid?: number[];
  mlp?: { norm?: Norm; pre: number[]; up?: number[]; gated?: boolean; post: number[]; out: number[]; activation: string };  // gated: pre is the gate's
  experts?: { logits: number[]; ids: number[]; weights: number[]; out: number[]; norm?: Norm };
  post?: number[];
  final?: { norm?: Norm; values: number[] };
  checks?: Record<string, number>; plain?: boolean;
}

export type MatrixName = "q" | "k" | "v" | "o" | "gate" | "up" | "down" | "router" | "embed" | "position" | "head";
interface WeightAsk { layer: number; matrix: MatrixName; head?: number; rows?: [number, number]; columns?: [number, number] }
export interface Weight { matrix: string; name: string; shape: [number, number]; rows: [number, number]; columns: [number, number]; values: number[][] }

// Weights that were asked for; a signal each, so that what waits for one is drawn when it comes.
const known = new Map<string, ReturnType<typeof signal<Weight | null>>>();
export function weight(model: string | undefined, what: WeightAsk): Weight | null {
  const key = JSON.stringify([model, what]);
  let found = known.get(key);
  if (!found) {
    known.set(key, (found = signal<Weight | null>(null)));
    ask<Weight>("/page/weight", { ...(model ? { model } : {}), ...what }).then(found.set, () => known.delete(key));
  }
  return found();
}
// The gradient of the text's loss by the token's embedding, from the server's backward pass.
export interface Update { token: number; id: number; uses: number; tied: boolean; loss: number; row: number[]; gradient: number[] }
const updates = new Map<string, ReturnType<typeof signal<Update | null>>>();
export function updateOf(body: { model?: string; text: string; token: number }): Update | null {
  const key = JSON.stringify(body);
  let found = updates.get(key);
  if (!found) {
    if (updates.size > 64) updates.clear();
    updates.set(key, (found = signal<Update | null>(null)));
    ask<Update>("/page/update", body).then(found.set, () => {});  // a model that cannot be trained has no such step
  }
  return found();
}
export const weightLimit = 65536;  // numbers in one answer
