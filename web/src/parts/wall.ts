// The wall of heads: a thumbnail of every head. Hover shows, click locks, the legend filters.
import { box, canvas, pointIn, type Picture } from "../core/canvas";
import { ink, roleColour } from "../core/colour";
import { el, type Child } from "../core/dom";
import { clamp, known, list, percent, roleName, score, tokenName } from "../core/format";
import { measuringRoles } from "../core/looking";
import { keysOf, queriesOf, report, type Head, type Report } from "../core/report";
import type { Part } from "../core/section";
import { effect, signal, untracked } from "../core/signal";
import * as store from "../core/store";
import { say } from "../core/words";
import { baselineName } from "../words/relations";
import { bigMap } from "./bigmap";
import { drawPixels, hasRoles, hideFirst, mapOf, mostEntropy, strongestRole, topKeys } from "./maps";

const thumb = 64;  // cells of a thumbnail; larger maps show the largest weight of each patch
const filter = signal<string | null>(null);
export const thumbsReady = signal(false);

interface Stack { name: "encoder" | "decoder" | "cross"; heads: Head[] }
const isOf = (head: Head, role: string): boolean => (role === "none" ? !list(head.roles).length : list(head.roles).some((one) => one.name === role));

export const hasWall = (): boolean => wallHeads().length > 0;
const wallsHeads = new WeakMap<Report, Head[]>();  // a hand that moves over a large map asks for them in every frame
function wallHeads(): Head[] {
  const now = report();
  let heads = wallsHeads.get(now);
  if (!heads) wallsHeads.set(now, (heads = list(now.heads).filter((head) => known(head.layer) && known(head.head) && queriesOf(head).length > 0 && keysOf(head).length > 0)));
  return heads;
}

// The head in which the told token looks most clearly at another word, and at which one.
export interface Telling { name: string; layer: number; key: number; share: number }
export function tellingHead(): Telling | null {
  let best: Telling | null = null;
  const told = report().story;
  list(told?.layers).forEach((layer, l) => list(layer.heads).forEach((head) => list(head.matches).forEach(({ key, share, text }) => {
    if (key > 0 && key < told!.token - 1 && /[\p{L}\p{N}]/u.test(text) && share > (best?.share ?? 0)) best = { name: head.name, layer: layer.layer ?? l, key, share };
  })));
  return best;
}

// The head to begin with: who aligns best in a translation; who looks where the story's token gets its answer from; else the
// clearest role that is more than resting on the first token.
const clearly = 0.3;
function startHead(heads: readonly Head[]): Head {
  const telling = tellingHead(), found = telling && telling.share >= clearly ? heads.find((head) => head.name === telling.name) : undefined;
  if (found) return found;
  const interest = (head: Head) => {
    if (head.stack === "cross") return 100 - (head.entropy ?? 0);
    const role = strongestRole(head);
    return role ? role.score - (["first token", "learned sink"].includes(role.name) ? 1 : 0) : -1;
  };
  return heads.reduce((best, head) => (interest(head) > interest(best) ? head : best));
}

let shownLast: { heads: Head[]; name: string; head: Head } | null = null;
export function shownHead(): Head {
  const heads = wallHeads(), name = store.head();
  if (shownLast?.heads !== heads || shownLast.name !== name) shownLast = { heads, name, head: heads.find((head) => head.name === name) ?? startHead(heads) };
  return shownLast.head;
}

