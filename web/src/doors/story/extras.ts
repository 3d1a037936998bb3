// Pictures of the documents: how the columns of W_Q are split among the heads, and how training moves embeddings.
import { el, math, type Child } from "../../core/dom";
import { visible } from "../../core/format";
import { formula, frac, given, mi, mn, row, shownNumber, sub } from "../../core/formula";
import type { Candidate } from "../../core/report";
import * as store from "../../core/store";
import { weight, type Numbers } from "./data";
import { say } from "./words";
import type { Context, Stage } from "./stages";

// x W = q of all heads side by side; the frame is the head that is shown. A click shows another one.
export function headSplit(n: Numbers, matrix: "q" | "k" | "v"): Child {
  const heads = matrix === "q" ? n.heads : n.kv_heads, own = matrix === "q" ? n.head : n.kv_head, wide = matrix === "v" ? n.value_width : n.head_width, letter = matrix.toUpperCase();
  const choose = (h: number) => { store.head.set(`L${n.layer}H${matrix === "q" ? h : Math.floor((h * n.heads) / n.kv_heads)}`); store.locked.set(true); };
  const slices = (label: (h: number) => string) => Array.from({ length: heads }, (_, h) => el("button", { type: "button", class: h === own ? "slice own" : "slice", title: label(h), "aria-label": label(h), "aria-pressed": String(h === own), onclick: () => choose(h) }, heads <= 16 ? String(h) : ""));
  return el("figure", { class: "head-split" }, el("figcaption", {}, say("splitTitle")(heads, wide)),
    el("div", { class: "split-row" },
      el("div", { class: "split-x" }, el("span", {}, "n"), el("small", {}, `1 × ${n.width}`)), el("span", { class: "sign" }, "×"),
      el("div", { class: "split-w" }, el("div", { class: "slices tall" }, slices((h) => `${say("chooseHead")} ${h}: ${n.width} × ${wide}`)), el("small", {}, `W_${letter} ${n.width} × ${heads * wide}`)), el("span", { class: "sign" }, "="),
      el("div", { class: "split-w" }, el("div", { class: "slices" }, slices((h) => `${matrix}, ${say("chooseHead")} ${h}: 1 × ${wide}`)), el("small", {}, `${matrix} 1 × ${heads * wide} = ${heads} × ${wide}`))));
}

// One step of plain gradient descent on the embedding of the token, with the gradient of the whole text's loss.
export function learnStage({ update }: Context): Stage | null {
  if (!update) return null;
  const { row: before, gradient, id, uses, tied, loss } = update, after = before.map((w, j) => w - rate * gradient[j]), fall = rate * gradient.reduce((sum, g) => sum + g * g, 0);
  const vector = (block: string, name: Child, values: readonly number[]) => ({ id: block, name, rows: 1, columns: values.length, at: (_: number, j: number) => values[j] });
  return {
    name: "learn", start: { block: "after", row: 0, column: 0 }, text: say("texts").learn({ loss: shownNumber(loss), rate, fall: shownNumber(fall), uses, tied }),
    blocks: [vector("before", ["E[", String(id), "]"], before), `− ${rate} ×`, vector("gradient", "∂L/∂E", gradient), "=",
      { ...vector("after", ["E′[", String(id), "]"], after), made: (_, j) => ({
        formula: formula(sub("E′", row(math("mn", id), ",", math("mn", j))), "=", sub("E", row(math("mn", id), ",", math("mn", j))), "−", mi("η"), "×", frac(mi("∂L"), row("∂", sub("E", row(math("mn", id), ",", math("mn", j))))), "=", mn(before[j]), "−", given(rate), "×", gradient[j] < 0 ? row("(", mn(gradient[j]), ")") : mn(gradient[j]), "=", mn(after[j])),
        from: [{ block: "before", columns: [j, j + 1] }, { block: "gradient", columns: [j, j + 1] }] }) }],
  };
}

// One step of plain gradient descent on the vector of the likeliest next token, were it the right one. Of the loss -ln p
// the gradient by that row of W_U is -(1 - p) n: exact, with the numbers that stand here.
const rate = 0.1;
export function updateStage({ model }: Context, final: readonly number[], next: Candidate): Stage | null {
  const before = weight(model, { layer: 0, matrix: "head", columns: [next.id, next.id + 1] })?.values.map((line) => line[0]);
  if (!before) return null;
  const step = rate * (1 - next.p), after = before.map((w, j) => w + step * final[j]), rise = step * final.reduce((sum, x) => sum + x * x, 0);
  const vector = (id: string, name: Child, values: readonly number[]) => ({ id, name, rows: 1, columns: values.length, at: (_: number, j: number) => values[j] });
  return {
    name: "update", start: { block: "after", row: 0, column: 0 }, text: say("texts").update({ token: visible(next.text), p: shownNumber(next.p), rate, rise: shownNumber(rise) }),
    blocks: [vector("before", ["W_U[", visible(next.text), "]"], before), "+", `${rate} × (1 − ${shownNumber(next.p)}) ×`, vector("n", "n", final), "=",
      { ...vector("after", ["W_U′[", visible(next.text), "]"], after), made: (_, j) => ({
        formula: formula(sub("w′", j), "=", sub("w", j), "+", mi("η"), row("(", math("mn", 1), "−", mi("p"), ")"), sub("n", j), "=", mn(before[j]), "+", given(rate), "×", mn(1 - next.p), "×", mn(final[j]), "=", mn(after[j])),
        from: [{ block: "before", columns: [j, j + 1] }, { block: "n", columns: [j, j + 1] }] }) }],
  };
}
