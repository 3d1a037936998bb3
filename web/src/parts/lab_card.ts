// One lab: claim, verdict, what was found, rules with intervals, curves and numbers; on record, and as it was measured here.
import { live } from "../core/api";
import { canvas, type Picture } from "../core/canvas";
import { seriesColours } from "../core/colour";
import { el, type Child } from "../core/dom";
import { known, num } from "../core/format";
import type { JobState } from "../core/jobs";
import { axes, curve, frameOf } from "../core/plot";
import { table } from "../core/section";
import { effect, signal } from "../core/signal";
import * as store from "../core/store";
import { words } from "../core/words";
import { labHow, labWord } from "../words/labs";

interface Row { name: string; n: number; values: number[]; mean?: number | null; low?: number | null; high?: number | null }
interface Rule { number: string; side: "above" | "below"; bound: number; why: string; held?: boolean | null; part?: string }
interface Curve { x: string; y: string; series: string; points: { x: number; mean: number }[] }
interface LabPart { name: string; name_zh: string; claim: string; claim_zh: string; verdict: string; found: string; found_zh: string }
interface LabReport { verdict: string; found?: string; found_zh?: string; seeds: number[]; seconds?: number; stopped?: boolean; parts?: LabPart[]; rows: Row[]; rules: Rule[]; curves: Curve[] }
export interface Lab { name: string; claim: string; claim_zh: string; how: string; seeds: number; rules: Rule[]; recorded: LabReport | null; here: LabReport | null }

export const sayLabs = words({
  en: {
    name: "Labs", title: "Claims, as experiments that can fail", lead: "Each lab trains small models from scratch and measures a claim. What would count as seen was fixed before anything was measured. The answer may be no.",
    verdicts: { seen: "seen", mixed: "partly seen", "not seen": "not seen", "no verdict": "no verdict", skipped: "skipped" } as Record<string, string>, unrecorded: "not recorded yet",
    held: (some: number, all: number) => `${some} of ${all} rules hold`, run: "Run it here", again: "Run it again", stop: "Stop", recorded: "on record", here: "here", thisRun: "this run", seedOf: (seed: number, of: number) => `seed ${seed} of ${of}`,
    states: { starting: "Starting …", running: "Measuring", paused: "Paused", stopping: "Stopping …", stopped: "Stopped before it was done: no verdict.", finished: "Done", failed: "The lab failed." } as Record<JobState, string>,
    above: (bound: string) => `must be above ${bound}`, below: (bound: string) => `must be below ${bound}`, yes: "holds", no: "does not hold", skipped: "skipped", parts: "Claim by claim", fileLead: "What qkv lab measured. What would count as seen was fixed before anything was measured. The answer may be no.", more: "How it is measured, and all numbers", seeds: (n: number) => `${n} seeds`, took: (s: string) => `${s} s`,
    number: "number", mean: "mean", interval: "95 %: Student’s t over the seeds, on a scale that ends where the number ends. A rule holds if the whole interval lies on its side.", busy: "Another piece of work is under way; one at a time.", which: "which", failedHint: "Nothing else is affected; run it again.", loading: "Asking for the labs …",
  },
  zh: {
    name: "实验", title: "把说法做成可以被证伪的实验", lead: "每个实验都从零训练小模型，测量一个说法。怎样算成立，在测量之前就定好了。答案可以是否定的。",
    verdicts: { seen: "成立", mixed: "部分成立", "not seen": "不成立", "no verdict": "没有结论", skipped: "跳过" } as Record<string, string>, unrecorded: "还没有记录",
    held: (some: number, all: number) => `${all} 条判据中有 ${some} 条成立`, run: "在这里运行", again: "再运行一次", stop: "停止", recorded: "记录", here: "这里", thisRun: "本次", seedOf: (seed: number, of: number) => `第 ${seed} 个种子，共 ${of} 个`,
    states: { starting: "正在启动……", running: "正在测量", paused: "已暂停", stopping: "正在停止……", stopped: "没有做完就停止了：没有结论。", finished: "完成", failed: "实验失败。" } as Record<JobState, string>,
    above: (bound: string) => `应大于 ${bound}`, below: (bound: string) => `应小于 ${bound}`, yes: "成立", no: "不成立", skipped: "跳过", parts: "逐条来看", fileLead: "qkv lab 测得的结果。怎样算成立，在测量之前就定好了。答案可以是否定的。", more: "怎样测量，以及全部数据", seeds: (n: number) => `${n} 个种子`, took: (s: string) => `${s} 秒`,
    number: "量", mean: "均值", interval: "95 % 区间：对各个种子用学生 t 分布，所用的尺度在数值的尽头也到尽头。整个区间都在判据的一侧，判据才算成立。", busy: "另一项工作正在进行，一次只做一件事。", which: "编号", failedHint: "其他部分不受影响，可以再运行一次。", loading: "正在读取实验列表……",
  },
});

