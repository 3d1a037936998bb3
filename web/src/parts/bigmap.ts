// The large map of one head: rows are queries, columns are keys; and where one token looks.
import { live } from "../core/api";
import { canvas, fitText, pointIn } from "../core/canvas";
import { ink, roleColour } from "../core/colour";
import { el, type Child } from "../core/dom";
import { axisName, clamp, known, list, percent, roleName, score, tokenName } from "../core/format";
import { queriesOf, report, type Head } from "../core/report";
import { effect, signal } from "../core/signal";
import * as store from "../core/store";
import { say } from "../core/words";
import { chips, chipsOf } from "./chips";
import { chosenToken } from "./ladder";
import { longMap, type RowWeights } from "./longmap";
import { drawPixels, hasRoles, hideFirst, hidesFirst, mapOf, meanFirst, mostEntropy, weightAt, type AttentionMap } from "./maps";
import { byWords, byWordsBox, canMerge, sheetOf, type Sheet } from "./sheet";

export interface BigMap { panel: HTMLElement; row: () => number }

export function bigMap(shown: () => Head, more: { title?: (head: Head) => Child; above?: () => Child } = {}): BigMap {
  const hovered = signal<{ row: number; column: number } | null>(null);
  const sheet = () => sheetOf(shown());
  // The row is the selected token's; the encoder's and others have rows of their own.
  const row = () => {
    const now = sheet(), rows = now.queries.length;
    return clamp(hovered()?.row ?? (now.head.queries === "tokens" ? now.rowOf(chosenToken(queriesOf(now.head).length)) : rows - 1), 0, rows - 1);
  };
  const column = () => Math.min(hovered()?.column ?? -1, sheet().keys.length - 1);

  const picture = canvas(say("wallTitle"), (width) => {
    const g = geometry(sheet(), width);
    return g.top + g.cell * g.map.rows + 4;
  }, (context, width) => draw(context, width, sheet(), row(), column()));
  const { holder } = picture;
  holder.classList.add("bigmap");
  holder.tabIndex = 0;
  holder.setAttribute("role", "application");
  holder.setAttribute("aria-label", say("bigMapHint"));
  effect(() => { sheet(); row(); column(); hideFirst(); picture.paint(); });
  effect(() => { byWords(); hovered.set(null); });  // what was pointed at has another number

  const hit = (event: MouseEvent) => {
    const { x, y } = pointIn(picture.node, event), g = geometry(sheet(), holder.clientWidth);
    const row = Math.floor((y - g.top) / g.cell), column = Math.floor((x - g.left) / g.cell);
    return row >= 0 && row < g.map.rows && x > 0 ? { row, column: column >= 0 && column < g.map.columns ? column : -1 } : null;
  };
  holder.addEventListener("pointermove", (event) => hovered.set(hit(event) ?? hovered.peek()));
  holder.addEventListener("pointerleave", () => hovered.set(null));
  holder.addEventListener("click", (event) => {
    const found = hit(event);
    hovered.set(found);
    if (found && shown().queries === "tokens") store.token.set(sheet().tokenOf(found.row));
  });
  holder.addEventListener("keydown", (event) => {
    const move = ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] } as Record<string, [number, number]>)[event.key];
    if (!move) return;
    event.preventDefault();
    const { map } = sheet();
    hovered.set({ row: clamp(row() + move[0], 0, map.rows - 1), column: clamp(Math.max(column(), 0) + move[1], 0, map.columns - 1) });
    if (shown().queries === "tokens") store.token.set(sheet().tokenOf(row()));
  });

  // Of a text that is too long for whole maps, parts are asked for where one looks.
  const long = live() && !shown().map && shown().thumb ? longMap(shown, hovered, row, column) : null;
  const reading = el("p", { class: "reading", "aria-live": "polite" }, () => {
    const { head, queries, keys, weight } = sheet();
    return column() >= 0 ? say("looksAt")(tokenName(queries, row()), tokenName(keys, column()), percent(long?.weightAt(row(), column()) ?? (head.top || head.map ? weight(row(), column()) : null)))
      : say("rowOf")(tokenName(queries, row()));
  });
  const panel = el("div", { class: () => (store.locked() ? "map-panel is-locked" : "map-panel") },
    () => title(shown(), more.title), more.above ?? null, long ? long.holder : [holder, () => (canMerge(shown()) ? byWordsBox() : null)], reading, strip(sheet, row, column, () => long?.row() ?? null), el("div", { class: "roles" }, () => meters(shown())));
  return { panel, row: () => sheet().tokenOf(row()) };
}

function title(head: Head, more?: (head: Head) => Child): Child {
  const tag = (name: string, text: string) => el("span", { class: "role-tag", style: { "--role": name ? roleColour(name) : "var(--line)" } }, text);
  return el("h3", { class: "map-name" }, el("b", {}, head.name),
    !hasRoles(head) ? "" : list(head.roles).length ? list(head.roles).slice(0, 4).map((role) => tag(role.name, roleName(role.name))) : tag("", say("noRole")),
    () => (store.locked() ? el("button", { type: "button", class: "lock", onclick: () => store.locked.set(false) }, `${say("locked")} · ${say("unlock")}`) : ""),
    more?.(head));
}

