// Heads found: all heads on two measures, their roles with coverage and interval, examples by tenths, twins.
import { live } from "../../core/api";
import { roleColour } from "../../core/colour";
import { el, type Child } from "../../core/dom";
import { clamp, known, list, num, percent, roleName, score, signed } from "../../core/format";
import { can, modelNow } from "../../core/looking";
import type { Token } from "../../core/report";
import { section } from "../../core/section";
import { computed, signal } from "../../core/signal";
import * as store from "../../core/store";
import { chips, chipsOf } from "../../parts/chips";
import type { Door } from "../door";
import { asking, type Asked } from "../kit";
import { barLine } from "../../core/tip";
import { baselineName } from "../../words/relations";
import type { Example, Examples, Found, FoundHead, TwinsFound } from "./data";
import { scatter } from "./scatter";
import { measureName, say } from "./words";

const axisX = store.keep("x", signal("")), axisY = store.keep("y", signal(""));

// The clearest head first: the one whose role explains most. Those that look at the first token or at themselves tell least.
const clearest = (heads: readonly FoundHead[]): FoundHead | undefined => heads.reduce<FoundHead | undefined>((best, head) => {
  const worth = (one?: FoundHead) => (one?.roles[0] ? one.roles[0].coverage.mean - (["first token", "current token"].includes(one.roles[0].name) ? 1 : 0) : -2);
  return worth(head) > worth(best) ? head : best;
}, heads[0]);

export const headsDoor: Door = {
  id: "heads",
  name: () => say("name"),
  here: () => live() && can("heads"),
  show() {
    const body = () => (modelNow() ? { model: modelNow()!.name } : null);
    const found = asking<Found>("/page/roles", body, { until: (next) => next.state !== "measuring" && next.labels !== "measuring" });
    const heads = computed(() => list(found.value()?.heads) as FoundHead[]);
    const chosen = computed(() => heads().find((head) => head.name === store.head()) ?? clearest(heads()));
    const examples = asking<Examples>("/page/examples", () => (chosen() ? { ...body(), head: chosen()!.name } : null), { delay: 150 });
    const more = () => found.value()?.labels === "measuring";  // roles that gold labels show are on their way
    const twins = asking<TwinsFound>("/page/twins", () => (heads().length > 1 ? body() : null), { until: (next) => next.state !== "measuring" });
    return [found.note, () => (heads().length ? [points(heads, chosen, twins, more), exampleSection(chosen, examples), twinSection(twins)]
      : section({ id: "heads", title: say("title"), lead: say("lead"), figure: el("div", { class: "card measuring" }, measuring(found)) }))];
  },
};

// How far the measurement is; it goes on while one looks elsewhere.
function measuring(found: Asked<Found>): Child {
  const now = found.value(), { done = 0, of = 0 } = now ?? {};
  if (now?.state === "failed") return el("p", {}, `${say("failed")} ${now.error}`);
  return [el("p", { role: "status" }, say("measuring")(done, of)), of ? el("progress", { max: of, value: done, "aria-label": say("measuring")(done, of) }) : null, el("p", { class: "fine" }, say("meanwhile"))];
}

function points(heads: () => FoundHead[], chosen: () => FoundHead | undefined, twins: Asked<TwinsFound>, more: () => boolean): Child {
  const measures = [...new Set(heads().flatMap((head) => Object.keys(head.measures)))];
  const axis = (own: () => string, fallback: string[]) => () => (measures.includes(own()) ? own() : fallback.find((one) => measures.includes(one)) ?? measures[0]);
  const x = axis(axisX, ["previous"]), y = axis(axisY, ["repeat_induction", "induction", "entropy"]);
  const choose = (name: string) => { store.head.set(name); store.locked.set(true); };
  const picker = (label: string, value: () => string, set: (name: string) => void, id: string) => el("label", { class: "picker" }, el("span", {}, label),
    () => el("select", { id, onchange: (event: Event) => set((event.target as HTMLSelectElement).value) }, measures.map((one) => el("option", { value: one, selected: one === value() }, measureName(one)))));
  return section({
    id: "heads", title: say("title"), lead: say("lead"),
    figure: el("div", { class: "card heads-grid" },
      el("div", {}, el("div", { class: "picks" }, picker(say("x"), x, axisX.set, "axis-x"), picker(say("y"), y, axisY.set, "axis-y")),
        scatter({ heads: heads(), x, y, chosen: () => chosen()?.name ?? "", choose }), legend(heads()), el("p", { class: "hint" }, say("hint"))),
      el("div", { class: "head-panel" }, () => (chosen() ? panel(chosen()!, heads(), choose, twins, more) : null))),
    explain: () => { const head = chosen()!; return say("explain")({ head: head.name, x: measureName(x()), xv: num(head.measures[x()]?.mean, 3), y: measureName(y()), yv: num(head.measures[y()]?.mean, 3), n: String(head.measures[x()]?.n ?? "–") }); },
    numbers: () => ({ columns: ["", ...measures.map(measureName)], rows: heads().map((head) => [head.name, ...measures.map((one) => head.measures[one]?.mean)]) }),
  });
}

