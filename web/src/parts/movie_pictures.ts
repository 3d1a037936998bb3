// Pictures of a training: heads and their roles, and the words that move.
import { box, canvas, pointIn, textWidth, type Picture } from "../core/canvas";
import { ink, roleColour, series, withAlpha } from "../core/colour";
import { el } from "../core/dom";
import { clamp, known, list, mix, roleName, score, visible } from "../core/format";
import { barLine, tip } from "../core/tip";
import { say } from "../core/words";
import { isRole, shownRole, type MovieView } from "./movie_view";

const gap = 6, left = 30;

export function rolesPicture(view: MovieView): Picture {
  const { heads: seats } = view;  // their places stay, their numbers are view.heads
  const rowOf = (head: { stack: string; layer: number }) => `${head.stack}\n${head.layer}`;
  const rows = [...new Set(seats.map(rowOf))], across = Math.max(1, ...seats.map((head) => head.seat + 1));
  const seat = (width: number) => ({ w: (width - left) / across, h: clamp(Math.min((width - left) / across, 300 / rows.length), 22, 64) });
  const picture = canvas(say("rolesTitle"), (width) => rows.length * seat(width).h + 22, (context, width) => {
    const { w, h } = seat(width);
    context.font = `11px ${ink.mono}`;
    context.fillStyle = ink.soft;
    rows.forEach((row, r) => {
      const [stack, layer] = row.split("\n");
      context.textAlign = "right";
      context.fillText(`${stack || "L"}${layer}`, 24, (rows.length - 1 - r) * h + h / 2);
    });
    context.textAlign = "center";
    if (w > 24) for (let s = 0; s < across; ++s) context.fillText(`H${s}`, left + (s + 0.5) * w, rows.length * h + 11);
    for (const head of view.heads) {
      const x = left + head.seat * w, y = (rows.length - 1 - rows.indexOf(rowOf(head))) * h;
      const best = shownRole() === "strongest" ? view.strongest(head) : ([shownRole(), view.between(head.roles?.[shownRole()])] as const);
      box(context, x + gap / 2, y + gap / 2, w - gap, h - gap, 6);
      context.fillStyle = ink.sunk;
      context.fill();
      if (!best || !known(best[1])) continue;
      const share = view.share(best[0], best[1]);
      context.fillStyle = withAlpha(view.colourOf(head, best[0]), share);
      context.fill();
      if (w > 44 && h > 28) {
        context.fillStyle = share > 0.6 ? "#fff" : ink.soft;
        context.font = `${best[1] > 0.5 ? "600 " : ""}12px ${ink.font}`;
        context.fillText(best[1].toFixed(2), x + w / 2, y + h / 2);
      }
    }
  });
  picture.node.addEventListener("pointermove", (event) => {
    const { x, y } = pointIn(picture.node, event), { w, h } = seat(picture.holder.clientWidth);
    const row = rows[rows.length - 1 - Math.floor(y / h)];
    const head = view.heads.find((one) => rowOf(one) === row && one.seat === Math.floor((x - left) / w));
    if (!head) return tip.hide();
    tip.show(event.clientX, event.clientY, el("b", {}, head.name), el("div", { class: "bars" }, Object.entries(head.roles ?? {}).map(([name, values]) => {
      const value = view.between(values) ?? 0;
      return barLine(roleName(name), view.share(name, value), score(value), isRole(name) ? roleColour(name) : "var(--soft)");
    })));
  });
  picture.node.addEventListener("pointerleave", () => tip.hide());
  return picture;
}

export function embeddingPicture(view: MovieView): Picture {
  const range = (rows: number[][]) => rows.flat().filter(known).reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  return canvas(say("embeddingTitle"), (width) => clamp(width * 0.68, 260, 440), (context, width, height) => {
    const embedding = view.movie.embedding!, [xl, xh] = range(embedding.x), [yl, yh] = range(embedding.y);
    const low = Math.floor(view.at()), high = Math.min(low + 1, view.last), part = view.at() - low, trail = Math.max(low - 5, 0);
    const place = (t: number, at: number) => [mix(26, width - 34, (list(embedding.x[at])[t] - xl) / (xh - xl || 1)), mix(height - 16, 16, (list(embedding.y[at])[t] - yl) / (yh - yl || 1))];
    const taken: { x: number; y: number; w: number; h: number }[] = [];
    context.fillStyle = withAlpha(ink.sunk, 0.5);
    box(context, 0, 0, width, height, 12);
    context.fill();
    embedding.tokens.forEach((token, t) => {
      const [ax, ay] = place(t, low), [bx, by] = place(t, high), x = mix(ax, bx, part), y = mix(ay, by, part);
      if (!known(x) || !known(y)) return;
      context.strokeStyle = withAlpha(series.training, 0.28);  // where it came from
      context.lineWidth = 1.5;
      context.beginPath();
      for (let back = trail; back <= low; ++back) {
        const [tx, ty] = place(t, back);
        if (back === trail) context.moveTo(tx, ty);
        else context.lineTo(tx, ty);
      }
      context.lineTo(x, y);
      context.stroke();
      context.fillStyle = series.training;
      context.beginPath();
      context.arc(x, y, 3.5, 0, 7);
      context.fill();
      if (!token) return;  // a part of a character has no text
      context.font = `12px ${ink.font}`;
      const label = visible(token), w = textWidth(context, label);
      const spot = { x: x + 8 + w < width ? x + 6 : x - 6 - w, y: y - 7, w, h: 14 };
      if (taken.some((o) => spot.x < o.x + o.w && o.x < spot.x + spot.w && spot.y < o.y + o.h && o.y < spot.y + spot.h)) return;
      taken.push(spot);
      context.textAlign = "left";
      context.fillStyle = ink.text;
      context.fillText(label, spot.x, y);
    });
  });
}
