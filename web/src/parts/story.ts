// One token's path through the layers, step by step.
import { signedColour } from "../core/colour";
import { el, type Child } from "../core/dom";
import { clamp, known, largest, layerName, list, num, percent, short, tokenName, visible } from "../core/format";
import { report, story as shownStory, type Match, type StoryHead, type StoryLayer } from "../core/report";
import type { Part } from "../core/section";
import { signal, untracked } from "../core/signal";
import { offerStep } from "../core/steps";
import * as store from "../core/store";
import { barLine, guessBars } from "../core/tip";
import { say } from "../core/words";
import { chips, chipsOf } from "./chips";
import { calm } from "./ladder";

const stopNames = ["in", "q", "k", "v", "o", "mid", "mlp", "out"] as const;
type Stop = (typeof stopNames)[number];
const stop = signal(0);

// A layer has only the stops its numbers allow.
function stopsOf(layer: StoryLayer): Stop[] {
  const heads = list(layer.heads);
  const has: Record<Stop, boolean> = {
    in: known(layer.norm_in), q: heads.some((head) => list(head.q).length > 0), k: heads.some((head) => list(head.matches).length > 0),
    v: heads.some((head) => known(head.z_norm)), o: known(layer.attn_out_norm), mid: known(layer.resid_mid_norm),
    mlp: known(layer.mlp_out_norm), out: list(layer.guess).length > 0,
  };
  return stopNames.filter((name) => has[name]);
}

export function storyPart(): Part {
  const story = shownStory()!, layers = story.layers, tokens = list(report().tokens);
  const shown = tokens[story.token] ? tokenName(tokens, story.token) : visible(story.shown);
  const layerAt = () => clamp(store.layer() ?? 0, 0, layers.length - 1);
  const stopAt = () => clamp(stop(), 0, stopsOf(layers[layerAt()]).length - 1);
  const nowStop = () => stopsOf(layers[layerAt()])[stopAt()];
  function go(layer: number, to: number): void {
    store.layer.set(clamp(layer, 0, layers.length - 1));
    stop.set(clamp(to, 0, stopsOf(layers[clamp(layer, 0, layers.length - 1)]).length - 1));
  }
  function move(by: number): void {
    let layer = layerAt(), to = stopAt() + by;
    if (to < 0 && layer > 0) to = stopsOf(layers[--layer]).length - 1;
    else if (to >= stopsOf(layers[layer]).length && layer + 1 < layers.length) { ++layer; to = 0; }
    go(layer, to);
  }

  // From anywhere on the page: brings the story into view first, then steps on.
  offerStep(() => {
    const box = figure.getBoundingClientRect(), seen = box.top < innerHeight * 0.7 && box.bottom > innerHeight * 0.3;
    if (seen) untracked(() => move(1));
    else figure.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "center" });
  });

  const longest = largest(layers.map((l) => l.resid_norm));
  const rail = el("div", { class: "rail", role: "group", "aria-label": say("layer") }, layers.map((l, i) => {
    const best = list(l.guess)[0];
    return el("button", { type: "button", class: "rung", "aria-pressed": () => String(i === layerAt()), onclick: () => go(i, 0) },
      el("span", { class: "rung-name" }, layerName(String(l.layer ?? i))),
      known(l.resid_norm) ? el("span", { class: "rung-norm" }, el("i", { style: { width: `${(100 * l.resid_norm) / (longest || 1)}%` } })) : "",
      best ? el("span", { class: "rung-guess" }, visible(best.text), el("small", {}, percent(best.p))) : "");
  }).reverse());
  const track = el("ol", { class: "track" }, () => stopsOf(layers[layerAt()]).map((name, i) => el("li", { class: () => (i === stopAt() ? "now" : i < stopAt() ? "done" : "") },
    el("button", { type: "button", "aria-current": () => (i === stopAt() ? "step" : null), "data-stop": name, onclick: () => go(layerAt(), i) }, say("stops")[name]))));
  const body = el("div", { class: "story-body", "aria-live": "polite" }, () => show(layers, layerAt(), nowStop()));
  const atStart = () => layerAt() === 0 && stopAt() === 0;
  const atEnd = () => layerAt() === layers.length - 1 && stopAt() === stopsOf(layers[layerAt()]).length - 1;
  const back = el("button", { type: "button", class: "step-button", disabled: atStart, onclick: () => move(-1) }, `← ${say("previous")}`);
  const forward = el("button", { type: "button", class: "step-button main", disabled: atEnd, onclick: () => move(1) }, `${say("next")} →`);

  const figure = el("div", { class: "card story", tabindex: "0", role: "group", "aria-label": say("storyTitle")(shown) + ". " + say("storyHint") },
    rail, el("div", { class: "story-main" }, neighbours(story.token), track,
      el("div", { class: "story-foot" }, back, forward, el("p", { class: "hint" }, say("storyHint"))), body));
  figure.addEventListener("keydown", (event) => {
    const onButton = (event.target as Element).tagName === "BUTTON";
    if (event.key === "ArrowRight" || (event.key === " " && !onButton)) move(event.shiftKey ? -1 : 1);
    else if (event.key === "ArrowLeft") move(-1);
    else if (event.key === "ArrowUp") go(layerAt() + 1, stopAt());
    else if (event.key === "ArrowDown") go(layerAt() - 1, stopAt());
    else return;
    event.preventDefault();
    // The pressed button may be gone with the step it stood on.
    queueMicrotask(() => { if (!figure.contains(document.activeElement)) figure.focus({ preventScroll: true }); });
  });

  return {
    id: "story", title: say("storyTitle")(shown), lead: say("storyLead"), figure,
    explain: () => explainStop(layers[layerAt()], nowStop()),
    numbers() {
      return { columns: [say("layer"), say("head"), say("key"), "q·k", say("scaled"), say("shareOf"), say("vNorm"), say("qNorm"), say("zNorm"), say("outNorm")],
        rows: layers.flatMap((l, i) => list(l.heads).flatMap((head) => list(head.matches).map((m) =>
          [layerName(String(l.layer ?? i)), head.name, m.text, m.qk, m.score, m.share, m.v_norm, head.q_norm, head.z_norm, head.out_norm]))) };
    },
  };
}

