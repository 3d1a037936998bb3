// All heads as points on two measures that can be chosen freely.
import { canvas, pointIn } from "../../core/canvas";
import { ink, noRole, roleColour, withAlpha } from "../../core/colour";
import { el, type Child } from "../../core/dom";
import { known, mix, num, roleName } from "../../core/format";
import { niceStep } from "../../core/plot";
import { effect, signal } from "../../core/signal";
import { tip } from "../../core/tip";
import type { FoundHead } from "./data";
import { measureName, say } from "./words";

export interface ScatterOptions { heads: readonly FoundHead[]; x: () => string; y: () => string; chosen: () => string; choose: (name: string) => void }

const valueOf = (head: FoundHead, measure: string): number | undefined => head.measures[measure]?.mean;
const colourOf = (head: FoundHead): string => (head.roles[0] ? roleColour(head.roles[0].name) : noRole);

// The range of an axis: shares start at 0, others where their values do.
function rangeOf(heads: readonly FoundHead[], measure: string): [number, number] {
  const values = heads.map((head) => valueOf(head, measure)).filter(known);
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1e-6);
  return [low, high + 0.05 * (high - low)];
}

export function scatter({ heads, x, y, chosen, choose }: ScatterOptions): HTMLElement {
  const pointed = signal("");
  const frame = (width: number, height: number) => {
    const [xLow, xHigh] = rangeOf(heads, x()), [yLow, yHigh] = rangeOf(heads, y());
    const left = 44, right = width - 12, top = 12, bottom = height - 36;
    return { left, right, top, bottom, xLow, xHigh, yLow, yHigh,
      px: (v: number) => mix(left + 6, right - 6, (v - xLow) / (xHigh - xLow)), py: (v: number) => mix(bottom - 6, top + 6, (v - yLow) / (yHigh - yLow)) };
  };
  const place = (head: FoundHead, g: ReturnType<typeof frame>): { x: number; y: number } | null => {
    const a = valueOf(head, x()), b = valueOf(head, y());
    return known(a) && known(b) ? { x: g.px(a), y: g.py(b) } : null;
  };
  const high = (width: number) => Math.min(Math.max(width * 0.62, 260), 480);
  const picture = canvas(say("title"), high, (context, width, height) => {
    const g = frame(width, height);
    context.font = `11px ${ink.font}`;
    context.lineWidth = 1;
    context.strokeStyle = ink.line;
    context.fillStyle = ink.soft;
    const ticks = (low: number, end: number, draw: (v: number) => void) => { const step = niceStep((end - low) / 5); for (let v = Math.ceil(low / step) * step; v <= end + 1e-9; v += step) draw(Number(v.toPrecision(3))); };
    context.textAlign = "right";
    ticks(g.yLow, g.yHigh, (v) => {
      line(context, g.left, g.py(v), g.right, g.py(v));
      context.fillText(String(v), g.left - 6, g.py(v));
    });
    context.textAlign = "center";
    ticks(g.xLow, g.xHigh, (v) => {
      line(context, g.px(v), g.top, g.px(v), g.bottom);
      context.fillText(String(v), g.px(v), g.bottom + 12);
    });
    context.fillText(`${measureName(x())} →`, mix(g.left, g.right, 0.5), height - 8);
    context.save();
    context.translate(8, mix(g.top, g.bottom, 0.5));
    context.rotate(-Math.PI / 2);
    context.fillText(`${measureName(y())} →`, 0, 0);
    context.restore();
    const radius = heads.length > 300 ? 3.5 : 5.5;
    for (const head of heads) {
      const at = place(head, g);
      if (!at) continue;
      const lit = head.name === chosen() || head.name === pointed();
      context.beginPath();
      context.arc(at.x, at.y, lit ? radius + 2.5 : radius, 0, 2 * Math.PI);
      context.fillStyle = withAlpha(colourOf(head), lit ? 1 : 0.72);
      context.fill();
      context.lineWidth = lit ? 2 : 1;
      context.strokeStyle = lit ? ink.text : ink.card;
      context.stroke();
      if (head.name === chosen() || heads.length <= 40) {
        context.textAlign = at.x > width - 70 ? "right" : "left";
        context.fillStyle = head.name === chosen() ? ink.text : ink.soft;
        context.font = `${head.name === chosen() ? "600 12px" : "10px"} ${ink.mono}`;
        context.fillText(head.name, at.x + (at.x > width - 70 ? -9 : 9), at.y - (head.name === chosen() ? 9 : 0));
      }
    }
  });
  effect(() => { x(); y(); chosen(); pointed(); picture.paint(); });
  const nearest = (event: MouseEvent): FoundHead | null => {
    const point = pointIn(picture.node, event), g = frame(picture.holder.clientWidth, picture.node.getBoundingClientRect().height);
    let best: FoundHead | null = null, far = 24 ** 2;
    for (const head of heads) {
      const at = place(head, g), distance = at ? (at.x - point.x) ** 2 + (at.y - point.y) ** 2 : Infinity;
      if (distance < far) { far = distance; best = head; }
    }
    return best;
  };
  const { holder } = picture;
  holder.classList.add("scatter");
  holder.tabIndex = 0;
  holder.setAttribute("role", "application");
  holder.setAttribute("aria-label", `${say("title")}. ${say("hint")}`);
  holder.addEventListener("pointermove", (event) => {
    const head = nearest(event);
    pointed.set(head?.name ?? "");
    holder.style.cursor = head ? "pointer" : "";
    if (head && event.pointerType !== "touch") tip.show(event.clientX, event.clientY, tipOf(head, x(), y()));
    else tip.hide();
  });
  holder.addEventListener("pointerleave", () => { pointed.set(""); tip.hide(); });
  holder.addEventListener("click", (event) => { const head = nearest(event); if (head) choose(head.name); });
  holder.addEventListener("keydown", (event) => {
    const move = ({ ArrowLeft: [x(), -1], ArrowRight: [x(), 1], ArrowDown: [y(), -1], ArrowUp: [y(), 1] } as Record<string, [string, number]>)[event.key];
    if (!move) return;
    event.preventDefault();
    const order = heads.filter((head) => known(valueOf(head, move[0]))).sort((a, b) => valueOf(a, move[0])! - valueOf(b, move[0])!);
    const at = order.findIndex((head) => head.name === chosen());
    const next = order[Math.min(Math.max(at + move[1], 0), order.length - 1)];
    if (next) choose(next.name);
  });
  return holder;
}

function line(context: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

const tipOf = (head: FoundHead, x: string, y: string): Child => [el("b", {}, head.name, head.roles[0] ? ` · ${roleName(head.roles[0].name)}` : ""),
  el("div", { class: "tip-list" }, [x, y].map((one) => el("span", {}, `${measureName(one)}: ${num(valueOf(head, one), 3)}`)))];
