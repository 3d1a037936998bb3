// Attention maps of heads: their weights, and their pixels.
import { heatPixels } from "../core/colour";
import { el } from "../core/dom";
import { clamp, known, list } from "../core/format";
import { keysOf, queriesOf, type Head, type Role } from "../core/report";
import { signal } from "../core/signal";

export const hideFirst = signal(true);
export const hidesFirst = (head: Head): boolean => hideFirst() && head.stack !== "cross";

// A report lists the roles that were found, none other; no list at all: nobody looked for them.
export const hasRoles = (head: Head): boolean => Array.isArray(head.roles);
// The one that explains most of a head's attention stands first.
export const strongestRole = (head: Head): Role | null => list(head.roles).find((role) => known(role.score)) ?? null;

export interface AttentionMap {
  values: Uint8Array | null;  // [rows][columns] of 255 sqrt(weight); a long text has none
  top: readonly (readonly [number, number][])[];
  rows: number;
  columns: number;
  causal: boolean;
}

function decode(text: string): Uint8Array {
  const raw = atob(text), values = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) values[i] = raw.charCodeAt(i);
  return values;
}

const maps = new WeakMap<Head, AttentionMap>();
export function mapOf(head: Head): AttentionMap {
  const before = maps.get(head);
  if (before) return before;
  const rows = queriesOf(head).length, columns = keysOf(head).length;
  const decoded = head.map ? decode(head.map) : null;
  const values = decoded?.length === rows * columns ? decoded : null;
  const made: AttentionMap = { values, top: list(head.top), rows, columns, causal: false };
  made.causal = head.queries === head.keys && (head.stack ? head.stack === "decoder" : true) && !looksRight(made);
  maps.set(head, made);
  return made;
}
function looksRight({ values, top, rows, columns }: AttentionMap): boolean {
  if (!values) return top.some((row, i) => list(row).some(([key, weight]) => key > i && weight > 0));
  for (let i = 0; i < rows; ++i) for (let j = i + 1; j < columns; ++j) if (values[i * columns + j]) return true;
  return false;
}
export function weightAt(map: AttentionMap, i: number, j: number): number {
  if (map.values) return (map.values[i * map.columns + j] / 255) ** 2;
  const found = list(map.top[i]).find(([key]) => key === j);
  return found ? found[1] : 0;
}
// Exact where the report has it, from the map's bytes otherwise.
export function exactWeight(head: Head, row: number, column: number): number {
  const found = list(list(head.top)[row]).find(([key]) => key === column);
  return found ? found[1] : weightAt(mapOf(head), row, column);
}
// The keys of one row, largest first.
export function topKeys(head: Head, row: number): readonly (readonly [number, number])[] {
  const exact = list(list(head.top)[row]);
  if (exact.length) return exact;
  const map = mapOf(head);
  if (!map.values) return [];
  return Array.from({ length: map.columns }, (_, j) => [j, weightAt(map, row, j)] as const).sort((a, b) => b[1] - a[1]).slice(0, 8);
}
// The mean entropy in nats of a head that looks at all it may see alike.
export function mostEntropy({ rows, columns, causal }: AttentionMap): number {
  if (!causal) return Math.log(columns);
  let sum = 0;
  for (let i = 1; i <= rows; ++i) sum += Math.log(Math.min(i, columns));
  return sum / rows;
}
export function meanFirst(head: Head): number | null {
  if (known(head.first)) return head.first;
  const map = mapOf(head);
  let sum = 0;
  for (let i = 1; i < map.rows; ++i) sum += weightAt(map, i, 0);
  return map.rows > 1 ? sum / (map.rows - 1) : null;
}

// Pixels of a map, pooled to at most size x size cells by the largest weight. What may not be seen stays clear.
export function drawPixels(head: Head, size: number, map = mapOf(head)): HTMLCanvasElement {
  const skip = hidesFirst(head);
  if (!map.values && head.thumb) return drawThumb(head.thumb, map.causal);
  const height = Math.min(map.rows, size) || 1, width = Math.min(map.columns, size) || 1;
  const pooled = new Uint8Array(width * height);
  const columnOf = Uint16Array.from({ length: map.columns }, (_, j) => Math.floor((j * width) / map.columns));
  for (let i = 0; i < map.rows; ++i) {
    const to = Math.floor((i * height) / map.rows) * width, from = i * map.columns;
    if (!map.values) {
      for (const [j, weight] of list(map.top[i])) {
        const value = Math.round(255 * Math.sqrt(clamp(weight, 0, 1))), place = to + columnOf[j];
        if (!(skip && j === 0) && value > pooled[place]) pooled[place] = value;
      }
      continue;
    }
    const end = map.causal ? Math.min(i + 1, map.columns) : map.columns;
    for (let j = skip ? 1 : 0; j < end; ++j) {
      const value = map.values[from + j], place = to + columnOf[j];
      if (value > pooled[place]) pooled[place] = value;
    }
  }
  return paint(pooled, width, height, (i) => {
    const lastRow = Math.ceil(((i + 1) * map.rows) / height);
    return [skip && width === map.columns ? 1 : 0, map.causal ? Math.ceil((lastRow * width) / map.columns) : width];
  });
}

// What the server pooled itself: means of a long text; the first key is left out.
function drawThumb(thumb: NonNullable<Head["thumb"]>, causal: boolean): HTMLCanvasElement {
  return paint(decode(thumb.data), thumb.columns, thumb.rows, (i) => [0, causal ? Math.min(i + 1, thumb.columns) : thumb.columns]);
}

// seen(i): the columns of row i that may be seen, from and to.
function paint(values: Uint8Array, width: number, height: number, seen: (i: number) => [number, number]): HTMLCanvasElement {
  const made = el("canvas", { width, height });
  const context = made.getContext("2d")!;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < height; ++i) {
    const [from, to] = seen(i);
    for (let j = from; j < Math.min(to, width); ++j) pixels[i * width + j] = heatPixels[values[i * width + j]];
  }
  context.putImageData(image, 0, 0);
  return made;
}
