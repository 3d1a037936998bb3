// The map of a long text: an overview of 256 x 256 cells, and exact tiles where one looks closer. Only what is seen is
// asked for, as binary frames; a frame is drawn from what is there.
import { askBytes } from "../core/api";
import { canvas, fitText, pointIn, textWidth } from "../core/canvas";
import { ink } from "../core/colour";
import { el, type Child } from "../core/dom";
import { axisName, clamp } from "../core/format";
import { framePixels, readFrame, type Frame } from "../core/frames";
import { subject } from "../core/looking";
import { keysOf, queriesOf, type Head } from "../core/report";
import { computed, effect, onCleanup, signal, untracked, type Signal } from "../core/signal";
import { words } from "../core/words";
import { drawPixels, hideFirst, hidesFirst, mapOf } from "./maps";

const say = words({
  en: { closer: "Closer", further: "Further away", whole: "Whole map", hint: "Drag to move, + and − or ctrl and wheel to zoom. Close up, every cell is exact.", cell: (n: number) => `one cell = ${n} × ${n} tokens`, exact: "exact" },
  zh: { closer: "放大", further: "缩小", whole: "整张图", hint: "拖动平移；用 + 和 −，或按住 ctrl 滚动来缩放。放大后每一格都是精确值。", cell: (n: number) => `一格 = ${n} × ${n} 个词元`, exact: "精确" },
});

const arrows: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const side = 256, mostTiles = 96, mostAsked = 4;
export interface RowWeights { row: number; first: number; values: Float32Array }
export interface LongMap { holder: HTMLElement; weightAt: (row: number, column: number) => number | null; row: () => RowWeights | null }
interface View { x: number; y: number; scale: number }  // the token at the upper left corner, and pixels of a token
interface Tile { frame: Frame; image: HTMLCanvasElement }

// Frames of one head: what was asked for stays, the least used goes first.
class Frames {
  private tiles = new Map<string, Tile | null>();  // null: asked for
  private asked = 0;
  readonly abort = new AbortController();
  constructor(private readonly body: object, private readonly causal: boolean, private readonly hide: boolean, private readonly come: () => void) {}

  private async load(key: string, path: string, more: object): Promise<void> {
    ++this.asked;
    this.tiles.set(key, null);
    try {
      const frame = readFrame(await askBytes(path, { ...this.body, ...more }, this.abort.signal));
      this.tiles.set(key, { frame, image: framePixels(frame, this.causal, this.hide) });
    } catch {
      if (this.abort.signal.aborted) return;  // refused or gone: the thumbnail stays
    } finally {
      --this.asked;
    }
    if (this.tiles.size > mostTiles) for (const [old] of this.tiles) { if (old !== "overview") { this.tiles.delete(old); break; } }
    this.come();
  }
  overview(): Tile | null {
    if (!this.tiles.has("overview")) void this.load("overview", "/page/overview", {});
    return this.tiles.get("overview") ?? null;
  }
  tile(i: number, j: number, ask = true): Tile | null {
    const key = `${i} ${j}`, found = this.tiles.get(key);
    if (found) { this.tiles.delete(key); this.tiles.set(key, found); return found; }
    if (ask && found === undefined && this.asked < mostAsked) void this.load(key, "/page/tile", { rows: [i * side, (i + 1) * side], columns: [j * side, (j + 1) * side] });
    return null;
  }
}

