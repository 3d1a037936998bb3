// Two sentences as chips, one above the other, and attention as lines between them that follow the pointer.
import { onRepaint } from "../core/canvas";
import { el, svg, type Child } from "../core/dom";
import { list, percent, tokenName } from "../core/format";
import type { Head, Token } from "../core/report";
import { effect, onCleanup, signal } from "../core/signal";
import { meanSum, wordSpans, wordTokens } from "../core/word_spans";
import { chips, chipsOf } from "../parts/chips";

export type Weights = number[][];  // [row][key]
export interface Shown { source: readonly Token[]; target: readonly Token[]; encoder: Weights | null; decoder: Weights | null; cross: Weights | null }

// The mean over some heads of one attention; from the whole maps, or from the largest weights of a long text.
export function meanWeights(heads: readonly Head[], rows: number, columns: number): Weights | null {
  if (!heads.length) return null;
  const mean: Weights = Array.from({ length: rows }, () => new Array<number>(columns).fill(0));
  for (const head of heads) {
    if (head.map) {
      const bytes = atob(head.map);
      for (let i = 0; i < rows; ++i) for (let j = 0; j < columns; ++j) mean[i][j] += (bytes.charCodeAt(i * columns + j) / 255) ** 2 / heads.length;
    } else {
      list(head.top).forEach((row, i) => list(row).forEach(([key, weight]) => { if (mean[i]) mean[i][key] += weight / heads.length; }));
    }
  }
  return mean;
}

// The same between words. What a target's token looks at is the row before it, so a word's rows are those before its tokens.
export function wordsOf(shown: Shown): Shown {
  const merged = (weights: Weights | null, rows: readonly Token[], keys: readonly Token[], ahead: number): Weights | null => weights && wordSpans(rows).slice(ahead).map(({ begin, end }) =>
    wordSpans(keys).map((key) => meanSum({ begin: begin - ahead, end: end - ahead }, key, (i, j) => weights[i]?.[j] ?? 0)));
  return { source: wordTokens(shown.source), target: wordTokens(shown.target), encoder: merged(shown.encoder, shown.source, shown.source, 0), decoder: merged(shown.decoder, shown.target, shown.target, 1), cross: merged(shown.cross, shown.target, shown.source, 1) };
}

type Side = "source" | "target";
interface Line { from: [Side, number]; to: [Side, number]; weight: number; stack: "encoder" | "decoder" | "cross" }
const faint = 0.02;

// The lines of what is pointed at; without it the strongest of each token.
export function linesOf(shown: Shown, pointed: { side: Side; index: number } | null): Line[] {
  const all: Line[] = [];
  const add = (stack: Line["stack"], weights: Weights | null, rowSide: Side, keySide: Side, rowOf: (token: number) => number, tokens: number) => {
    if (!weights) return;
    for (let t = stack === "encoder" ? 0 : 1; t < tokens; ++t) {
      const row = weights[rowOf(t)];
      if (!row) continue;
      const own = pointed?.side === rowSide && pointed.index === t;
      const best = row.indexOf(Math.max(...row));
      row.forEach((weight, key) => {
        const meant = !pointed ? key === best && weight > 0.05 : own || (stack === "cross" && pointed.side === keySide && pointed.index === key);
        if (meant && weight > faint) all.push({ from: [rowSide, t], to: [keySide, key], weight, stack });
      });
    }
  };
  // What a token of the target looks at is the row that predicts it: the one before.
  add("cross", shown.cross, "target", "source", (t) => t - 1, shown.target.length);
  add("encoder", shown.encoder, "source", "source", (t) => t, shown.source.length);
  add("decoder", shown.decoder, "target", "target", (t) => t - 1, shown.target.length);
  return all;
}

