// The report, as qkv look, demo and movie write it (docs/looking.md) and the server sends it. Every part may be absent.
import { signal } from "./signal";

type Maybe<T> = T | null | undefined;

export interface Token { id?: number; text: string; continues?: boolean }
export interface Guess { text: string; p: number }

export interface Ladder {
  layers: string[];
  guesses: Guess[][][];  // layer, token, best first
  settled?: Maybe<number>[];
  next?: Maybe<string>[];
  entropy?: Maybe<number>[][];
  kl?: Maybe<number>[][];
  rank?: Maybe<number>[][];
}

// A role that gold labels show has the best guess without attention beside it, and the stories it was judged on.
export interface Role { name: string; score: number; low?: number; high?: number; n?: number; coverage?: number; chance?: number; baseline?: string; data?: string }

export interface Head {
  name: string;
  stack?: "encoder" | "decoder" | "cross";
  layer: number;
  head: number;
  queries: "tokens" | "source";
  keys: "tokens" | "source";
  entropy?: number;
  first?: number;              // mean weight of the first key
  map?: string;                // base64 of [queries][keys] bytes: 255 sqrt(weight)
  top?: [number, number][][];  // per row: key, weight; largest first
  thumb?: { rows: number; columns: number; pooled: number; data: string };  // of a long text: means, 255 sqrt(mean)
  roles?: Role[];
}

export interface Match { key: number; text: string; qk?: number; score?: number; share: number; v_norm?: number }
export interface StoryHead {
  name: string; q?: number[]; q_norm?: number; z_norm?: number; out_norm?: number; others?: number; nowhere?: number;
  scale?: number; width?: number; matches?: Match[];
}
export interface StoryLayer {
  layer?: number; norm_in?: number; attn_out_norm?: number; cross_out_norm?: number; resid_mid_norm?: number; mlp_out_norm?: number;
  resid_norm?: number; heads?: StoryHead[]; guess?: Guess[];
}
export interface Story { token: number; shown?: string; layers: StoryLayer[] }

export interface Cut { head: string; kind?: string; delta?: number; low?: number; high?: number; n?: number; before?: string; after?: string }

export interface Phase { name: string; step: Maybe<number>; reason?: string; numbers?: Record<string, number> }
export interface MovieHead {
  name: string;
  roles?: Record<string, Maybe<number>[]>;
  intervals?: Record<string, { low?: number[]; high?: number[]; n?: number }>;
  importance?: Maybe<number>[];
}
export interface Movie {
  steps: number[];
  loss?: { step: number; loss?: Maybe<number>; val?: Maybe<number> }[];
  phases?: Phase[];
  thresholds?: Record<string, number>;
  heads?: MovieHead[];
  weights?: { name: string; moved?: Maybe<number>[]; cosine?: Maybe<number>[] }[];
  embedding?: { tokens: string[]; x: number[][]; y: number[][]; basis?: number };  // basis: the step whose main directions are the axes
  total?: number;  // steps of a training that goes on
  samples?: { step: number; text: string }[];
}

// Of qkv patch: what came back of the clean answer, by site.
export interface PatchMap { site: string; stack: string; across: "tokens" | "source" | "heads"; rows: string[]; restored: Maybe<number>[][] }
export interface Patch {
  row: number;
  tokens: { clean: Token[]; corrupt: Token[] };
  source?: { clean: Token[]; corrupt: Token[] };
  answer: { id: number; text: string };
  wrong: { id: number; text: string };
  difference: { clean: number; corrupt: number };
  maps: PatchMap[];
}

export interface Report {
  report?: string;
  title?: string;
  model?: string;
  lang?: string;
  made_with?: string;
  tokens?: Token[];
  source?: Token[];
  ladder?: Ladder;
  heads?: Head[];
  story?: Story;
  written?: { prompt?: string; text?: string };
  built_in?: { model: string; written?: { prompt?: string; text?: string }; roles?: (Role & { head: string; heads?: number })[] };
  cuts?: Cut[];
  movie?: Movie;
  patch?: Patch;
  labs?: unknown[];  // of qkv lab --html: parts/lab_card.ts
  facts?: Facts;
  next?: { token: number; lse: number; candidates: Candidate[]; rest: number };  // of the last token
  losses?: Maybe<number>[];
  cut?: string[];
  token?: string;  // of the server's page alone: the right to start work
  work?: boolean;
  answer?: string;  // what the model writes after the text: of a live page's first report
  models?: unknown[];
}

export interface Candidate { id: number; text: string; logit: number; p: number }
export interface Facts {
  layers: number; heads: number; kv_heads: number; width: number; head_width: number; ffn: number; vocabulary: number; context: number; parameters: number;
  experts?: number; experts_per_token?: number; dtype?: string; norm?: string; positions?: string; encoder_layers?: number; tied?: boolean;
}

export const report = signal<Report>({});
export const story = signal<Story | null>(null);  // the report's, or that of a token selected since
export function setReport(next: Report): void {
  report.set(next);
  story.set(next.story ?? null);
}
export const queriesOf = (head: Head): readonly Token[] => (head.queries === "source" ? report().source : report().tokens) ?? [];
export const keysOf = (head: Head): readonly Token[] => (head.keys === "source" ? report().source : report().tokens) ?? [];
