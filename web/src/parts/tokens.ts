// The text the model read; a chip's depth says how sure the model was of what follows.
import { el, type Child } from "../core/dom";
import { list, tokenName } from "../core/format";
import { report, type Guess } from "../core/report";
import type { Part } from "../core/section";
import { effect } from "../core/signal";
import * as store from "../core/store";
import { guessBars, tip } from "../core/tip";
import { say } from "../core/words";
import { chips, chipsOf } from "./chips";
import { chosenToken, ladderReady } from "./ladder";

const lastGuess = (t: number): readonly Guess[] => list(list(report().ladder?.guesses.at(-1))[t]);

// The tokens as chips to pick from, and what their colours mean.
export function tokenRow(): Child {
  const { ladder } = report(), tokens = list(report().tokens);
  const tops = tokens.map((_, t) => lastGuess(t)[0]);
  const right = tops.map((top, t) => Boolean(top && ladder?.next?.[t] && top.text === ladder.next[t]));
  const row = chips(tokens, { sureness: tops.map((top) => top?.p), right, onPick: ladder ? pick : undefined });
  effect(() => {
    const chosen = chosenToken(tokens.length);
    chipsOf(row).forEach((node, t) => { node.classList.toggle("chosen", t === chosen); if (ladder) node.setAttribute("aria-pressed", String(t === chosen)); });
  });
  row.addEventListener("pointermove", (event) => {
    const node = (event.target as Element).closest<HTMLElement>("button.chip");
    if (!node || event.pointerType === "touch") return tip.hide();
    const t = Number(node.dataset.token);
    tip.show(event.clientX, event.clientY, el("b", {}, say("after")(tokenName(tokens, t))), guessBars(lastGuess(t)));
  });
  row.addEventListener("pointerleave", () => tip.hide());
  return [row, ladder ? el("p", { class: "legend" }, say("unsure"), el("i", { class: "ramp-sure" }), say("sure"),
    right.some(Boolean) ? el("span", { class: "legend-right" }, say("right")) : null) : null];
}

export function tokensPart(): Part {
  const { ladder, source } = report();
  const figure = el("div", { class: "card" }, source ? [el("h3", {}, say("sourceTitle")), chips(source), el("h3", {}, say("targetTitle"))] : null, tokenRow());
  return { id: "tokens", title: say("tokensTitle"), lead: say(ladder ? "tokensLead" : "tokensLeadPlain"), figure };
}

function pick(t: number): void {
  store.token.set(t);
  store.layer.set(list(report.peek().ladder?.layers).length - 2);  // the output
  ladderReady();
}
