// A part of the page, with its three depths: See, Explain (with this example's numbers), Numbers (a table to save).
import { saveAs, savePng, saveSvg } from "../export/save";
import { el, type Child } from "./dom";
import { num, visible } from "./format";
import { signal, untracked } from "./signal";
import { depthOf, setDepth, type Depth } from "./store";
import { say } from "./words";

export type Cell = string | number | null | undefined;
export interface Table { columns: string[]; rows: Cell[][] }
export interface Part {
  id: string;
  title: Child;
  lead?: string;
  figure: Node;
  explain?: () => Child[];  // effects: they follow the signals they read
  numbers?: () => Table;
}

export function section(part: Part): HTMLElement {
  const depths: Depth[] = ["see", ...(part.explain ? ["explain" as const] : []), ...(part.numbers ? ["numbers" as const] : [])];
  const extra = (): Child => {
    const depth = depthOf(part.id);
    if (depth === "explain" && part.explain) return el("div", { class: "explain" }, part.explain().filter(Boolean).map((text) => el("p", {}, text)));
    return depth === "numbers" && part.numbers ? table(part.id, part.numbers()) : null;
  };
  return el("section", { id: part.id, "aria-labelledby": `${part.id}-title` },
    el("div", { class: "section-head" },
      el("div", {}, el("h2", { id: `${part.id}-title` }, part.title), part.lead ? el("p", { class: "lead" }, part.lead) : null),
      el("div", { class: "section-tools", "data-unsaved": true }, depths.length > 1 ? el("div", { class: "switch", role: "group", "aria-label": say("depthLabel") }, depths.map((depth) => el("button", {
        type: "button", "data-depth": depth, "aria-pressed": () => String(depthOf(part.id) === depth), onclick: () => setDepth(part.id, depth),
      }, say("depth")[depth]))) : null, saveMenu(part))),
    part.figure, el("div", { class: "depth-extra" }, extra));
}

const saveCsv = (name: string, table: Table): void => saveAs(`qkv-${name}.csv`, new Blob([csv(table)], { type: "text/csv" }));

// PNG and SVG of the part as it is seen, CSV of its numbers.
function saveMenu(part: Part): HTMLElement {
  const whole = () => document.getElementById(part.id)!, failed = signal(false);
  const menu: HTMLDetailsElement = el("details", { class: "save", "data-unsaved": true });
  const item = (kind: string, save: () => void | Promise<void>) => el("button", { type: "button", "data-save": kind, onclick: () => {
    menu.open = false;
    Promise.resolve().then(save).then(() => failed.set(false), (error) => { console.warn(error); failed.set(true); });
  } }, kind.toUpperCase());
  menu.append(el("summary", { "aria-label": say("saveMenu"), title: say("saveMenu") }, "⤓"),
    el("div", { class: "save-items", role: "group", "aria-label": say("saveMenu") }, item("png", () => savePng(`qkv-${part.id}`, whole())), item("svg", () => saveSvg(`qkv-${part.id}`, whole())),
      part.numbers ? item("csv", () => saveCsv(part.id, untracked(() => part.numbers!()))) : null));
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { menu.open = false; menu.querySelector("summary")!.focus(); } });
  menu.addEventListener("focusout", (event) => { if (event.relatedTarget instanceof Node && !menu.contains(event.relatedTarget)) menu.open = false; });
  return el("div", { class: "save-box", "data-unsaved": true }, menu, () => (failed() ? el("span", { class: "fine", role: "alert" }, say("saveFailed")) : ""));
}

export function csv({ columns, rows }: Table): string {
  const quote = (cell: Cell) => (/[",\n]/.test(String(cell ?? "")) ? `"${String(cell).replace(/"/g, '""')}"` : String(cell ?? ""));
  return "\ufeff" + [columns, ...rows].map((row) => row.map(quote).join(",")).join("\r\n");
}

const shownRows = 200;  // the file saved has all of them
export function table(name: string, all: Table): HTMLElement {
  const { columns, rows } = all;
  const shown = (cell: Cell) => (typeof cell === "number" ? (Number.isInteger(cell) ? String(cell) : num(cell, 4)) : visible(cell ?? "–"));
  return el("div", {},
    el("div", { class: "table", tabindex: "0", role: "region", "aria-label": say("depth").numbers }, el("table", {},
      el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col" }, column)))),
      el("tbody", {}, rows.slice(0, shownRows).map((row) => el("tr", {}, row.map((cell) =>
        el("td", { class: typeof cell === "number" ? "number" : null }, shown(cell)))))))),
    el("p", { class: "table-foot" }, rows.length > shownRows ? `${say("shown")(shownRows, rows.length)} ` : "",
      el("button", { type: "button", class: "plain", onclick: () => saveCsv(name, all) }, say("save"))));
}