export function longMap(shown: () => Head, hovered: Signal<{ row: number; column: number } | null>, row: () => number, column: () => number): LongMap {
  const view = signal<View | null>(null);  // null: all of it
  const rowWeights = signal<RowWeights | null>(null);
  let frames: Frames | null = null, size = 1;
  const sizes = () => ({ rows: queriesOf(shown()).length, columns: keysOf(shown()).length });
  const fit = () => { const { rows, columns } = sizes(); return size / Math.max(rows, columns, 1); };
  const now = (): View => view() ?? { x: 0, y: 0, scale: fit() };
  const move = (next: View) => {
    const { rows, columns } = sizes(), scale = clamp(next.scale, fit(), 28), room = size / scale;
    view.set(scale <= fit() * 1.001 ? null : { scale, x: clamp(next.x, 0, Math.max(columns - room, 0)), y: clamp(next.y, 0, Math.max(rows - room, 0)) });
  };
  const zoom = (factor: number, at = { x: size / 2, y: size / 2 }) => {
    const { x, y, scale } = untracked(now), next = clamp(scale * factor, fit(), 28);
    move({ scale: next, x: x + at.x / scale - at.x / next, y: y + at.y / scale - at.y / next });
  };
  const picture = canvas(say("whole"), (width) => Math.min(width, 620), (context, width, height) => {
    size = Math.min(width, height);
    untracked(() => draw(context, { head: shown(), view: now(), size, frames, row: row(), column: column() }));
  });
  effect(() => {  // another head, another text: other frames
    const head = shown(), made = new Frames({ ...untracked(subject), head: head.name }, mapOf(head).causal, hideFirst() && hidesFirst(head), picture.paint);
    frames = made;
    rowWeights.set(null);
    onCleanup(() => made.abort.abort());
    picture.paint();
  });
  effect(() => { shown(); row(); column(); view(); picture.paint(); });
  effect(() => {  // the row that is pointed at, for the words below
    const head = shown(), i = row(), abort = new AbortController();
    if (head.top) return;
    const first = Math.max(0, Math.min(i + 1, sizes().columns) - side), body = { ...untracked(subject), head: head.name, rows: [i, i + 1], columns: [first, first + side] };
    const timer = setTimeout(() => askBytes("/page/tile", body, abort.signal).then((got) => { if (!abort.signal.aborted) rowWeights.set({ row: i, first, values: readFrame(got).cells }); }, () => {}), 120);
    onCleanup(() => { clearTimeout(timer); abort.abort(); });
  });

  const { holder } = picture;
  holder.classList.add("bigmap", "longmap");
  holder.tabIndex = 0;
  holder.setAttribute("role", "application");
  holder.setAttribute("aria-label", say("hint"));
  const hit = (event: MouseEvent) => {
    const { x, y } = pointIn(picture.node, event), v = untracked(now), { rows, columns } = untracked(sizes);
    const found = { row: Math.floor(v.y + y / v.scale), column: Math.floor(v.x + x / v.scale) };
    return found.row >= 0 && found.row < rows && found.column >= 0 && found.column < columns ? found : null;
  };
  let grabbed: { x: number; y: number; view: View } | null = null;
  holder.addEventListener("pointerdown", (event) => {
    grabbed = { ...pointIn(picture.node, event), view: untracked(now) };
    if (view.peek()) holder.setPointerCapture(event.pointerId);
  });
  holder.addEventListener("pointerup", () => { grabbed = null; });
  holder.addEventListener("pointermove", (event) => {
    if (grabbed && event.buttons && view.peek()) {
      const at = pointIn(picture.node, event), { scale } = grabbed.view;
      return move({ scale, x: grabbed.view.x - (at.x - grabbed.x) / scale, y: grabbed.view.y - (at.y - grabbed.y) / scale });
    }
    hovered.set(hit(event) ?? hovered.peek());
  });
  holder.addEventListener("dblclick", (event) => zoom(2.5, pointIn(picture.node, event)));
  holder.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== holder) return;  // else the page scrolls
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), pointIn(picture.node, event));
  }, { passive: false });
  holder.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") view.set(null);
    else if (arrows[event.key]) {
      const [down, right] = arrows[event.key], { rows, columns } = untracked(sizes);
      untracked(() => hovered.set({ row: clamp(row() + down, 0, rows - 1), column: clamp(Math.max(column(), 0) + right, 0, columns - 1) }));
    } else return;
    event.preventDefault();
  });
  const button = (name: "closer" | "further" | "whole", sign: string, work: () => void) => el("button", { type: "button", class: "small-button", "aria-label": say(name), title: say(name), onclick: work }, sign);
  // What one cell is changes seldom, the view in every frame: nothing of the page is laid out anew for the same words.
  const cellSays = computed(() => { view(); const { rows, columns } = sizes(), pooled = Math.ceil(Math.max(rows, columns) / side); return closeUp(now().scale, size) ? say("exact") : say("cell")(pooled); });
  const tools = el("p", { class: "map-tools" }, button("closer", "+", () => zoom(1.8)), button("further", "−", () => zoom(1 / 1.8)), button("whole", "⤢", () => view.set(null)),
    el("span", { class: "fine" }, cellSays));
  return {
    holder: el("div", {}, holder, tools, el("p", { class: "hint" }, say("hint")) as Child as Node),
    row: rowWeights,
    weightAt: (i, j) => {
      const found = frames?.tile(Math.floor(i / side), Math.floor(j / side), false)?.frame, kept = rowWeights();
      if (found) return found.cells[(i - found.firstRow) * found.columns + (j - found.firstColumn)] ?? null;
      return kept && kept.row === i && j >= kept.first && j < kept.first + kept.values.length ? kept.values[j - kept.first] : null;
    },
  };
}

