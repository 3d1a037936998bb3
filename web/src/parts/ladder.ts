// The ladder of guesses: layers upward, the top guess of each, grey until it settles.
import { box, canvas, fitText, pointIn } from "../core/canvas";
import { ink, withAlpha } from "../core/colour";
import { el, type Child } from "../core/dom";
import { clamp, known, layerName, list, num, percent, pieces, tokenName, visible } from "../core/format";
import { report, type Ladder, type Token } from "../core/report";
import type { Part } from "../core/section";
import { effect, onCleanup } from "../core/signal";
import * as store from "../core/store";
import { guessBars, tip } from "../core/tip";
import { say } from "../core/words";

export const hasLadder = (): boolean => list(list(report().ladder?.guesses)[0]).length > 0 && list(report().ladder?.layers).length > 0;

export const calm = matchMedia("(prefers-reduced-motion: reduce)");
export function ladderReady(): void {  // brings it into view
  document.getElementById("ladder")?.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "nearest" });
}

// The selected place: what was chosen anywhere on the page, else the report's own token, at the output.
export function chosenToken(count: number): number {
  const own = report().story?.token;
  return clamp(store.token() ?? (known(own) ? own : count - 1), 0, count - 1);
}

export function ladderPart(): Part {
  const ladder = report().ladder!, { layers, guesses } = ladder;
  const tokens: readonly Token[] = report().tokens ?? guesses[0].map((_, i) => ({ text: String(i) }));
  const settled = list(ladder.settled), count = tokens.length;
  const at = (name: "entropy" | "kl" | "rank", layer: number, token: number) => list(list(ladder[name])[layer])[token];
  const token = () => chosenToken(count);
  const level = () => clamp((store.layer() ?? layers.length - 2) + 1, 0, layers.length - 1);  // level 0 is the embedding

  const picture = canvas(say("ladderTitle"), () => grid.height() + 6, (context, width) => grid.draw(context, width, level(), token()));
  const spacer = el("div", { class: "ladder-spacer" }, picture.holder);
  const scroller = el("div", { class: "ladder", tabindex: "0", role: "application", "aria-label": say("ladderTitle") + ". " + say("ladderHint") }, spacer);
  const grid = new Grid(ladder, tokens, scroller);
  const resize = () => {
    spacer.style.width = `${grid.gutter() + count * grid.column() + 2}px`;
    picture.holder.style.width = `${scroller.clientWidth}px`;
  };
  const observer = new ResizeObserver(() => { resize(); picture.paint(); });
  observer.observe(scroller);
  onCleanup(() => observer.disconnect());
  scroller.addEventListener("scroll", picture.paint, { passive: true });

  const facts = (level: number, t: number) => el("dl", {}, (["entropy", "kl", "rank"] as const).map((name) => {
    const value = at(name, level, t);
    return known(value) ? [el("dt", {}, say(name)), el("dd", {}, name === "rank" ? String(value) : `${num(value)} ${say("nats")}`)] : null;
  }));
  function describe(level: number, t: number): Child[] {
    const from = settled[t];
    return [el("p", { class: "detail-head" }, el("b", {}, say("after")(tokenName(tokens, t))), layerName(layers[level]),
      known(from) ? el("span", { class: "badge" }, say(level >= from ? "settled" : "stillChanging")) : ""), guessBars(list(guesses[level])[t]), facts(level, t)];
  }

  const detail = el("div", { class: "ladder-detail", "aria-live": "polite" }, () => describe(level(), token()));
  function follow(): void {  // scrolls the selected token into view
    const x = token() * grid.column(), room = scroller.clientWidth - grid.gutter();
    if (x < scroller.scrollLeft || x + grid.column() > scroller.scrollLeft + room) scroller.scrollLeft = x - room / 2;
  }
  effect(() => {
    token();
    level();
    picture.paint();
    queueMicrotask(() => { resize(); follow(); });
  });

  scroller.addEventListener("pointermove", (event) => {
    const found = event.pointerType === "touch" ? null : grid.hit(pointIn(picture.node, event));
    if (!found) return tip.hide();
    tip.show(event.clientX, event.clientY, ...describe(found.level, found.token));
  });
  scroller.addEventListener("pointerleave", () => tip.hide());
  scroller.addEventListener("click", (event) => {
    const found = grid.hit(pointIn(picture.node, event));
    if (found) choose(found.level, found.token);
  });
  scroller.addEventListener("keydown", (event) => {
    const move = ({ ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] } as Record<string, [number, number]>)[event.key];
    if (!move) return;
    event.preventDefault();
    choose(level() + move[0], token() + move[1]);
  });
  const choose = (level: number, t: number) => {
    store.layer.set(clamp(level, 0, layers.length - 1) - 1);
    store.token.set(clamp(t, 0, count - 1));
  };

  return {
    id: "ladder", title: say("ladderTitle"), lead: say("ladderLead"),
    figure: el("div", { class: "card ladder-card" }, scroller, detail, el("p", { class: "hint" }, say("ladderHint"))),
    explain() {
      const t = token(), top = list(list(guesses.at(-1))[t])[0], bottom = list(list(guesses[0])[t])[0];
      if (!top || !bottom) return [];
      const way = settled.filter(known).map((s) => s / Math.max(layers.length - 1, 1));
      return [...say("ladderExplain")({
        token: tokenName(tokens, t), p: percent(top.p), final: visible(top.text), first: layerName(layers[0]),
        firstGuess: visible(bottom.text), firstP: percent(bottom.p), firstRank: at("rank", 0, t) ?? "–",
        settled: layerName(layers[settled[t] ?? layers.length - 1]), kl0: num(at("kl", 0, t)), kl1: num(at("kl", layers.length - 1, t)),
      }), way.length ? say("meanSettled")(percent(way.reduce((a, b) => a + b, 0) / way.length), way.length) : ""];
    },
    numbers() {
      const t = token();
      const columns = [say("layer"), "1", "p₁", "2", "p₂", "3", "p₃", say("entropy"), say("kl"), say("rank")];
      return { columns, rows: layers.map((name, level) => {
        const best = list(list(guesses[level])[t]);
        return [layerName(name), ...[0, 1, 2].flatMap((i) => [best[i]?.text ?? "", best[i]?.p ?? null]),
          at("entropy", level, t), at("kl", level, t), at("rank", level, t)];
      }).reverse() };
    },
  };
}