const opened = store.keep("lab", signal(""));
const hereName = (): string => sayLabs(live() ? "here" : "thisRun");
const kindOf = (verdict: string): string => verdict.replace(" ", "-");
const claimOf = (lab: Lab): string => (store.lang() === "zh" && lab.claim_zh ? lab.claim_zh : lab.claim);
const digits = (x: number): number => (Math.abs(x) >= 10 ? 1 : Math.abs(x) >= 1 ? 2 : 3);
const short = (x: unknown): string => (known(x) ? num(x, digits(x)) : "–");

function badge(report: LabReport | null): HTMLElement {
  return el("span", { class: `verdict ${report ? kindOf(report.verdict) : "none"}` }, report ? sayLabs("verdicts")[report.verdict] ?? report.verdict : sayLabs("unrecorded"));
}

// Intervals of one number and the bound of its rule, on one line that all of them share.
function measured(rule: Rule, rows: { row: Row; name: string; held?: boolean | null }[]): HTMLElement {
  const ends = [rule.bound, ...rows.flatMap(({ row }) => [row.mean, row.low, row.high])].filter(known);
  const low = Math.min(...ends), high = Math.max(...ends), span = high - low || 1, at = (x: number) => `${(((x - low) / span) * 84 + 8).toFixed(2)}%`;
  return el("li", { class: "rule" },
    el("p", { class: "rule-name" }, el("b", {}, labWord(rule.number)), el("span", { class: "fine" }, ` ${sayLabs(rule.side)(short(rule.bound))} (${labWord(rule.why)})`)),
    rows.length ? "" : el("p", { class: "fine" }, sayLabs("skipped")),
    rows.map(({ row, name, held }) => el("div", { class: `measured ${held ? "held" : "fails"}` },
      el("span", { class: "fine" }, name),
      el("div", { class: "whisker", role: "img", "aria-label": `${labWord(rule.number)}: ${short(row.mean)}` },
        el("i", { class: "side", style: rule.side === "above" ? { left: at(rule.bound), right: "0" } : { left: "0", right: `calc(100% - ${at(rule.bound)})` } }),
        el("i", { class: "bound", style: { left: at(rule.bound) } }),
        known(row.low) && known(row.high) ? el("i", { class: "range", style: { left: at(row.low), width: `calc(${at(row.high)} - ${at(row.low)})` } }) : null,
        known(row.mean) ? el("i", { class: "dot", style: { left: at(row.mean) } }) : null),
      el("span", { class: "rule-number" }, short(row.mean), known(row.low) ? el("small", {}, ` [${short(row.low)}, ${short(row.high)}]`) : ""),
      el("span", { class: "held" }, held ? `✓ ${sayLabs("yes")}` : `✗ ${sayLabs("no")}`))));
}

function rules(lab: Lab): Child {
  const reports = [[sayLabs("recorded"), lab.recorded], [hereName(), lab.here]] as const;
  return el("ul", { class: "rules" }, lab.rules.map((rule) => measured(rule, reports.flatMap(([name, report]) => {
    const row = report?.rows.find((one) => one.name === rule.number);
    return row ? [{ row, name, held: report!.rules.find((one) => one.number === rule.number)?.held }] : [];
  }))));
}