// Tiles are drawn once they are few: at most five a side.
const closeUp = (scale: number, size: number): boolean => size / scale <= 4 * side;

// The part of an image that is seen: drawn whole, far more than the canvas would be worked through.
function drawSeen(context: CanvasRenderingContext2D, image: HTMLCanvasElement, left: number, top: number, cell: number, size: number): void {
  const from = Math.max(Math.floor(-left / cell), 0), upTo = Math.min(Math.ceil((size - left) / cell), image.width);
  const down = Math.max(Math.floor(-top / cell), 0), downTo = Math.min(Math.ceil((size - top) / cell), image.height);
  if (upTo > from && downTo > down) context.drawImage(image, from, down, upTo - from, downTo - down, left + from * cell, top + down * cell, (upTo - from) * cell, (downTo - down) * cell);
}

interface Drawn { head: Head; view: View; size: number; frames: Frames | null; row: number; column: number }
function draw(context: CanvasRenderingContext2D, { head, view, size, frames, row, column }: Drawn): void {
  const map = mapOf(head), { x, y, scale } = view;
  const wide = map.columns * scale, high = map.rows * scale;
  context.save();
  context.beginPath();
  context.rect(0, 0, size, size);
  context.clip();
  context.fillStyle = ink.sunk;
  context.fillRect(0, 0, size, size);
  context.imageSmoothingEnabled = false;
  const base = frames?.overview();
  if (base) drawSeen(context, base.image, -x * scale, -y * scale, base.frame.pooled * scale, size);
  else context.drawImage(thumbOf(head), -x * scale, -y * scale, wide, high);
  if (closeUp(scale, size) && frames) {
    const end = size / scale;
    for (let i = Math.floor(y / side); i * side < Math.min(y + end, map.rows); ++i) {
      for (let j = Math.floor(x / side); j * side < Math.min(x + end, map.columns); ++j) {
        if (map.causal && j > i) continue;
        const tile = frames.tile(i, j);
        if (!tile) continue;
        const left = Math.round((j * side - x) * scale), top = Math.round((i * side - y) * scale);
        context.fillStyle = ink.sunk;
        context.fillRect(left, top, Math.ceil(tile.image.width * scale), Math.ceil(tile.image.height * scale));
        drawSeen(context, tile.image, left, top, scale, size);
      }
    }
  }
  context.strokeStyle = "rgba(255,255,255,0.75)";
  context.lineWidth = 1;
  if (row >= 0) context.strokeRect(-1, (row - y) * scale + 0.5, size + 2, Math.max(scale - 1, 1));
  if (column >= 0) context.strokeRect((column - x) * scale + 0.5, -1, Math.max(scale - 1, 1), size + 2);
  if (scale >= 11) names(context, head, view, size);
  context.restore();
}

// The words along both edges, where there is room for them.
function names(context: CanvasRenderingContext2D, head: Head, { x, y, scale }: View, size: number): void {
  const queries = queriesOf(head), keys = keysOf(head);
  context.font = `${Math.round(Math.min(scale * 0.7, 12))}px ${ink.font}`;  // few sizes, so that widths are known
  context.textAlign = "left";
  const paint = (text: string, px: number, py: number) => {
    context.fillStyle = "rgba(0,0,0,0.55)";
    context.fillRect(px - 2, py - scale / 2, textWidth(context, text) + 4, scale);
    context.fillStyle = "#fff";
    context.fillText(text, px, py);
  };
  for (let i = Math.ceil(y); i < Math.min(y + size / scale, queries.length); ++i) paint(fitText(context, axisName(queries, i), 70), 3, (i - y + 0.5) * scale);
  context.save();
  context.rotate(-Math.PI / 2);
  for (let j = Math.ceil(x); j < Math.min(x + size / scale, keys.length); ++j) paint(fitText(context, axisName(keys, j), 70), -75, (j - x + 0.5) * scale);
  context.restore();
}

const thumbs = new WeakMap<Head, HTMLCanvasElement>();
function thumbOf(head: Head): HTMLCanvasElement {
  let made = thumbs.get(head);
  if (!made) thumbs.set(head, (made = drawPixels(head, side)));
  return made;
}
