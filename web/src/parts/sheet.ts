// What the large map of a head shows: its tokens, or its words.
import { el } from "../core/dom";
import { list } from "../core/format";
import { keysOf, queriesOf, type Head, type Token } from "../core/report";
import { signal } from "../core/signal";
import { keepAs } from "../core/store";
import { say } from "../core/words";
import { hasPieces, meanSum, wordSpans, wordTokens } from "../core/word_spans";
import { exactWeight, mapOf, type AttentionMap } from "./maps";

export const byWords = signal(false);
keepAs("by", { read: (text) => byWords.set(text === "words"), write: () => (byWords() ? "words" : "") });

export function byWordsBox(): HTMLElement {
  const box: HTMLInputElement = el("input", { type: "checkbox", checked: byWords.peek(), onchange: () => byWords.set(box.checked) });
  return el("label", { class: "check by-words", title: say("byWordsHow") }, box, say("byWords"));
}

export interface Sheet {
  head: Head; queries: readonly Token[]; keys: readonly Token[]; map: AttentionMap;
  weight: (row: number, column: number) => number;
  rowOf: (token: number) => number;   // of a query's token
  tokenOf: (row: number) => number;   // the last token of a row: it has read the whole word
}

// Whole maps alone can be merged, and only where a word has several tokens.
export const canMerge = (head: Head): boolean => mapOf(head).values !== null && (hasPieces(queriesOf(head)) || hasPieces(keysOf(head)));
export const sheetOf = (head: Head): Sheet => (byWords() && canMerge(head) ? wordSheet(head) : tokenSheet(head));

const tokenSheet = (head: Head): Sheet => ({ head, queries: queriesOf(head), keys: keysOf(head), map: mapOf(head), weight: (i, j) => exactWeight(head, i, j), rowOf: (token) => token, tokenOf: (row) => row });

const sheets = new WeakMap<Head, Sheet>();
function wordSheet(head: Head): Sheet {
  const before = sheets.get(head);
  if (before) return before;
  const rows = wordSpans(queriesOf(head)), columns = wordSpans(keysOf(head));
  const weights = rows.map((row) => columns.map((column) => meanSum(row, column, (i, j) => exactWeight(head, i, j))));
  const values = Uint8Array.from(weights.flat(), (weight) => Math.round(255 * Math.sqrt(Math.min(weight, 1))));
  const made: Sheet = {
    head, queries: wordTokens(queriesOf(head)), keys: wordTokens(keysOf(head)), map: { values, top: [], rows: rows.length, columns: columns.length, causal: mapOf(head).causal },
    weight: (i, j) => list(weights[i])[j] ?? 0, rowOf: (token) => Math.max(rows.findIndex((row) => token < row.end), 0), tokenOf: (row) => (rows[row]?.end ?? 1) - 1,
  };
  sheets.set(head, made);
  return made;
}