// What the live page adds: to the line of the shown head's name, and above its map.
export interface WallMore { title?: (head: Head) => Child; above?: () => Child }
export function wallPart(more: WallMore = {}): Part {
  const heads = wallHeads();
  const stacks = (["encoder", "decoder", "cross"] as const).map((name): Stack => ({ name, heads: heads.filter((head) => (head.stack ?? "decoder") === name) }))
    .filter((stack) => stack.heads.length > 0);
  const thumbs = new Map<Head, HTMLCanvasElement>();
  const walls = stacks.map((stack) => makeWall(stack, thumbs));
  const paint = () => walls.forEach((wall) => wall.picture.paint());
  const large = bigMap(shownHead, more);
  const paintAnew = () => { walls.forEach((wall) => wall.forget()); paint(); };
  effect(() => { shownHead(); paint(); });
  effect(() => { filter(); store.cut(); store.layer(); paintAnew(); });

  // Thumbnails are made a few at a time, so that a large wall never holds the page.
  let queue: Head[] = [];
  const work = () => {
    const until = performance.now() + 8;
    while (queue.length && performance.now() < until) {
      const head = queue.shift()!;
      thumbs.set(head, drawPixels(head, thumb));
    }
    paintAnew();
    if (queue.length && walls[0].scroller.isConnected) requestAnimationFrame(work);
    else thumbsReady.set(true);
  };
  effect(() => {
    hideFirst();
    thumbs.clear();
    thumbsReady.set(false);
    queue = [...heads];
    requestAnimationFrame(work);
  });

  const hideBox = el("input", { type: "checkbox", checked: hideFirst.peek(), onchange: () => hideFirst.set(hideBox.checked) });
  return {
    id: "wall", title: say("wallTitle"), lead: say(heads.some(hasRoles) ? "wallLead" : "wallLeadPlain"),
    figure: el("div", { class: "card wall-grid" },
      el("div", { class: "walls" },
        el("div", { class: "wall-tools" }, legend(heads), () => (measuringRoles() ? el("span", { class: "fine", role: "status" }, say("measuringRoles")) : ""), el("label", { class: "check" }, hideBox, say("hideFirst"))),
        walls.map((wall) => [stacks.length > 1 ? el("h3", {}, say("stacks")[wall.name]) : null, wall.scroller]),
        el("p", { class: "legend" }, "0 %", el("i", { class: "ramp-heat" }), "100 %"), el("p", { class: "hint" }, say("wallHint"))),
      large.panel),
    explain() {
      const head = shownHead(), row = large.row(), top = topKeys(head, row).filter(([, w]) => w > 0).slice(0, 4), role = strongestRole(head);
      const rest = 1 - top.reduce((sum, [, weight]) => sum + weight, 0);
      return say("wallExplain")({
        head: head.name, q: tokenName(queriesOf(head), row), entropy: score(head.entropy), most: score(mostEntropy(mapOf(head))),
        parts: [...top.map(([key, weight]) => `${percent(weight)} “${tokenName(keysOf(head), key)}”`), rest > 0.0005 ? `${percent(rest)} ${say("rest")}` : ""].filter(Boolean).join(" + "),
        labels: list(head.roles).filter((one) => one.baseline).map((one) => say("labelLine")(roleName(one.name), percent(one.score), one.n ?? 0, baselineName(one.baseline!), percent(one.chance))).join(" "),
        role: !hasRoles(head) ? "" : role?.baseline ? "" : !role ? say("roleNone") : known(role.low) ? say("roleLine")(roleName(role.name), score(role.score), score(role.low), score(role.high), role.n) : say("roleLinePlain")(roleName(role.name), score(role.score)),
      });
    },
    numbers() {
      const head = shownHead();
      return { columns: [say("head"), say("query"), "1", "A₁", "2", "A₂", "3", "A₃"], rows: queriesOf(head).map((_, i) => {
        const top = topKeys(head, i);
        return [head.name, tokenName(queriesOf(head), i), ...[0, 1, 2].flatMap((k) => (top[k] ? [tokenName(keysOf(head), top[k][0]), top[k][1]] : ["", null]))];
      }) };
    },
  };
}

