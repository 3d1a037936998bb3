// The state of the page: one selected token, layer and head for all views. What is in `kept` stands in the address.
import { effect, signal, type Signal } from "./signal";

export type Language = "en" | "zh";
export type Depth = "see" | "explain" | "numbers";

export const lang = signal<Language>("en");
export const theme = signal<"light" | "dark" | "">("");  // "": as the system has it
export const door = signal("");
export const text = signal<string | null>(null);   // what the model reads; null: what the report has
export const model = signal("");
export const token = signal<number | null>(null);  // of report.tokens; null: nobody chose, each view has its own start
export const layer = signal<number | null>(null);  // -1 is the embedding
export const head = signal("");                    // by name, L3H7
export const locked = signal(false);
export const cut = signal("");                     // names of the heads that are cut, with commas
export const step = signal<number | null>(null);   // of a movie: an index into its snapshots, or between two
const depths = signal<Record<string, Depth>>({});

export const depthOf = (part: string): Depth => depths()[part] ?? "see";
export const setDepth = (part: string, depth: Depth): void => depths.set({ ...depths.peek(), [part]: depth });

// --- the address: #/door?token=3&head=L3H7 ----------------------------------------------------------------------------

export interface Kept { read(text: string): void; write(): string }
const texts = (s: Signal<string>): Kept => ({ read: (t) => s.set(t), write: () => s() });
const numbers = (s: Signal<number | null>): Kept => ({
  read: (t) => s.set(t !== "" && Number.isFinite(Number(t)) ? Number(t) : null),
  write: () => (s() === null ? "" : String(Math.round(s()! * 100) / 100)),
});
const kept: Record<string, Kept> = {
  lang: { read: (t) => { if (t === "en" || t === "zh") chosenLang.set(t); }, write: () => chosenLang() },
  theme: { read: (t) => theme.set(t === "light" || t === "dark" ? t : ""), write: () => theme() },
  model: texts(model),
  text: { read: (t) => text.set(t === "" ? null : t), write: () => text() ?? "" },
  token: numbers(token), layer: numbers(layer),
  head: { read: (t) => { head.set(t); locked.set(t !== ""); }, write: () => (locked() ? head() : "") },
  cut: texts(cut), step: numbers(step),
};
const chosenLang = signal<Language | "">("");  // only what somebody chose belongs into an address
export function chooseLang(to: Language): void {
  chosenLang.set(to);
  lang.set(to);
}
// A door may keep more of its own: keep("axis", someSignal), or anything with a text: keepAs("top_k", { read, write }).
export function keep(name: string, value: Signal<string>): Signal<string> {
  kept[name] = texts(value);
  return value;
}
export function keepAs(name: string, how: Kept): void {
  kept[name] = how;
}
// What an address that was opened says and the page cannot show (core/link.ts).
export const linked = signal(0);             // counts the addresses that were opened
export const damaged = signal(false);        // the last one held bytes that are no text

export function address(): string {
  const query = Object.entries(kept).map(([name, { write }]) => [name, write()] as const).filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(value.replace(/\p{Surrogate}/gu, "\ufffd"))}`).join("&");
  return `#/${door()}${query ? `?${query}` : ""}`;
}

function unreadable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return false;
  } catch {
    return true;
  }
}
function readAddress(hash: string): void {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const given = new URLSearchParams(query);
  damaged.set(unreadable(hash) || [...given.values()].some((value) => value.includes("\ufffd")));
  door.set(unreadable(path ?? "") ? "" : decodeURIComponent(path ?? ""));
  linked.set(linked.peek() + 1);
  for (const [name, { read }] of Object.entries(kept)) read(given.get(name) ?? "");
  if (chosenLang.peek()) lang.set(chosenLang.peek() as Language);
}

export function followAddress(): void {
  let written = location.hash;
  if (location.hash.startsWith("#/")) readAddress(location.hash);
  addEventListener("hashchange", () => {
    if (location.hash !== written && location.hash.startsWith("#/")) readAddress((written = location.hash));
  });
  let lastDoor = door.peek(), timer = 0;
  effect(() => {
    const next = address(), fresh = door() !== lastDoor;
    lastDoor = door.peek();
    clearTimeout(timer);
    if (next === written || (next === "#/" && !written)) return;
    const write = () => {
      if (location.hash !== written) return;  // another address was opened meanwhile: its hashchange is on the way
      history[fresh ? "pushState" : "replaceState"](null, "", next);
      written = location.hash;
    };
    if (fresh) write();  // a door is a place to come back to; anything else replaces it, and not on every pixel of a drag
    else timer = setTimeout(write, 150) as unknown as number;
  });
}