export function linesBetween(shown: Shown): Child {
  const pointed = signal<{ side: Side; index: number } | null>(null);
  const rows: Record<Side, HTMLElement> = { source: chips(shown.source, { onPick: (i) => pointed.set({ side: "source", index: i }) }), target: chips(shown.target, { onPick: (i) => pointed.set({ side: "target", index: i }) }) };
  const picture = svg("svg", { class: "lines", "aria-hidden": "true" });
  const reading = el("p", { class: "reading", "aria-live": "polite" }, () => {
    const at = pointed();
    if (!at) return "";
    const best = linesOf(shown, at).filter((line) => line.stack === "cross").sort((a, b) => b.weight - a.weight).slice(0, 4);
    const name = (side: Side, i: number) => tokenName(shown[side], i);
    return `${name(at.side, at.index)} ${at.side === "target" ? "→" : "←"} ${best.map((line) => `${name(...(at.side === "target" ? line.to : line.from))} ${percent(line.weight)}`).join(" · ")}`;
  });
  const arch = shown.encoder || shown.decoder ? "lines-holder arched" : "lines-holder";
  const holder = el("div", { class: arch }, el("div", { class: "line-row" }, rows.source), picture, el("div", { class: "line-row" }, rows.target));
  const draw = () => {
    const box = holder.getBoundingClientRect(), at = pointed();
    if (!box.width) return;
    const nodes: Record<Side, NodeListOf<HTMLElement>> = { source: chipsOf(rows.source), target: chipsOf(rows.target) };
    const place = (side: Side, i: number, bottom: boolean): [number, number] => {
      const chip = nodes[side][i].getBoundingClientRect();
      return [chip.left + chip.width / 2 - box.left, (bottom ? chip.bottom : chip.top) - box.top];
    };
    const lines = linesOf(shown, at);
    picture.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    picture.replaceChildren(...lines.map((line) => {
      const strength = Math.sqrt(line.weight);
      const style = { class: `line ${line.stack}`, "stroke-width": (0.8 + 7 * strength).toFixed(1), opacity: (at ? 0.2 + 0.8 * strength : 0.25 + 0.5 * strength).toFixed(2) };
      if (line.stack === "cross") {
        const [x1, y1] = place("target", line.from[1], false), [x2, y2] = place("source", line.to[1], true), middle = (y1 + y2) / 2;
        return svg("path", { d: `M${x1} ${y1} C ${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`, ...style });
      }
      const above = line.stack === "encoder", [x1, y1] = place(line.from[0], line.from[1], !above), [x2, y2] = place(line.to[0], line.to[1], !above);
      const high = Math.min(14 + Math.abs(x1 - x2) * 0.3, 44) * (above ? -1 : 1);
      return svg("path", { d: `M${x1} ${y1} C ${x1} ${y1 + high} ${x2} ${y2 + high} ${x2} ${y2}`, ...style });
    }));
    const lit: Record<Side, number[]> = { source: [], target: [] };
    if (at) for (const line of lines) for (const [side, i] of [line.from, line.to]) lit[side][i] = Math.max(lit[side][i] ?? 0, line.weight);
    for (const side of ["source", "target"] as const) nodes[side].forEach((node, i) => {
      node.style.setProperty("--p", Math.sqrt(at?.side === side && at.index === i ? 0 : lit[side][i] ?? 0).toFixed(3));
      node.classList.toggle("chosen", at?.side === side && at.index === i);
    });
  };
  const over = (event: Event) => {
    const node = (event.target as Element).closest<HTMLElement>(".chip");
    if (node) pointed.set({ side: rows.source.contains(node) ? "source" : "target", index: Number(node.dataset.token) });
  };
  holder.addEventListener("pointerover", over);
  holder.addEventListener("focusin", over);
  holder.addEventListener("pointerleave", () => pointed.set(null));
  effect(() => { pointed(); requestAnimationFrame(draw); });
  const observer = new ResizeObserver(() => draw());
  observer.observe(holder);
  onCleanup(() => observer.disconnect());
  onRepaint(draw);
  return [el("div", { class: "lines-scroll", tabindex: "0", role: "group" }, holder), reading];
}