// The token among its neighbours.
const near = 14;
function neighbours(at: number): Child {
  const tokens = list(report().tokens);
  if (!known(at) || !tokens[at]) return null;
  const first = Math.max(at - near, 0), made = chips(tokens.slice(first, at + near + 1));
  made.classList.add("strip", "context");
  chipsOf(made)[at - first].classList.add("asking");
  return made;
}

// Every stop has its own explanation, with the numbers of the head that is selected, or of the first.
function explainStop(layer: StoryLayer, at: Stop): Child[] {
  const heads = list(layer.heads);
  const head = heads.find((one) => one.name === store.head()) ?? heads[0], best = list(head?.matches)[0];
  const facts = {
    layer: layer.layer ?? 0, head: head?.name, heads: heads.length, width: head?.width, scale: num(head?.scale, 4), q: num(head?.q_norm), key: visible(best?.text),
    qk: num(best?.qk), score: num(best?.score), share: percent(best?.share), v: num(best?.v_norm), part: num((best?.share ?? NaN) * (best?.v_norm ?? NaN)), z: num(head?.z_norm), out: num(head?.out_norm),
    x: num(layer.norm_in), attention: num(layer.attn_out_norm), mid: num(layer.resid_mid_norm), mlp: num(layer.mlp_out_norm), resid: num(layer.resid_norm),
    guess: visible(list(layer.guess)[0]?.text), p: percent(list(layer.guess)[0]?.p), nats: num(-Math.log(list(layer.guess)[0]?.p ?? NaN)),
  };
  return say("explainStops")[at](facts);
}

