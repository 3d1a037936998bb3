// What the model wrote, and what it writes without a head.
import { el } from "../core/dom";
import { roleColour } from "../core/colour";
import { known, list, num, roleName, score, signed } from "../core/format";
import { report, type Cut } from "../core/report";
import type { Part } from "../core/section";
import { say } from "../core/words";

export function writtenPart(): Part {
  const { prompt, text } = report().written!;
  return { id: "written", title: say("writtenTitle"), figure: el("div", { class: "card written" },
    el("p", {}, el("span", { class: "prompt" }, String(prompt ?? "")), el("span", { class: "answer" }, String(text ?? "")))) };
}

// The model that ships, as the demo showed it before it trained its own.
export function builtInPart(): Part {
  const { model, written, roles } = report().built_in!, found = list(roles);
  return { id: "builtin", title: say("builtInTitle")(model), lead: say("builtInLead"), figure: el("div", { class: "card written" },
    el("p", {}, el("span", { class: "prompt" }, String(written?.prompt ?? "")), el("span", { class: "answer" }, String(written?.text ?? ""))),
    found.length ? [el("h3", {}, say("builtInRoles")), el("div", { class: "found-roles" }, found.map((role) => el("div", { class: "found-role" },
      el("span", { class: "role-tag", style: { "--role": roleColour(role.name) } }, roleName(role.name)), el("b", {}, role.head),
      el("p", { class: "fine" }, [say("roleScore")(score(role.score), score(role.low), score(role.high), role.n ?? 0), (role.heads ?? 1) > 1 ? say("roleHeads")(role.heads!) : ""].filter(Boolean).join(" · ")))))] : null),
    numbers: () => ({ columns: [say("role"), say("head"), say("score"), "2.5 %", "97.5 %", "n"], rows: found.map((role) => [roleName(role.name), role.head, role.score, role.low, role.high, role.n]) }) };
}

// The common start of two texts, by whole words; then where they part.
export function partedTexts(a: string, b: string): [string, string, string] {
  const left = Array.from(a), right = Array.from(b);
  let same = 0;
  while (same < left.length && same < right.length && left[same] === right[same]) ++same;
  while (same > 0 && same < left.length && /[A-Za-z]/.test(left[same - 1])) --same;
  return [left.slice(0, same).join(""), left.slice(same).join(""), right.slice(same).join("")];
}

// The old text struck through, the new one beside it.
export function struckTexts(before: string, after: string): HTMLElement {
  const [start, gone, come] = partedTexts(before, after);
  return el("p", { class: "texts" }, start, gone && gone !== come ? el("del", {}, gone) : gone, gone !== come && come ? el("ins", {}, come) : "",
    gone === come ? el("span", { class: "same" }, say("same")) : "");
}

const kindName = (kind?: string): string => (kind === "least" || kind === "most" ? say(kind) : kind ?? "");

// An interval on a line, with 0 marked; `ends` are of all intervals that are to be compared.
export function whisker(cut: Cut, ends: readonly number[]): HTMLElement {
  const low = Math.min(0, ...ends), high = Math.max(0, ...ends), span = high - low || 1;
  const at = (x = 0) => `${(((x - low) / span) * 92 + 4).toFixed(2)}%`;
  return el("div", { class: "whisker", role: "img", "aria-label": `${say("delta")} ${signed(cut.delta)}` },
    el("i", { class: "zero", style: { left: at(0) } }),
    known(cut.low) ? el("i", { class: "range", style: { left: at(cut.low), width: `calc(${at(cut.high)} - ${at(cut.low)})` } }) : null,
    el("i", { class: "dot", style: { left: at(cut.delta) } }));
}
export const intervalText = (cut: Cut): string => (known(cut.low) ? `95 %: ${signed(cut.low)} … ${signed(cut.high)} · ` : "") + (known(cut.n) ? `n = ${cut.n}` : "");

export function cutsPart(): Part {
  const cuts = report().cuts!;
  const ends = cuts.flatMap((cut) => [cut.low, cut.high, cut.delta]).filter(known);
  const cards = cuts.map((cut) => el("article", { class: `card cut ${cut.kind === "least" ? "least" : "most"}` },
    el("header", {}, el("h3", {}, cut.head), el("span", { class: "badge" }, kindName(cut.kind))),
    el("p", { class: "delta" }, el("b", {}, signed(cut.delta)), ` ${say("nats2")}`),
    whisker(cut, ends),
    el("p", { class: "fine" }, intervalText(cut)),
    cut.before || cut.after ? struckTexts(String(cut.before ?? ""), String(cut.after ?? "")) : null));
  return {
    id: "cuts", title: say("cutsTitle"), lead: say("cutsLead"), figure: el("div", { class: "cuts" }, cards),
    explain: () => cuts.flatMap((cut) => say("cutsExplain")({ head: cut.head, delta: num(cut.delta, 3), low: signed(cut.low), high: signed(cut.high), n: cut.n ?? "–",
      clear: (cut.low ?? 0) > 0 || (cut.high ?? 0) < 0, times: num(Math.exp(cut.delta ?? NaN)) })),
    numbers: () => ({ columns: [say("head"), say("kind"), say("delta"), "2.5 %", "97.5 %", "n", say("before"), say("afterCut")],
      rows: cuts.map((cut) => [cut.head, kindName(cut.kind), cut.delta, cut.low, cut.high, cut.n, cut.before, cut.after]) }),
  };
}