// The keys as chips, as deep as the row looks at them. At most a window of a long text.
const windowSize = 400;
function strip(sheet: () => Sheet, row: () => number, column: () => number, exact: () => RowWeights | null): HTMLElement {
  const holder = el("div", { class: "strip", tabindex: "0", role: "group", "aria-label": say("key") });
  let madeFor = "", first = 0;
  effect(() => {
    const { head, keys, map } = sheet(), i = row();
    const far = head.top || head.map ? null : exact();  // of a long text: the keys before the row
    const start = far ? far.first : keys.length <= windowSize ? 0 : clamp(i - windowSize / 2, 0, keys.length - windowSize);
    if (madeFor !== `${head.keys} ${start} ${keys.length}`) holder.replaceChildren(...chips(start || keys.length > windowSize ? keys.slice(start, start + windowSize) : keys).childNodes);
    madeFor = `${head.keys} ${start} ${keys.length}`;
    first = start;
    chipsOf(holder).forEach((node, k) => {
      const j = first + k;
      node.style.setProperty("--p", (hidesFirst(head) && j === 0 ? 0 : Math.sqrt(far && far.row === i ? far.values[j - far.first] ?? 0 : weightAt(map, i, j))).toFixed(3));
      node.classList.toggle("unseen", map.causal && j > i);
      node.classList.toggle("asking", head.queries === head.keys && j === i);
    });
  });
  effect(() => {
    const chosen = column() - first;
    sheet();
    chipsOf(holder).forEach((node, k) => node.classList.toggle("answering", k === chosen));
  });
  return holder;
}

function meters(head: Head): Child {
  const meter = (label: string, value: number, colour: string, note: { low?: number; high?: number; n?: number } | null, text?: string) => el("div", { class: "meter" }, el("span", {}, label),
    el("span", { class: "bar-track" }, el("i", { style: { width: `${clamp(value, 0, 1) * 100}%`, background: colour } }),
      known(note?.low) && known(note?.high) ? el("em", { style: { left: `${clamp(note.low, 0, 1) * 100}%`, width: `${clamp(note.high - note.low, 0, 1) * 100}%` } }) : null),
    el("span", { class: "bar-value" }, text ?? score(value)), el("small", {}, known(note?.n) ? `n ${note.n}` : text ? say("nats") : ""));
  const first = head.stack !== "cross" ? meanFirst(head) : null;
  return [[...list(head.roles)].sort((a, b) => b.score - a.score).slice(0, 6).map((r) => meter(roleName(r.name), r.score, roleColour(r.name), r)),
    known(head.entropy) ? meter(say("entropy"), head.entropy / (mostEntropy(mapOf(head)) || 1), "var(--soft)", null, score(head.entropy)) : "",
    known(first) ? meter(say("firstMass"), first, "var(--faint)", null) : ""];
}

function geometry({ map }: Sheet, width: number) {
  const left = clamp(width * 0.17, 48, 84), top = 64;
  const cell = Math.min((width - left - 6) / map.columns, Math.max(440, width * 0.6) / map.rows, 40);
  return { map, left, top, cell };
}

let pixels: { of: AttentionMap; hide: boolean; image: HTMLCanvasElement } | null = null;
function draw(context: CanvasRenderingContext2D, width: number, sheet: Sheet, row: number, column: number): void {
  const { map, left, top, cell } = geometry(sheet, width), hide = hideFirst.peek();
  if (pixels?.of !== map || pixels.hide !== hide) pixels = { of: map, hide, image: drawPixels(sheet.head, 1024, map) };
  const w = cell * map.columns, h = cell * map.rows;
  context.fillStyle = ink.sunk;
  context.fillRect(left, top, w, h);
  context.imageSmoothingEnabled = false;
  context.drawImage(pixels.image, left, top, w, h);
  if (row >= 0) {
    context.strokeStyle = "rgba(255,255,255,0.85)";
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + row * cell + 0.5, w - 1, Math.max(cell - 1, 1));
    if (column >= 0) context.strokeRect(left + column * cell + 0.5, top + 0.5, Math.max(cell - 1, 1), h - 1);
  }
  const size = clamp(cell * 0.72, 9, 13), every = Math.max(Math.ceil(11 / cell), 1);
  const shown = (i: number, lit: number) => i === lit || every === 1 || (i % every === 0 && (lit < 0 || Math.abs(i - lit) >= every));
  const style = (lit: boolean) => {
    context.font = `${lit ? "600 " : ""}${lit ? Math.max(size, 12) : size}px ${ink.font}`;
    context.fillStyle = lit ? ink.accent : ink.soft;
  };
  const { queries, keys } = sheet;
  context.textAlign = "right";
  for (let i = 0; i < map.rows; ++i) {
    if (!shown(i, row)) continue;
    style(i === row);
    context.fillText(fitText(context, axisName(queries, i), left - 10), left - 6, top + (i + 0.5) * cell);
  }
  context.textAlign = "left";
  for (let j = 0; j < map.columns; ++j) {
    if (!shown(j, column)) continue;
    context.save();
    context.translate(left + (j + 0.5) * cell, top - 6);
    context.rotate(-Math.PI / 3);
    style(j === column);
    context.fillText(fitText(context, axisName(keys, j), 62), 0, 0);
    context.restore();
  }
}

// A small map of one head with one row marked.
export function headMap(name: string, row: number): Child {
  const head = list(report().heads).find((one) => one.name === name);
  if (!head) return null;
  const size = 240, picture = canvas(name, () => size, (context) => {
    const map = mapOf(head), high = size / map.rows;
    context.fillStyle = ink.sunk;
    context.fillRect(0, 0, size, size);
    context.imageSmoothingEnabled = false;
    context.drawImage(drawPixels(head, 256), 0, 0, size, size);
    context.strokeStyle = ink.accent;
    context.lineWidth = 2;
    context.strokeRect(1, row * high, size - 2, Math.max(high, 2));
  });
  picture.holder.classList.add("head-map");
  return el("figure", { class: "block" }, el("figcaption", {}, name), picture.holder);
}
