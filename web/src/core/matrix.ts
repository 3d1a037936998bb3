// Matrices drawn with their shapes and real numbers. Pointing at a cell lights what it was made of.
import { canvas, fitText, pointIn } from "./canvas";
import { heatColour, ink, signedColour } from "./colour";
import { el, type Child } from "./dom";
import { clamp, short } from "./format";
import { effect, signal } from "./signal";
import { shownNumber } from "./formula";
import { tip } from "./tip";

export interface Range { block: string; rows?: [number, number]; columns?: [number, number] }  // half-open; absent: all of them
export interface Made { formula: Child; from: Range[]; terms?: { names: [string, string]; a: readonly number[]; b: readonly number[] } }
export interface Block {
  id: string;
  name: Child;
  rows: number;
  columns: number;
  at: (i: number, j: number) => number;
  rowName?: (i: number) => string;
  columnName?: (j: number) => string;
  shape?: Child;                                 // what stands for "rows × columns": of a part of a larger matrix
  changes?: boolean;                             // its numbers follow what is pointed at
  kind?: "signed" | "share";                     // shares have the colours of attention
  line?: boolean;                                // it has a line of its own
  slice?: [number, number];                      // columns of the head that is shown
  made?: (i: number, j: number) => Made | null;  // how this cell came about
}
export interface Cell { block: string; row: number; column: number }
export const pointed = signal<Cell | null>(null);
export const pinned = signal<Cell | null>(null);

// The blocks of one picture, linked with one another.
export function blocks(all: readonly (Block | string)[]): { node: HTMLElement; made: () => { cell: Cell; block: Block; made: Made } | null } {
  const list = all.filter((one): one is Block => typeof one !== "string");
  const made = () => {
    const cell = pointed() ?? pinned(), block = list.find((one) => one.id === cell?.block);
    if (!cell || !block || cell.row >= block.rows || cell.column >= block.columns) return null;
    const how = block.made?.(cell.row, cell.column);
    return how ? { cell, block, made: how } : null;
  };
  // A sign stays with the block that follows it; of one with a line of its own it stands in the caption.
  const drawn: Child[] = [];
  let signs: Child[] = [];
  for (const one of all) {
    if (typeof one === "string") { signs.push(el("span", { class: "sign" }, one)); continue; }
    const wide = one.line || one.columns > wideFrom, block = drawBlock(one, () => made(), wide ? signs : []);
    drawn.push(signs.length && !wide ? el("div", { class: "signed" }, signs, block) : block);
    signs = [];
  }
  const node = el("div", { class: "blocks" }, drawn, signs);
  return { node, made };
}