// The legend of the roles that were found; a click shows only these heads.
function legend(heads: readonly Head[]): Child {
  const counts = new Map<string, number>();
  for (const head of heads) for (const name of list(head.roles).length ? new Set(list(head.roles).map((role) => role.name)) : ["none"]) counts.set(name, (counts.get(name) ?? 0) + 1);
  if (counts.size < 2 && counts.has("none")) return null;
  const order = [...counts.keys()].sort((a, b) => Number(a === "none") - Number(b === "none") || counts.get(b)! - counts.get(a)!);
  return el("div", { class: "role-legend", role: "group", "aria-label": say("filterRoles") }, order.map((name) => el("button", {
    type: "button", class: "role", "data-role": name, "aria-pressed": () => String(filter() === name),
    style: { "--role": name === "none" ? "var(--line)" : roleColour(name) },
    onclick: () => filter.set(filter.peek() === name ? null : name),
  }, el("i"), name === "none" ? say("noRole") : roleName(name), el("small", {}, String(counts.get(name))))));
}

// To the next head of the same stack, by layers and heads.
export function moveHead(layers: number, across: number): void {
  untracked(() => {
    if (!hasWall()) return;
    const from = shownHead(), stack = wallHeads().filter((head) => head.stack === from.stack);
    const next = stack.find((head) => head.layer === from.layer + layers && head.head === from.head + across);
    lock(next ?? from, true);
  });
}

const gap = 8, left = 30, many = 200;

interface Wall { name: Stack["name"]; scroller: HTMLElement; picture: Picture; forget: () => void }
function makeWall(stack: Stack, thumbs: Map<Head, HTMLCanvasElement>): Wall {
  const layers = Math.max(...stack.heads.map((head) => head.layer)) + 1;
  const across = Math.max(...stack.heads.map((head) => head.head)) + 1;
  const seats = new Map(stack.heads.map((head) => [head.layer * across + head.head, head]));
  const letter = (/^[A-Za-z]+/.exec(stack.heads[0].name) ?? ["L"])[0];
  const size = (width: number) => clamp(Math.floor((width - left) / across) - gap, 26, 124);
  let inner = 0, kept: { of: string; node: HTMLCanvasElement } | null = null;
  const place = (head: Head, s: number) => ({ x: left + head.head * (s + gap) + 2, y: (layers - 1 - head.layer) * (s + gap) + 4, s });
  // All heads, without the frame of the chosen one.
  const drawAll = (context: CanvasRenderingContext2D, s: number) => {
    context.imageSmoothingEnabled = false;
    context.font = `11px ${ink.mono}`;
    context.textAlign = "right";
    for (let layer = 0; layer < layers; ++layer) {
      context.fillStyle = layer === store.layer.peek() ? ink.text : ink.soft;
      context.fillText(`${letter}${layer}`, left - 8, (layers - 1 - layer) * (s + gap) + 4 + s / 2);
    }
    context.fillStyle = ink.soft;
    context.textAlign = "center";
    const every = s < 30 && across > 16 ? 2 : 1;
    for (let h = 0; h < across; h += every) context.fillText(`H${h}`, left + h * (s + gap) + 2 + s / 2, layers * (s + gap) + 12);
    for (const head of stack.heads) drawSeat(context, head, thumbs.get(head), place(head, s));
  };
  const picture = canvas(say("wallTitle"), (width) => layers * (size(width) + gap) + 26, (context, width, height) => {
    const s = (inner = size(width)), chosen = shownHead(), onScreen = context instanceof CanvasRenderingContext2D;
    if (onScreen && stack.heads.length > many) {  // a hand that moves over a thousand heads draws them once
      const { a: ratio } = context.getTransform(), of = [width, height, ratio, ink.text, ink.sunk].join();
      if (kept?.of !== of) {
        kept = { of, node: el("canvas", { width: Math.ceil(width * ratio), height: Math.ceil(height * ratio) }) };
        const own = kept.node.getContext("2d")!;
        own.scale(ratio, ratio);
        own.textBaseline = "middle";
        drawAll(own, s);
      }
      context.drawImage(kept.node, 0, 0, kept.node.width / ratio, kept.node.height / ratio);
    } else drawAll(context, s);
    if (stack.heads.includes(chosen)) drawChosen(context, place(chosen, s));
  });
  picture.holder.style.minWidth = `${left + across * (26 + gap) + 6}px`;
  const scroller = el("div", { class: "wall", tabindex: "0", role: "application", "aria-label": say("stacks")[stack.name] + ". " + say("wallHint"), "data-stack": stack.name }, picture.holder);
  const hit = (event: MouseEvent) => {
    const { x, y } = pointIn(picture.node, event), pitch = inner + gap;
    return seats.get((layers - 1 - Math.floor((y - 2) / pitch)) * across + Math.floor((x - left) / pitch));
  };
  scroller.addEventListener("pointermove", (event) => {
    const head = hit(event);
    scroller.style.cursor = head ? "pointer" : "";
    if (head && !store.locked.peek() && event.pointerType !== "touch") store.head.set(head.name);
  });
  scroller.addEventListener("click", (event) => {
    const head = hit(event);
    if (head) lock(head, !(store.locked.peek() && store.head.peek() === head.name));
  });
  scroller.addEventListener("keydown", (event) => {
    const move = ({ ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] } as Record<string, [number, number]>)[event.key];
    const from = stack.heads.includes(shownHead()) ? shownHead() : stack.heads[0];
    if (event.key === "Escape") lock(from, false);
    else if (event.key === "Enter" || event.key === " ") lock(from, !store.locked.peek());
    else if (move) lock(seats.get(clamp(from.layer + move[0], 0, layers - 1) * across + clamp(from.head + move[1], 0, across - 1)) ?? from, true);
    else return;
    event.preventDefault();
  });
  return { name: stack.name, scroller, picture, forget: () => { kept = null; } };
}