// Where cells are, and how they are drawn: only those in view.
class Grid {
  private readonly rows: number;
  private readonly rowHeight: number;
  private readonly topRow: number;  // 1 where the real next tokens stand above

  constructor(private readonly ladder: Ladder, private readonly tokens: readonly Token[], private readonly scroller: HTMLElement) {
    this.topRow = list(ladder.next).length ? 1 : 0;
    this.rows = ladder.layers.length + 1 + this.topRow;  // what was read stands below
    this.rowHeight = ladder.layers.length > 16 ? 24 : 30;
  }
  height = () => this.rows * this.rowHeight;
  gutter = () => (innerWidth < 640 ? 76 : 92);
  column = () => (innerWidth < 640 ? 74 : clamp((this.scroller.clientWidth - this.gutter()) / this.tokens.length, 68, 150));
  private y = (level: number) => (this.topRow + this.ladder.layers.length - 1 - level) * this.rowHeight;

  hit({ x, y }: { x: number; y: number }): { token: number; level: number } | null {
    const token = Math.floor((x - this.gutter() + this.scroller.scrollLeft) / this.column());
    if (x < this.gutter() || token < 0 || token >= this.tokens.length) return null;
    const last = this.ladder.layers.length - 1;
    return { token, level: clamp(last - (Math.floor(y / this.rowHeight) - this.topRow), 0, last) };
  }