const matchName = (m: Match): Child => [visible(m.text) || "·", el("small", {}, ` ${m.key}`)];  // with its place: a word may stand there twice
const headCards = (heads: readonly StoryHead[], content: (head: StoryHead) => Child) => el("div", { class: "head-cards" },
  heads.map((head) => el("div", { class: () => (head.name === store.head() ? "head-card chosen" : "head-card") }, el("h4", {}, head.name), content(head))));

export function vectorRow(values: readonly number[]): HTMLElement {
  const most = largest(values.map(Math.abs)) || 1;
  return el("div", { class: "vector" }, values.map((value) => el("span", { style: { background: signedColour(value, most) } }, short(value))));
}

function lengths(entries: [string, number | undefined, boolean?][]): HTMLElement {
  const most = largest(entries.map(([, value]) => value)) || 1;
  return el("div", { class: "bars wide" }, entries.map(([label, value, reached]) => known(value) ? barLine(label, value / most, num(value), "", reached === false ? "bar ahead" : "bar") : null));
}

function show(layers: readonly StoryLayer[], index: number, at: Stop | undefined): Child {
  const layer = layers[index], heads = list(layer.heads), text = (...parts: Child[]) => el("p", { class: "story-text" }, ...parts);
  switch (at) {
    case "in":
      return [text(say("stopIn")(layer.layer ?? index, num(layer.norm_in))),
        el("h3", {}, say("streamLength")), lengths(layers.map((l, i) => [layerName(String(l.layer ?? i)), l.resid_norm, i <= index]))];
    case "q":
      return [text(say("stopQ")(heads.length)), headCards(heads, (head) => [vectorRow(list(head.q)), known(head.q_norm) ? el("small", {}, `${say("qNorm")} ${num(head.q_norm)}`) : ""])];
    case "k":
      return [text(say("stopK")), headCards(heads, (head) => el("div", { class: "bars" }, list(head.matches).slice(0, 5).map((m) =>
        el("div", { class: "match" }, barLine(matchName(m), m.share, percent(m.share), "var(--heat)"), known(m.qk) ? el("small", {}, `q·k ${num(m.qk)} → ${num(m.score)}`) : "")),
        (head.others ?? 0) > 0.0005 ? el("small", { class: "total" }, `${say("rest")} ${percent(head.others)}`) : ""))];
    case "v": {
      const most = largest(heads.flatMap((head) => list(head.matches).map((m) => m.share * (m.v_norm ?? NaN)))) || 1;
      return [text(say("stopV")), headCards(heads, (head) => [el("div", { class: "bars" }, list(head.matches).slice(0, 4).filter((m) => known(m.v_norm)).map((m) =>
        el("div", { class: "match" }, barLine(matchName(m), (m.share * m.v_norm!) / most, num(m.share * m.v_norm!), "var(--size)"), el("small", {}, `${percent(m.share)} × ‖v‖ ${num(m.v_norm)}`)))),
        el("small", { class: "total" }, `${say("zNorm")} ${num(head.z_norm)}`)])];
    }
    case "o":
      return [text(say("stopO")(num(layer.attn_out_norm))), lengths(heads.map((head) => [head.name, head.out_norm]))];
    case "mid":
      return [text(say("stopMid")(num(layer.norm_in), num(layer.attn_out_norm), num(layer.resid_mid_norm))),
        lengths([["x", layer.norm_in], [say("plusAttention"), layer.attn_out_norm], [say("plusCross"), layer.cross_out_norm], ["=", layer.resid_mid_norm]])];
    case "mlp":
      return [text(say("stopMlp")(num(layer.mlp_out_norm), num(layer.resid_norm))),
        lengths([["x", layer.resid_mid_norm], [say("plusMlp"), layer.mlp_out_norm], ["=", layer.resid_norm]])];
    default:
      return [text(say("stopOut")), el("div", { class: "big-guess" }, guessBars(layer.guess))];
  }
}