// Claims within the claim: each has a verdict of its own.
function partsOf(report: LabReport | null): Child {
  const zh = store.lang() === "zh";
  return report?.parts?.length ? el("ul", { class: "lab-parts", "aria-label": sayLabs("parts") }, report.parts.map((part) => el("li", {},
    el("p", {}, el("b", {}, zh ? part.name_zh : part.name), " ", el("span", { class: `verdict ${kindOf(part.verdict)}` }, sayLabs("verdicts")[part.verdict] ?? part.verdict), " ", zh ? part.claim_zh : part.claim),
    el("p", { class: "fine" }, zh ? part.found_zh : part.found)))) : null;
}

function curvesOf(report: LabReport): Child {
  return [...new Set(report.curves.map((one) => one.y))].map((y) => {
    const lines = report.curves.filter((one) => one.y === y), points = lines.flatMap((one) => one.points);
    const xHigh = Math.max(...points.map((p) => p.x)), yHigh = Math.max(...points.map((p) => p.mean)), yLow = Math.min(0, ...points.map((p) => p.mean));
    const picture: Picture = canvas(labWord(y), () => 190, (context, width, height) => {
      const g = frameOf(width, height, xHigh, yLow, yHigh, 10);
      axes(context, g, yLow, yHigh, xHigh);
      lines.forEach((line, i) => curve(context, g, line.points.map((p) => [p.x, p.mean] as const), seriesColours[i % seriesColours.length], 1.8));
    });
    effect(() => picture.paint());
    return el("figure", { class: "panel" }, el("figcaption", {}, labWord(y)), picture.holder,
      el("p", { class: "legend dots" }, lines.map((line, i) => el("span", {}, el("i", { style: { background: seriesColours[i % seriesColours.length] } }), labWord(line.series))), el("span", {}, `x: ${labWord(lines[0].x)}`)));
  });
}

function details(lab: Lab): Child {
  const report = lab.here ?? lab.recorded;
  const made = el("details", { class: "folded", ontoggle: (event: Event) => { const open = (event.target as HTMLDetailsElement).open; if (open) opened.set(lab.name); else if (opened.peek() === lab.name) opened.set(""); } },
    el("summary", {}, sayLabs("more")),
    () => (opened() !== lab.name ? null : [el("p", { class: "lab-how" }, labHow(lab.name, lab.how)), el("p", { class: "fine" }, sayLabs("interval")), report ? el("div", { class: "panels" }, curvesOf(report)) : null,
      report ? table(lab.name, { columns: [sayLabs("number"), sayLabs("mean"), "2.5 %", "97.5 %", "n"], rows: report.rows.map((row) => [labWord(row.name), known(row.mean) ? row.mean : `${sayLabs("which")} ${row.values.join(" ")}`, row.low, row.high, row.n]) }) : null]));
  effect(() => { made.open = opened() === lab.name; });
  return made;
}

// `below`: what a live page adds, buttons and progress.
export function labCard(lab: Lab, below: Child = null): Child {
  const report = lab.here ?? lab.recorded, held = report?.rules.filter((rule) => rule.held).length ?? 0;
  return el("article", { class: "card lab", "data-lab": lab.name },
    el("header", {}, el("h3", {}, lab.name), badge(report), report ? el("span", { class: "fine" }, [sayLabs("held")(held, report.rules.filter((rule) => rule.held !== null).length), sayLabs("seeds")(report.seeds.length), lab.here ? hereName() : sayLabs("recorded"), lab.here?.seconds ? sayLabs("took")(num(lab.here.seconds, 0)) : ""].filter(Boolean).join(" · ")) : ""),
    el("p", { class: "claim" }, claimOf(lab)), report?.found ? el("p", { class: "found" }, store.lang() === "zh" ? report.found_zh ?? report.found : report.found) : null, partsOf(report), rules(lab), below, details(lab));
}