  draw(context: CanvasRenderingContext2D, width: number, level: number, token: number): void {
    const left = this.gutter(), column = this.column(), scroll = this.scroller.scrollLeft, { layers } = this.ladder;
    const first = Math.max(Math.floor(scroll / column), 0);
    const last = Math.min(Math.ceil((scroll + width - left) / column), this.tokens.length - 1);
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, this.height() + 6);
    context.clip();
    for (let t = first; t <= last; ++t) {
      const x = left + t * column - scroll;
      if (t === token) {
        context.fillStyle = ink.sunk;
        box(context, x + 1, 0, column - 2, this.height() + 4, 8);
        context.fill();
      }
      for (let l = 0; l < layers.length; ++l) this.cell(context, l, t, x, l === level && t === token);
      if (this.topRow) this.nextCell(context, t, x);
    }
    this.readRow(context, first, last, left - scroll);
    context.restore();
    context.textAlign = "right";
    context.font = `${innerWidth < 640 ? 11 : 12}px ${ink.font}`;
    const label = (text: string, y: number, strong = false) => {
      context.fillStyle = strong ? ink.text : ink.soft;
      context.fillText(fitText(context, text, left - 12), left - 10, y + this.rowHeight / 2);
    };
    if (this.topRow) label(say("truth"), 0);
    layers.forEach((name, l) => label(layerName(name), this.y(l), l === level));
    label(say("read"), (this.rows - 1) * this.rowHeight);
  }

  private cell(context: CanvasRenderingContext2D, level: number, t: number, x: number, chosen: boolean): void {
    const guess = list(list(this.ladder.guesses[level])[t])[0], column = this.column(), high = this.rowHeight;
    if (!guess) return;
    const y = this.y(level), from = list(this.ladder.settled)[t], isSettled = known(from) && level >= from;
    box(context, x + 2, y + 2, column - 4, high - 4, 5);
    context.fillStyle = isSettled ? withAlpha(ink.sure, 0.1 + 0.55 * clamp(guess.p, 0, 1)) : withAlpha(ink.faint, 0.1);
    context.fill();
    if (chosen) {
      context.strokeStyle = ink.accent;
      context.lineWidth = 2;
      context.stroke();
    }
    if (level === from && level > 0) {  // the rung on which it settled
      context.fillStyle = ink.sure;
      context.fillRect(x + 8, y + high - 2.5, column - 16, 2);
    }
    context.font = `${isSettled ? "500 " : ""}13px ${ink.font}`;
    context.fillStyle = isSettled ? ink.text : ink.faint;
    context.textAlign = "center";
    context.fillText(fitText(context, visible(guess.text), column - 14), x + column / 2, y + high / 2 + 0.5);
  }

  private nextCell(context: CanvasRenderingContext2D, t: number, x: number): void {
    const next = list(this.ladder.next)[t];
    if (next === null || next === undefined) return;
    const right = list(list(this.ladder.guesses.at(-1))[t])[0]?.text === next;
    context.textAlign = "center";
    context.font = `13px ${ink.font}`;
    context.fillStyle = right ? ink.sure : ink.soft;
    context.fillText(fitText(context, (right ? "✓ " : "") + visible(next), this.column() - 10), x + this.column() / 2, this.rowHeight / 2);
  }

  private readRow(context: CanvasRenderingContext2D, first: number, last: number, left: number): void {
    const y = (this.rows - 1) * this.rowHeight, column = this.column();
    for (let t = first; t <= last;) {
      const whole = pieces(this.tokens, t);
      const x = left + whole.begin * column, width = (whole.end - whole.begin) * column;
      box(context, x + 2, y + 3, width - 4, this.rowHeight - 4, 6);
      context.strokeStyle = ink.line;
      context.lineWidth = 1;
      context.fillStyle = ink.card;
      context.fill();
      context.stroke();
      context.fillStyle = ink.text;
      context.font = `600 13px ${ink.font}`;
      context.textAlign = "center";
      context.fillText(fitText(context, whole.text, width - 12), x + width / 2, y + this.rowHeight / 2 + 1);
      t = whole.end;
    }
  }
}