function legend(heads: readonly FoundHead[]): Child {
  const names = [...new Set(heads.map((head) => head.roles[0]?.name).filter(Boolean))] as string[];
  return el("p", { class: "legend dots" }, names.map((name) => el("span", {}, el("i", { style: { background: roleColour(name) } }), roleName(name))));
}

function panel(head: FoundHead, heads: readonly FoundHead[], choose: (name: string) => void, twins: Asked<TwinsFound>, more: () => boolean): Child {
  const copied = signal(false);
  const href = () => `#/heads?${new URLSearchParams({ ...(store.model() ? { model: store.model() } : {}), head: head.name, ...(axisX() ? { x: axisX() } : {}), ...(axisY() ? { y: axisY() } : {}) })}`;
  const copy = () => { navigator.clipboard?.writeText(new URL(href(), location.href).href).then(() => copied.set(true), () => copied.set(false)); };
  const near = () => list(twins.value()?.closest).filter((pair) => pair.a === head.name || pair.b === head.name);
  return [
    el("h3", { class: "map-name" },
      el("label", { class: "picker" }, el("span", {}, say("chosen")), el("select", { "aria-label": say("chosen"), onchange: (event: Event) => choose((event.target as HTMLSelectElement).value) }, heads.map((one) => el("option", { value: one.name, selected: one === head }, one.name))))),
    el("p", { class: "head-links" }, el("a", { class: "permalink", href: href }, say("link")), el("button", { type: "button", class: "small-button", onclick: copy }, () => say(copied() ? "copied" : "copy")),
      el("button", { type: "button", class: "small-button", onclick: () => { choose(head.name); store.door.set("look"); } }, say("onText"))),
    el("h3", {}, say("roles")),
    head.roles.length ? el("div", { class: "found-roles" }, head.roles.map((role) => el("div", { class: "found-role" },
      el("span", { class: "role-tag", style: { "--role": roleColour(role.name) } }, roleName(role.name)), el("b", {}, score(role.score)),
      el("div", { class: "bar-track" }, el("i", { style: { width: `${clamp(role.score, 0, 1) * 100}%`, background: roleColour(role.name) } }), el("em", { style: { left: `${clamp(role.low ?? 0, 0, 1) * 100}%`, width: `${clamp((role.high ?? 0) - (role.low ?? 0), 0, 1) * 100}%` } })),
      el("p", { class: "fine" }, [say("covers")(percent(role.coverage.mean)), say("interval")(score(role.low), score(role.high), role.n ?? 0, role.texts), role.mass ? say("mass")(percent(role.mass.mean)) : "", role.cause ? say("cause")(percent(role.cause.restored.mean), percent(role.cause.other_heads.mean), role.cause.usable_pairs) : role.mass ? say("noCause") : "", !known(role.chance) || role.chance <= 0 ? "" : role.baseline ? say("without")(baselineName(role.baseline), score(role.chance)) : say("chance")(score(role.chance))].filter(Boolean).join(" · ")))))
      : el("p", { class: "fine" }, () => say(more() ? "noneYet" : "none")),
    el("h3", {}, say("nearest")), el("div", { class: "bars measures" }, measuresOf(head).map(([name, mean]) => barLine(measureName(name), mean, score(mean), "var(--soft)"))),
    () => (near().length ? [el("h3", {}, say("twinsTitle")), el("p", {}, near().map((pair) => el("button", { type: "button", class: "try", onclick: () => choose(pair.a === head.name ? pair.b : pair.a) }, `${pair.a === head.name ? pair.b : pair.a} · ${num(pair.distance)}`)))] : null),
  ];
}

// Where its attention goes, by what was measured, largest first.
const shares = ["current", "previous", "back2", "back3", "next", "first", "period", "comma", "colon", "question", "newline", "special", "punctuation_mass", "duplicate", "induction", "repeat_duplicate", "repeat_induction", "copying"], shownShares = 6;
const measuresOf = (head: FoundHead): [string, number][] => shares.flatMap((name): [string, number][] => (known(head.measures[name]?.mean) ? [[name, head.measures[name]!.mean]] : [])).sort((a, b) => b[1] - a[1]).slice(0, shownShares);

// --- examples ------------------------------------------------------------------------------------------------------------