const gutter = 64, wideFrom = 48, captionWide = 92;
function drawBlock(block: Block, made: () => { made: Made } | null, signs: Child[]): HTMLElement {
  const { rows, columns } = block, wide = block.line || columns > wideFrom, named = Boolean(block.rowName);
  const left = named ? gutter : 0, top = block.columnName && columns <= 20 ? 16 : 0;
  const largest = () => { let m = 0; for (let i = 0; i < rows; ++i) for (let j = 0; j < columns; ++j) m = Math.max(m, Math.abs(block.at(i, j))); return m || 1; };
  const fixed = block.changes ? 0 : largest();
  const cellHigh = rows === 1 ? 26 : rows <= 20 ? 22 : rows <= 64 ? 16 : clamp(300 / rows, 1, 14);
  const cellWide = (width: number) => Math.min((width - left) / columns, columns <= 10 ? 52 : 40);
  const lights = (): Range[] => made()?.made.from.filter((range) => range.block === block.id) ?? [];
  const own = () => { const cell = pointed() ?? pinned(); return cell?.block === block.id ? cell : null; };
  const picture = canvas(`${rows} × ${columns}`, () => top + rows * cellHigh + 2, (context, width) => {
    const w = cellWide(width), most = fixed || largest();
    context.textAlign = "center";
    for (let i = 0; i < rows; ++i) {
      for (let j = 0; j < columns; ++j) {
        const value = block.at(i, j), x = left + j * w, y = top + i * cellHigh, gap = w > 8 && cellHigh > 8 ? 1 : 0;
        context.fillStyle = block.kind === "share" ? heatColour(value) : signedColour(value, most);
        context.fillRect(x, y, Math.max(w - gap, 0.5), Math.max(cellHigh - gap, 0.5));
        if (w >= 34 && cellHigh >= 15) {
          context.font = `11px ${ink.mono}`;
          context.fillStyle = block.kind === "share" ? (value > 0.35 ? "#1d1a26" : "#fff") : ink.text;
          context.fillText(block.kind === "share" ? `${(100 * value).toFixed(value < 0.1 ? 1 : 0)}%` : short(value), x + w / 2, y + cellHigh / 2);
        }
      }
    }
    if (named) {
      context.textAlign = "right";
      context.font = `12px ${ink.font}`;
      const every = Math.ceil(12 / cellHigh);
      for (let i = 0; i < rows; i += every) {
        context.fillStyle = own()?.row === i ? ink.accent : ink.soft;
        context.fillText(fitText(context, block.rowName!(i), left - 8), left - 6, top + (i + 0.5) * cellHigh);
      }
    }
    if (top) {
      context.textAlign = "center";
      context.font = `10px ${ink.font}`;
      context.fillStyle = ink.soft;
      for (let j = 0; j < columns; ++j) context.fillText(block.columnName!(j), left + (j + 0.5) * w, 7);
    }
    const frame = ([r0, r1]: [number, number], [c0, c1]: [number, number], colour: string) => {
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(left + c0 * w + 0.5, top + r0 * cellHigh + 0.5, Math.max((c1 - c0) * w - 1, 2), Math.max((r1 - r0) * cellHigh - 1, 2));
    };
    if (block.slice) frame([0, rows], block.slice, ink.soft);
    for (const range of lights()) frame(range.rows ?? [0, rows], range.columns ?? [0, columns], ink.accent);
    const cell = own();
    if (cell) frame([cell.row, cell.row + 1], [cell.column, cell.column + 1], ink.text);
  });
  effect(() => { pointed(); pinned(); if (block.changes) block.at(0, 0); picture.paint(); });
  const hit = (event: MouseEvent): Cell | null => {
    const { x, y } = pointIn(picture.node, event), w = cellWide(picture.holder.clientWidth);
    const row = Math.floor((y - top) / cellHigh), column = Math.floor((x - left) / w);
    return row >= 0 && row < rows && column >= 0 && column < columns ? { block: block.id, row, column } : null;
  };
  const name = (cell: Cell) => `${block.rowName ? block.rowName(cell.row) : rows > 1 ? cell.row : ""}${columns > 1 ? ` [${cell.column}]` : ""}`;
  picture.node.addEventListener("pointermove", (event) => {
    const cell = hit(event);
    pointed.set(cell);
    if (cell) tip.show(event.clientX, event.clientY, el("b", {}, name(cell)), el("span", {}, shownNumber(block.at(cell.row, cell.column))));
    else tip.hide();
  });
  picture.node.addEventListener("pointerleave", () => { pointed.set(null); tip.hide(); });
  picture.node.addEventListener("click", (event) => pinned.set(hit(event)));
  const { holder } = picture;
  holder.tabIndex = 0;
  holder.setAttribute("role", "application");
  holder.setAttribute("aria-label", `${block.id} ${rows} × ${columns}`);
  holder.addEventListener("keydown", (event) => {
    const move = ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] } as Record<string, [number, number]>)[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const now = own() ?? { row: 0, column: -1 };
    pinned.set({ block: block.id, row: clamp(now.row + move[0], 0, rows - 1), column: clamp(now.column + move[1], 0, columns - 1) });
  });
  const size = wide ? "block wide" : "block";
  return el("figure", { class: size, "data-block": block.id, style: wide ? {} : { width: `${left + Math.max(columns * Math.min(columns <= 10 ? 52 : 40, Math.max(7, 420 / columns)), captionWide)}px` } },
    el("figcaption", {}, signs, el("b", {}, block.name), el("small", {}, " ", block.shape ?? `${rows} × ${columns}`)), holder);
}
