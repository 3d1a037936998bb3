// Numbers and token texts as the page writes them.
import type { Token } from "./report";
import { labelName } from "../words/relations";
import { say } from "./words";

export const known = (x: unknown): x is number => typeof x === "number" && Number.isFinite(x);
export const clamp = (x: number, low: number, high: number): number => Math.min(Math.max(x, low), high);
export const list = <T>(x: readonly T[] | null | undefined): readonly T[] => (Array.isArray(x) ? x : []);
export const mix = (a: number, b: number, part: number): number => a + (b - a) * part;
export const largest = (values: readonly (number | null | undefined)[]): number => values.reduce<number>((most, x) => (known(x) && x > most ? x : most), 0);

export function num(x: unknown, digits = 2): string {
  if (!known(x)) return "–";
  const size = Math.abs(x);
  if (size !== 0 && (size < 0.5 * 10 ** -digits || size >= 1e6)) return x.toExponential(1).replace(/-/g, "−");
  return x.toFixed(size >= 100 ? Math.min(digits, 1) : digits).replace("-", "−");
}

export const score = (x: unknown): string => (known(x) ? x.toFixed(2).replace("-", "−") : "–");  // on a scale from 0 to 1
export const signed = (x: unknown, digits = 3): string => (known(x) && x > 0 ? "+" : "") + num(x, digits);
// At most five characters: for cells with room for no more.
export const short = (x: number): string => x.toFixed(Math.abs(x) < 9.995 ? 2 : Math.abs(x) < 99.95 ? 1 : 0).replace("-", "−");

export function percent(p: unknown): string {
  if (!known(p)) return "–";
  if (p > 0 && p < 0.001) return "<0.1 %";
  return (p < 0.0995 ? (p * 100).toFixed(1) : Math.round(p * 100)) + " %";
}

// A number of parameters.
export const millions = (n: number): string => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} G` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : `${Math.round(n / 1e3)} k`);
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) { n /= 1024; ++at; }
  return `${at === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

// White space made visible; the space that begins most English tokens is shown only where it is all there is. The
// program writes bytes that are no whole character as \xE6\xB3: one sign stands for them.
const loneBytes = /(?:\\x[89A-F][0-9A-F])+/g;
// Token texts put together: bytes that are no whole character have the same sign in them.
export const joinedText = (tokens: readonly Token[]): string => tokens.map((token) => token.text ?? "").join("").replace(loneBytes, "◌");
export function visible(text: unknown): string {
  const marked = String(text ?? "").replace(loneBytes, "◌").replace(/\r/g, "").replace(/\n/g, "⏎").replace(/\t/g, "⇥");
  return marked.trim() === "" ? marked.replace(/ /g, "␣") : marked.trim();
}

// Pieces of one character (Chinese, emoji) belong to the token that shows it.
export function pieces(tokens: readonly Token[], i: number): { begin: number; end: number; text: string } {
  let begin = i;
  while (begin > 0 && tokens[begin]?.continues) --begin;
  let end = begin + 1;
  while (end < tokens.length && tokens[end]?.continues) ++end;
  return { begin, end, text: visible(tokens.slice(begin, end).map((t) => t.text || "").join("")) };
}

// A piece of a longer word in letters with spaces between words (“lo” of “Oslo”) continues the token before it. Tokens
// that hold no spaces at all do not tell words apart.
const spaced = new WeakMap<readonly Token[], boolean>();
function hasSpaces(tokens: readonly Token[]): boolean {
  let found = spaced.get(tokens);
  if (found === undefined) spaced.set(tokens, (found = tokens.some((token) => /^\s/.test(token.text ?? ""))));
  return found;
}
const lettersEnd = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{M}]$/u, lettersStart = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{M}]/u;
export const continuesWord = (tokens: readonly Token[], i: number): boolean => i > 0 && hasSpaces(tokens) && lettersStart.test(tokens[i]?.text ?? "") && lettersEnd.test(tokens[i - 1]?.text ?? "");
export function wordOf(tokens: readonly Token[], i: number): string {
  let begin = i, end = i + 1;
  while (continuesWord(tokens, begin)) --begin;
  while (end < tokens.length && continuesWord(tokens, end)) ++end;
  return visible(tokens.slice(begin, end).map((token) => token.text || "").join(""));
}

// The beginning or the end of a text, by whole words; a word that is too long alone is cut between characters.
const wordParts = (text: string, granularity: "word" | "grapheme"): string[] => Array.from(new Intl.Segmenter(undefined, { granularity }).segment(text), (part) => part.segment);
export function shortened(text: string, most: number, end: "first" | "last" = "first"): string {
  if (text.length <= most) return text;
  const some = end === "first" ? text.slice(0, 4 * most) : text.slice(-4 * most), take = (parts: string[]): string => {
    let kept = "";
    if (end === "last") parts.reverse();
    for (const part of parts) {
      if (kept.length + part.length > most) break;
      kept = end === "first" ? kept + part : part + kept;
    }
    return kept;
  };
  const kept = (take(wordParts(some, "word")) || take(wordParts(some, "grapheme"))).trim();
  return end === "first" ? `${kept}…` : `…${kept}`;
}

export const axisName = (tokens: readonly Token[], i: number): string => {
  const token = tokens[i];
  return !token ? "" : token.continues && !token.text ? "·" : visible(token.text);
};

export function tokenName(tokens: readonly Token[], i: number): string {
  if (!tokens[i]) return "?";
  const whole = pieces(tokens, i);
  if (whole.end - whole.begin === 1) return wordOf(tokens, i) === whole.text ? whole.text : say("pieceOf")(whole.text, wordOf(tokens, i));
  return `${whole.text} (${say("piece")(i - whole.begin + 1, whole.end - whole.begin)})`;
}

export const layerName = (name: string | number): string => {
  const named = say("layers") as Record<string, string>;
  return named[name] ?? (/^\d+$/.test(String(name)) ? say("layerN")(Number(name)) : String(name));
};

// Snapshots have short names for the roles that reports name in full.
export const fullRole = (name: string): string => ({ previous: "previous token", duplicate: "duplicate token", first: "first token" })[name] ?? name;
export const roleName = (name: string): string => (say("roles") as Record<string, string>)[fullRole(name)] ?? labelName(name) ?? name;