function exampleSection(chosen: () => FoundHead | undefined, examples: Asked<Examples>): Child {
  return () => {
    const head = chosen();
    if (!head) return null;
    return section({
      id: "examples", title: say("examplesTitle")(head.name), lead: say("examplesLead"),
      figure: el("div", { class: "card" }, examples.note, () => {
        const now = examples.value();
        if (!now || now.head !== chosen()?.name) return examples.failed() ? null : el("p", { class: "fine" }, say("wait"));
        const tenths = [...new Set(now.examples.map((one) => one.decile))];
        return [el("p", { class: "fine" }, say("from")(now.rows, now.texts)), el("div", { class: "tenths" }, tenths.map((decile) => el("div", { class: "tenth", "data-decile": decile },
          el("h4", {}, say("decile")(decile)), el("div", { class: "tenth-texts" }, now.examples.filter((one) => one.decile === decile).map(exampleText)))))];
      }),
      numbers: () => ({ columns: [say("decile")(10), say("value"), "→", ""], rows: list(examples.value()?.examples).map((one) => [one.decile, one.strength, textOf(one.tokens, one.row), textOf(one.source ?? one.tokens, one.key)]) }),
    });
  };
}
const textOf = (tokens: readonly Token[], i: number): string => tokens[i]?.text ?? "";

// The row and the keys around it; a key far back is shown with its own surroundings.
const around = 26;
function exampleText(example: Example): Child {
  const keys = example.source ?? example.tokens;
  const windows: [number, number][] = example.source ? [[0, keys.length]] : joined([[example.row - around, example.row + 3], [example.key - 3, example.key + 4]], keys);
  const strength = el("b", { class: "strength" }, percent(example.strength));
  return el("div", { class: "example" }, strength, el("div", {},
    example.source ? el("div", { class: "strip" }, marked(example.tokens.slice(0, example.row + 1), (i) => ({ asking: i === example.row, weight: 0 }), 0)) : null,
    el("div", { class: "strip" }, windows.map(([from, to], n) => [n > 0 || from > 0 ? el("span", { class: "gap" }, "…") : null,
      marked(keys.slice(from, to), (i) => ({ asking: !example.source && i === example.row, weight: i === 0 && !example.source ? 0 : example.weights[i] ?? 0, best: i === example.key }), from)]))));
}
function marked(tokens: readonly Token[], how: (i: number) => { asking: boolean; weight: number; best?: boolean }, first: number): Child {
  const row = chips(tokens);
  chipsOf(row).forEach((node, k) => {
    const { asking: looks, weight, best } = how(first + k);
    node.style.setProperty("--p", Math.sqrt(clamp(weight, 0, 1)).toFixed(3));
    node.classList.toggle("asking", looks);
    node.classList.toggle("answering", Boolean(best));
  });
  return [...row.childNodes];
}
function joined(ranges: [number, number][], tokens: readonly Token[]): [number, number][] {
  const cut = ranges.map(([from, to]): [number, number] => {
    let a = Math.max(from, 0), b = Math.min(to, tokens.length);
    while (a > 0 && tokens[a]?.continues) --a;
    while (b < tokens.length && tokens[b]?.continues) ++b;
    return [a, b];
  }).sort((a, b) => a[0] - b[0]);
  return cut.reduce<[number, number][]>((all, next) => {
    const last = all.at(-1);
    if (last && next[0] <= last[1]) last[1] = Math.max(last[1], next[1]);
    else all.push(next);
    return all;
  }, []);
}

function twinSection(twins: Asked<TwinsFound>): Child {
  return () => {
    const now = twins.value(), pairs = list(now?.closest), same = pairs.filter((pair) => pair.duplicate);
    return section({ id: "twins", title: say("twinsTitle"), lead: say("twinsLead"), figure: el("div", { class: "card" }, twins.note,
      !now || now.state === "measuring" ? (twins.failed() ? null : el("p", { class: "fine" }, say("twinsWait")(now?.done ?? 0))) : now.state === "failed" ? el("p", { class: "fine" }, now.error)
        : [el("p", {}, same.length ? say("twinsFound")(same.length, now.compared ?? 0) : say("twinsNone")(now.compared ?? 0)),
          el("div", { class: "table", tabindex: "0", role: "region", "aria-label": say("twinsTitle") }, el("table", {}, el("thead", {}, el("tr", {}, [say("pair"), say("distance"), say("cka"), say("synergy"), say("duplicate")].map((one) => el("th", { scope: "col" }, one)))),
            el("tbody", {}, pairs.map((pair) => el("tr", {}, el("td", {}, `${pair.a} · ${pair.b}`), el("td", { class: "number" }, num(pair.distance, 3)), el("td", { class: "number" }, num(pair.cka, 3)),
              el("td", { class: "number" }, `${signed(pair.synergy, 4)} (${signed(pair.low, 4)} … ${signed(pair.high, 4)})`), el("td", {}, say(pair.duplicate ? "yes" : "no")))))))]) });
  };
}
