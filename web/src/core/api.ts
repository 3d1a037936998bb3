// Asking the server (docs/page.md). A page in a file has none.
import { report } from "./report";
import { signal } from "./signal";

export const live = (): boolean => liveToken !== "";
let liveToken = "", liveWork = false;
export const apiKey = signal("");
export const mayWork = (): boolean => liveWork;  // whether training and labs may be started here

// Remembers what only the first report has; what the server answers later are plain reports.
export function startLive(): void {
  const first = report.peek();
  liveToken = first.report === "live" ? first.token ?? "none" : "";
  liveWork = first.work === true;
}

export type FailureKind = "gone" | "key" | "stale" | "loading" | "stopping" | "busy" | "model" | "long" | "surrogate" | "refused";
export class Failure extends Error {
  constructor(readonly kind: FailureKind, message: string, readonly status = 0, readonly param: string | null = null, readonly code: string | null = null, readonly more: Record<string, unknown> = {}) {
    super(message);
  }
}

function headers(): Record<string, string> {
  const all: Record<string, string> = { "Content-Type": "application/json", "X-QKV-Token": liveToken };
  if (apiKey.peek()) all.Authorization = `Bearer ${apiKey.peek()}`;
  return all;
}

async function request(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { method: body === undefined ? "GET" : "POST", headers: headers(), signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Failure("gone", String((error as Error).message));
  }
  if (answer.ok) return answer;
  const said = (await answer.json().catch(() => null))?.error ?? {};
  const message = String(said.message ?? `HTTP ${answer.status}`);
  throw new Failure(kindOf(answer.status, String(said.code ?? ""), message, said), message, answer.status, said.param ?? null, said.code ?? null, said);
}
function kindOf(status: number, code: string, message: string, said: Record<string, unknown>): FailureKind {
  if (status === 401) return "key";
  if (code === "stale_token") return "stale";
  if (code === "model_not_found") return "model";
  if (status === 503) return message.includes("stopping") ? "stopping" : "loading";
  if (status === 409 || status === 429) return "busy";
  return status === 413 || typeof said.max === "number" ? "long" : "refused";
}

// GET without a body, POST with one.
export async function ask<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return (await request(path, body, signal)).json() as Promise<T>;
}

export async function askBytes(path: string, body: unknown, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await request(path, body, signal)).arrayBuffer();
}

// Server-sent events until the stream ends or the signal aborts; on(name, data) for each.
export async function listen(path: string, on: (name: string, data: unknown) => void, signal: AbortSignal): Promise<void> {
  const answer = await request(path, undefined, signal);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      let name = "message", data = "";
      for (const line of event.split("\n")) {
        if (line.startsWith("event:")) name = line.slice(6).trim();
        else if (line.startsWith("data:")) data += line.slice(5).trim();
      }
      if (data) on(name, JSON.parse(data));
    }
  }
}
