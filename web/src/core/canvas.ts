// Canvases that fit their place, and texts on them.
import { readInk } from "./colour";
import { el } from "./dom";
import { onCleanup } from "./signal";

const painters = new Set<() => void>();  // everything that must be drawn again when the colours change
export function repaintAll(): void {
  readInk();
  for (const painter of painters) painter();
}
// Draws again when the colours of the page change; ends with the effect that surrounds it.
export function onRepaint(work: () => void): void {
  painters.add(work);
  onCleanup(() => painters.delete(work));
}

// How a canvas is drawn, for whoever draws it elsewhere: into a file.
const draws = new WeakMap<HTMLCanvasElement, Draw>();
export const drawnAgain = (node: HTMLCanvasElement): Draw | undefined => draws.get(node);

export interface Picture { holder: HTMLDivElement; node: HTMLCanvasElement; paint(): void }
export type Draw = (context: CanvasRenderingContext2D, width: number, height: number) => void;

// A canvas as wide as its parent lets it be. draw(context, width) is called with CSS pixels; height(width) says how high.
export function canvas(label: string, height: (width: number) => number, draw: Draw): Picture {
  const node = el("canvas", { role: "img", "aria-label": label });
  const holder = el("div", { class: "canvas" }, node);
  let waiting = false;
  const paint = () => {
    waiting = false;
    const width = holder.clientWidth;
    if (!width || !holder.isConnected) return;
    const high = Math.ceil(height(width));
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (node.width !== Math.round(width * ratio) || node.height !== Math.round(high * ratio)) {
      node.width = Math.round(width * ratio);
      node.height = Math.round(high * ratio);
      node.style.height = `${high}px`;
    }
    const context = node.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, high);
    context.textBaseline = "middle";
    draw(context, width, high);
  };
  const soon = () => {
    if (!waiting) requestAnimationFrame(paint);
    waiting = true;
  };
  draws.set(node, draw);
  const observer = new ResizeObserver(soon);
  observer.observe(holder);
  onCleanup(() => observer.disconnect());
  onRepaint(soon);
  return { holder, node, paint: soon };
}

export function pointIn(node: Element, event: MouseEvent): { x: number; y: number } {
  const box = node.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

const widths = new Map<string, number>();
export function textWidth(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font}\n${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    widths.set(key, (width = context.measureText(text).width));
  }
  return width;
}

// Cuts a text to a width, by characters as people count them.
const graphemes = new Intl.Segmenter();
export function fitText(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (textWidth(context, text) <= width) return text;
  const parts = Array.from(graphemes.segment(text.slice(0, 80)), (s) => s.segment);
  while (parts.length > 1 && textWidth(context, parts.join("") + "…") > width) parts.pop();
  return parts.join("") + "…";
}

export function box(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, radius: number | number[]): void {
  context.beginPath();
  context.roundRect(x, y, w, h, radius);
}
