// A part of the page, with its three depths: See, Explain (with this example's numbers), Numbers (a table to save).
import { el, type Child } from "./dom";
import { num, visible } from "./format";
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
      depths.length > 1 ? el("div", { class: "switch", role: "group", "aria-label": say("depthLabel") }, depths.map((depth) => el("button", {
        type: "button", "data-depth": depth, "aria-pressed": () => String(depthOf(part.id) === depth), onclick: () => setDepth(part.id, depth),
      }, say("depth")[depth]))) : null),
    part.figure, el("div", { class: "depth-extra" }, extra));
}

export function saveAs(name: string, blob: Blob): void {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
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
      el("button", { type: "button", class: "plain", onclick: () => saveAs(`qkv-${name}.csv`, new Blob([csv(all)], { type: "text/csv" })) }, say("save"))));
}
