// Axes and curves on a canvas.
import { ink } from "./colour";
import { known, mix } from "./format";

export interface Frame {
  left: number; right: number; top: number; bottom: number;
  x(value: number): number;
  y(value: number): number;
}
export function frameOf(width: number, height: number, xHigh: number, yLow: number, yHigh: number, top: number): Frame {
  const left = 40, right = width - 10, bottom = height - 22;
  return {
    left, right, top, bottom,
    x: (x) => mix(left, right, x / (xHigh || 1)),
    y: (y) => mix(bottom, top, (y - yLow) / (yHigh - yLow || 1)),
  };
}

export function niceStep(raw: number): number {
  const base = 10 ** Math.floor(Math.log10(raw || 1));
  return base * ([1, 2, 5, 10].find((m) => m * base >= raw) ?? 10);
}

// Lines and numbers of y; numbers of x if xHigh is above 0.
export function axes(context: CanvasRenderingContext2D, g: Frame, yLow: number, yHigh: number, xHigh: number): void {
  context.font = `11px ${ink.font}`;
  context.fillStyle = ink.soft;
  context.strokeStyle = ink.line;
  context.lineWidth = 1;
  context.textAlign = "right";
  const tick = niceStep((yHigh - yLow) / 4);
  for (let y = Math.ceil(yLow / tick) * tick; y <= yHigh + 1e-9; y += tick) {
    const py = Math.round(g.y(y)) + 0.5;
    context.beginPath();
    context.moveTo(g.left, py);
    context.lineTo(g.right, py);
    context.stroke();
    context.fillText(String(Number(y.toPrecision(3))), g.left - 6, py);
  }
  if (!xHigh) return;
  context.textAlign = "center";
  const xTick = niceStep(xHigh / Math.max((g.right - g.left) / 90, 2));
  for (let x = 0; x <= xHigh; x += xTick) context.fillText(String(x), g.x(x), g.bottom + 13);
}

// A line through the points; a point without a value is a gap.
export function curve(context: CanvasRenderingContext2D, g: Frame, data: readonly (readonly [number, number | null | undefined])[], colour: string, width: number): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.beginPath();
  let open = false;
  for (const [x, y] of data) {
    if (!known(y)) { open = false; continue; }
    if (open) context.lineTo(g.x(x), g.y(y));
    else context.moveTo(g.x(x), g.y(y));
    open = true;
  }
  context.stroke();
}

export function verticalLine(context: CanvasRenderingContext2D, g: Frame, x: number, colour: string, width: number): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(g.x(x), g.top);
  context.lineTo(g.x(x), g.bottom);
  context.stroke();
}
