// Tokens of one word, in any language: between spaces, or as a dictionary parts a Chinese text. Attention between words is
// the sum over the tokens of the key and the mean over those of the query.
import type { Token } from "./report";

export interface Span { begin: number; end: number }

const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
const known = new WeakMap<readonly Token[], Span[]>();
export function wordSpans(tokens: readonly Token[]): Span[] {
  const found = known.get(tokens);
  if (found) return found;
  const texts = tokens.map((token) => String(token.text ?? "").replace(/▁/g, " ")), bounds = new Set<number>();
  for (const part of segmenter.segment(texts.join(""))) bounds.add(part.index);
  const spans: Span[] = [];
  let at = 0;
  texts.forEach((text, i) => {
    // A token that begins with a space begins a word: there is always a bound before a space. One that is nothing else
    // belongs to the word after it.
    const before = i > 0 ? texts[i - 1] : "";
    const inside = i > 0 && (tokens[i].continues || (text !== "" && before !== "" && !bounds.has(at)) || (/^ +$/.test(before) && /^\S/.test(text)));
    if (inside) spans.at(-1)!.end = i + 1;
    else spans.push({ begin: i, end: i + 1 });
    at += text.length;
  });
  known.set(tokens, spans);
  return spans;
}

const merged = new WeakMap<readonly Token[], Token[]>();
export function wordTokens(tokens: readonly Token[]): Token[] {
  let made = merged.get(tokens);
  if (!made) merged.set(tokens, (made = wordSpans(tokens).map(({ begin, end }) => (end - begin === 1 ? { ...tokens[begin], continues: false } : { text: tokens.slice(begin, end).map((token) => token.text ?? "").join("") }))));
  return made;
}
export const hasPieces = (tokens: readonly Token[]): boolean => wordSpans(tokens).length < tokens.length;

export const meanSum = (rows: Span, columns: Span, weight: (i: number, j: number) => number): number => {
  let sum = 0;
  for (let i = rows.begin; i < rows.end; ++i) for (let j = columns.begin; j < columns.end; ++j) sum += weight(i, j);
  return sum / (rows.end - rows.begin);
};