function lock(head: Head, locked: boolean): void {
  store.head.set(head.name);
  store.locked.set(locked);
  if (locked) store.layer.set(head.layer);
}

function drawSeat(context: CanvasRenderingContext2D, head: Head, image: HTMLCanvasElement | undefined, { x, y, s }: { x: number; y: number; s: number }): void {
  const role = strongestRole(head), isCut = store.cut.peek().split(",").includes(head.name);
  const only = filter.peek();
  context.globalAlpha = only && !isOf(head, only) ? 0.14 : isCut ? 0.35 : 1;
  context.fillStyle = ink.sunk;
  box(context, x - 1, y - 1, s + 2, s + 2, 4);
  context.fill();
  context.save();
  context.clip();
  if (image) context.drawImage(image, x, y, s, s);
  context.restore();
  context.lineWidth = role ? 2.5 : 1;
  context.strokeStyle = role ? roleColour(role.name) : ink.line;
  box(context, x - 1, y - 1, s + 2, s + 2, 4);
  context.stroke();
  // More roles than the border has room for: one dot each.
  const dot = s < 40 ? 2 : 3.5;
  list(head.roles).slice(1, 5).forEach((more, i) => {
    context.beginPath();
    context.arc(x + s - 2 - dot - i * (2 * dot + 2), y + 2 + dot, dot, 0, 2 * Math.PI);
    context.fillStyle = roleColour(more.name);
    context.fill();
    context.lineWidth = 1;
    context.strokeStyle = "rgba(255,255,255,0.8)";
    context.stroke();
  });
  context.globalAlpha = 1;
  if (isCut) {
    context.lineWidth = 2.5;
    context.strokeStyle = ink.bad;
    context.beginPath();
    context.moveTo(x + 3, y + s - 3);
    context.lineTo(x + s - 3, y + 3);
    context.stroke();
  }
}

function drawChosen(context: CanvasRenderingContext2D, { x, y, s }: { x: number; y: number; s: number }): void {
  context.lineWidth = 2;
  context.strokeStyle = ink.text;
  box(context, x - 4, y - 4, s + 8, s + 8, 6);
  context.stroke();
}
