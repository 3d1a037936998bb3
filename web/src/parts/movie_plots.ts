// Curves of a training: the loss with its phases, importance of heads, motion of the weights.
import { box, canvas, pointIn, textWidth, type Picture } from "../core/canvas";
import { ink, roleColour, series, seriesColours, withAlpha } from "../core/colour";
import { el } from "../core/dom";
import { clamp, known, largest, list, num } from "../core/format";
import { axes, curve, frameOf, verticalLine } from "../core/plot";
import { onCleanup } from "../core/signal";
import { tip } from "../core/tip";
import { say } from "../core/words";
import type { MovieView } from "./movie_view";

// Dragging over the picture moves to that step.
function seeking(view: MovieView, picture: Picture): Picture {
  const seek = (event: PointerEvent) => {
    if (event.type === "pointermove" && !(event.buttons & 1)) return;
    const { x } = pointIn(picture.node, event);
    view.seek(view.atStep(((x - 40) / (picture.holder.clientWidth - 50)) * view.xHigh));
  };
  picture.node.addEventListener("pointerdown", seek);
  picture.node.addEventListener("pointermove", seek);
  picture.holder.classList.add("seek");
  return picture;
}
export const phaseName = (name: string): string => (say("phases") as Record<string, string>)[name] ?? name;

export function lossPicture(view: MovieView): Picture {
  return seeking(view, canvas(say("lossTitle"), (width) => clamp(width * 0.36, 200, 300), (context, width, height) => {
    const values = [...view.points.map((p) => p.loss), ...view.vals.map((p) => p.val)], now = view.stepNow();
    const yHigh = values.reduce((a, b) => Math.max(a, b), 0), yLow = values.reduce((a, b) => Math.min(a, b), 0);  // there may be many
    const seen = list(view.movie.phases).flatMap((phase) => (known(phase.step) ? [{ name: phase.name, step: phase.step }] : [])).sort((a, b) => a.step - b.step);
    const g = frameOf(width, height, view.xHigh, yLow, yHigh * 1.04, 12 + Math.min(seen.length, 4) * 15);
    axes(context, g, yLow, yHigh, view.xHigh);
    // Phases: one mark each, their names on steps of a stair so that they never overlap.
    seen.forEach((phase, i) => {
      const x = g.x(phase.step), y = 8 + (i % 4) * 15, past = phase.step <= now;
      context.setLineDash([3, 3]);
      verticalLine(context, { ...g, top: y }, phase.step, withAlpha(ink.faint, 0.9), 1);
      context.setLineDash([]);
      context.font = `${past ? "600 " : ""}11px ${ink.font}`;
      context.fillStyle = past ? ink.text : ink.faint;
      const wide = textWidth(context, phaseName(phase.name)) + 8 > g.right - x;
      context.textAlign = wide ? "right" : "left";
      context.fillText(phaseName(phase.name), x + (wide ? -5 : 5), y);
    });
    curve(context, g, view.points.map((p) => [p.step, p.loss]), withAlpha(series.training, 0.3), 1.2);
    curve(context, g, view.points.filter((p) => p.step <= now).map((p) => [p.step, p.loss]), series.training, 1.8);
    for (const p of view.vals) {
      context.fillStyle = withAlpha(series.heldOut, p.step <= now ? 1 : 0.3);
      context.beginPath();
      context.arc(g.x(p.step), g.y(p.val), 3, 0, 7);
      context.fill();
    }
    verticalLine(context, g, now, ink.accent, 2);
  }));
}

export function importancePicture(view: MovieView): Picture {
  return canvas(say("importanceTitle"), () => 190, (context, width, height) => {
    const weighed = view.heads.filter((head) => list(head.importance).some(known));
    const most = largest(weighed.flatMap((head) => list(head.importance))) || 1;
    const g = frameOf(width, height, 1, 0, most, 8), w = (g.right - g.left) / weighed.length;
    axes(context, g, 0, most, 0);
    weighed.forEach((head, i) => {
      const value = view.between(head.importance), best = view.strongest(head);
      if (!known(value)) return;
      context.fillStyle = best && view.counts(head, best[0]) ? roleColour(best[0]) : ink.faint;
      const x = g.left + i * w, pad = Math.min(w * 0.15, 4);
      box(context, x + pad, g.y(value), w - 2 * pad, Math.max(g.bottom - g.y(value), 0.5), [3, 3, 0, 0]);
      context.fill();
      if (w > 30) {
        context.fillStyle = ink.soft;
        context.font = `10px ${ink.mono}`;
        context.textAlign = "center";
        context.fillText(head.name, x + w / 2, g.bottom + 12);
      }
    });
  });
}

// W_Q, W_K, W_V and W_O have colours of their own.
const kindOf = (name: string): string => (/W_?([QKVO])/i.exec(name) ?? [])[0] ?? String(name).split(" ").at(-1)!;
export function weightsPicture(view: MovieView): { picture: Picture; kinds: [string, string][] } {
  const weightsNow = () => list(view.movie.weights).filter((w) => list(w.moved).some(known));
  const kinds = [...new Set(weightsNow().map((w) => kindOf(w.name)))];
  const colourOf = (kind: string) => (series as Record<string, string>)[(/^W_?([QKVO])$/i.exec(kind) ?? [])[1]?.toUpperCase() ?? ""] ?? seriesColours[4 + (kinds.indexOf(kind) % 4)];
  const picture = seeking(view, canvas(say("weightsTitle"), () => 220, (context, width, height) => {
    const weights = weightsNow(), yHigh = largest(weights.flatMap((w) => list(w.moved))) || 1;
    const g = frameOf(width, height, view.xHigh, 0, yHigh, 10), now = view.snapshotStep();
    axes(context, g, 0, yHigh, view.xHigh);
    for (const w of weights) {
      const points = list(w.moved).map((y, i) => [view.steps[i], y] as const), colour = colourOf(kindOf(w.name));
      curve(context, g, points, withAlpha(colour, 0.22), 1);
      curve(context, g, [...points.filter(([x]) => x <= now), [now, view.between(w.moved)]], colour, 1.6);
    }
    verticalLine(context, g, now, ink.accent, 2);
  }));
  picture.node.addEventListener("pointermove", (event) => {
    const largestFirst = weightsNow().map((w) => ({ w, moved: view.between(w.moved) ?? 0, cosine: view.between(w.cosine) })).sort((a, b) => b.moved - a.moved).slice(0, 8);
    tip.show(event.clientX, event.clientY, el("div", { class: "tip-list" }, largestFirst.map(({ w, moved, cosine }) =>
      el("div", {}, el("i", { style: { background: colourOf(kindOf(w.name)) } }), `${w.name}: ${num(moved)}`, known(cosine) ? el("small", {}, ` ${say("cosine")} ${num(cosine)}`) : ""))));
  });
  picture.node.addEventListener("pointerleave", () => tip.hide());
  onCleanup(() => tip.hide());
  return { picture, kinds: kinds.map((kind) => [kind, colourOf(kind)]) };
}
