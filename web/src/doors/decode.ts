// Prefill and decode: the triangle of attention fills at once, then row by row, with what every pass really took.
import { askBytes, live } from "../core/api";
import { canvas, fitText, pointIn, textWidth } from "../core/canvas";
import { ink, series } from "../core/colour";
import { el, type Child } from "../core/dom";
import { bytes, clamp, joinedText, list, num, visible } from "../core/format";
import { framePixels, readFrame, type Frame } from "../core/frames";
import { examplesOf, type Model } from "../core/looking";
import { axes, frameOf } from "../core/plot";
import type { Token } from "../core/report";
import { section } from "../core/section";
import { computed, effect, onCleanup, signal } from "../core/signal";
import * as store from "../core/store";
import { words } from "../core/words";
import type { Door } from "./door";
import { asking, doorModel, fitting, modelPicker, needs, textBox, waits } from "./kit";

const say = words({
  en: {
    name: "Prefill and decode", title: "All at once, then one by one", lead: "The prompt is read in one pass: all rows of the triangle at once. Then every new token adds one row. Keys and values of earlier tokens wait in the cache; switch it off, and every token costs a pass over everything.",
    text: "Prompt", cache: "KV cache", on: "on", off: "off", play: "Play", pause: "Pause", again: "Play again", back: "Back", next: "Next", head: "Head", step: (i: number) => (i === 0 ? "prefill" : `token ${i}`), start: "before", slow: (n: string) => `shown ${n} times slower than it ran`,
    rows: "rows computed", ms: "milliseconds", cacheSize: "cache after it", reads: "read in this pass", weights: "weights", written: "token written", pass: "pass", total: "whole text", each: "per token", chart: "Milliseconds of each pass, the fastest of three", withCache: "with cache", without: "without",
    faster: (x: string) => `Without the cache the same text took ${x} times as long.`, hint: "Rows in colour are there; the outlined ones were computed in this pass.", end: { end: "The model ended its text.", context: "The model’s context is full.", time: "Stopped after 8 seconds.", length: "" } as Record<string, string>,
    explain: (d: { prompt: number; prefill: string; each: string; token: string; cache: string; per: string; last: number; bare: string }) => [`Prefill: ${d.prompt} tokens in one pass, ${d.prefill} ms. All its rows are independent, so they fill the processor together: ${d.token} ms per token.`, `Decode: one row per pass, ${d.each} ms on average. The weights must be read again for every token, so it costs more per token than prefill.`,
      `The cache keeps k and v of every token in every layer: ${d.per} per token, ${d.cache} at ${d.last} tokens.${d.bare ? ` Without it the last pass computed all ${d.last} rows again: ${d.bare} ms.` : ""}`],
  },
  zh: {
    name: "预填充与生成", title: "先一次读完，再逐个写出", lead: "提示在一次前向计算里读完：三角形的所有行同时出现。之后每写一个词元只多一行。前面词元的键和值存在缓存里；关掉缓存，每个词元都要把全文重算一遍。",
    text: "提示", cache: "KV 缓存", on: "开", off: "关", play: "播放", pause: "暂停", again: "再播放", back: "上一步", next: "下一步", head: "头", step: (i: number) => (i === 0 ? "预填充" : `第 ${i} 个词元`), start: "开始之前", slow: (n: string) => `放慢到 1/${n} 播放`,
    rows: "计算的行数", ms: "毫秒", cacheSize: "之后的缓存", reads: "这一次读取", weights: "权重", written: "写出的词元", pass: "计算", total: "全文", each: "每个词元", chart: "每次计算的毫秒数（三次中最快的）", withCache: "有缓存", without: "无缓存",
    faster: (x: string) => `不用缓存，同样的文本用了 ${x} 倍的时间。`, hint: "有颜色的行已经算好；框出的是这一次计算的。", end: { end: "模型写完了。", context: "模型的上下文已满。", time: "8 秒后停止。", length: "" } as Record<string, string>,
    explain: (d: { prompt: number; prefill: string; each: string; token: string; cache: string; per: string; last: number; bare: string }) => [`预填充：${d.prompt} 个词元一次算完，${d.prefill} 毫秒。各行互不依赖，可以一起算：每个词元 ${d.token} 毫秒。`, `生成：每次一行，平均 ${d.each} 毫秒。每个词元都要把权重重新读一遍，所以比预填充贵。`,
      `缓存保存每一层里每个词元的 k 和 v：每个词元 ${d.per}，到第 ${d.last} 个词元共 ${d.cache}。${d.bare ? `没有缓存时，最后一次要把 ${d.last} 行全部重算：${d.bare} 毫秒。` : ""}`],
  },
});

interface Step { rows: number; length: number; ms: number; cache_bytes: number; id: number; text: string }
interface Decoded { cache: boolean; prompt: number; steps: Step[]; ids: number[]; finish: string; weight_bytes: number; dtype: string; tokens: Token[] }

const own = store.keep("prompt", signal("")), cacheOn = store.keep("cache", signal("")), headName = store.keep("dhead", signal(""));
const cached = (): boolean => cacheOn() !== "off";
const writes = (model: Model): boolean => !model.can.includes("translate");
const wanted = 24;

export const decodeDoor: Door = { id: "decode", name: () => say("name"), here: live, show: () => needs("next", say("title"), say("lead"), open) };

// The first sentence without its end: there is more to write than after a question that one word answers.
const beginning = (text: string): string => (text.includes("：") || text.includes(":") ? text : /^[^.。?？]*?(?=[ ,，]?[^ ,，]{1,12}[.。?？])/u.exec(text)?.[0] || text);

function open(): Child {
  const model = computed(() => doorModel("next", writes)), text = () => own() || beginning(examplesOf(model(), store.lang() === "zh")[0] ?? "");
  const ask = () => (model() && text().trim() ? { model: model()!.name, text: text(), steps: wanted } : null);
  const kept = asking<Decoded>("/page/decode", ask, { delay: 300 });
  const bare = asking<Decoded>("/page/decode", () => (ask() && !cached() ? { ...ask()!, cache: false } : null), { delay: 0 });
  const now = () => (cached() ? kept.value() : bare.value()) ?? null;
  const heads = () => Array.from({ length: (model()?.facts.layers ?? 0) * (model()?.facts.heads ?? 0) }, (_, i) => `L${Math.floor(i / model()!.facts.heads)}H${i % model()!.facts.heads}`);
  const head = () => (heads().includes(headName()) ? headName() : heads().includes(store.head()) ? store.head() : `L${(model()?.facts.layers ?? 1) - 1}H0`);
  const map = signal<Frame | null>(null);
  effect(() => {
    const ids = now()?.ids, abort = new AbortController();
    if (!ids || !model()) return;
    const n = ids.length, body = { model: model()!.name, ids, head: head() };
    askBytes(n <= 256 ? "/page/tile" : "/page/overview", n <= 256 ? { ...body, rows: [0, n], columns: [0, n] } : body, abort.signal).then((got) => { if (!abort.signal.aborted) map.set(readFrame(got)); }, () => {});
    onCleanup(() => abort.abort());
  });
  const at = signal(-1), playing = signal(false);  // passes that are done, less one; -1: none
  const last = () => list(now()?.steps).length - 1;
  effect(() => { if (now()) { at.set(last()); playing.set(false); } });
  const factor = () => { const all = list(kept.value()?.steps).slice(1).map((step) => step.ms).sort((a, b) => a - b); return Math.max(1, 130 / (all[all.length >> 1] ?? 130)); };
  effect(() => {
    if (!playing()) return;
    const next = at() + 1;
    if (next > last()) return playing.set(false);
    const timer = setTimeout(() => at.set(next), clamp(list(now()?.steps)[next].ms * factor(), 16, 4000));
    onCleanup(() => clearTimeout(timer));
  });
  const play = () => { if (!playing.peek() && at.peek() >= last()) at.set(-1); playing.set(!playing.peek()); };
  return section({
    id: "decode", title: say("title"), lead: say("lead"),
    figure: el("div", { class: "card" }, textBox(text, own.set, say("text")),
      el("div", { class: "picks" }, () => (fitting("next", writes).length > 1 ? modelPicker(() => fitting("next", writes), model) : ""),
        el("label", { class: "picker" }, el("span", {}, say("head")), () => el("select", { onchange: (event: Event) => headName.set((event.target as HTMLSelectElement).value) }, heads().map((one) => el("option", { value: one, selected: one === head() }, one)))),
        el("button", { type: "button", class: "cut-switch cache-switch", role: "switch", "aria-checked": () => String(cached()), onclick: () => cacheOn.set(cached() ? "off" : "") }, el("i"), () => `${say("cache")}: ${say(cached() ? "on" : "off")}`)),
      kept.note, bare.note,
      () => (!now() ? (kept.failed() || bare.failed() ? null : waits()) : [
        el("div", { class: "decode-grid" },
          el("div", {}, triangle(now()!, map, at), el("p", { class: "hint" }, say("hint"))),
          el("div", {}, el("div", { class: "story-foot" },
            el("button", { type: "button", class: "step-button main", onclick: play }, () => (playing() ? say("pause") : at() >= last() ? say("again") : say("play"))),
            el("button", { type: "button", class: "step-button", disabled: () => at() < 0, onclick: () => { playing.set(false); at.set(at.peek() - 1); } }, `← ${say("back")}`),
            el("button", { type: "button", class: "step-button", disabled: () => at() >= last(), onclick: () => { playing.set(false); at.set(at.peek() + 1); } }, `${say("next")} →`)),
          el("p", { class: "fine" }, () => say("slow")(num(factor(), factor() < 10 ? 1 : 0))), facts(now()!, at), writtenSoFar(now()!, at), chart(kept.value, bare.value, at), summary(kept.value, bare.value)))])),
    explain: () => {
      const a = kept.value(), b = bare.value(), steps = list(a?.steps);
      if (!a || !steps.length) return [];
      const rest = steps.slice(1), end = steps[steps.length - 1];
      return say("explain")({ prompt: a.prompt, prefill: num(steps[0].ms), token: num(steps[0].ms / a.prompt, 3), each: num(rest.reduce((sum, one) => sum + one.ms, 0) / (rest.length || 1)), cache: bytes(end.cache_bytes), per: bytes(end.cache_bytes / end.length), last: end.length, bare: !cached() && b ? num(b.steps.at(-1)?.ms) : "" });
    },
    numbers: () => ({ columns: [say("pass"), say("written"), say("rows"), `${say("ms")} (${say("withCache")})`, `${say("ms")} (${say("without")})`, `${say("cacheSize")} (B)`, `${say("reads")} (B)`],
      rows: list(kept.value()?.steps).map((one, i) => [say("step")(i), visible(one.text), one.rows, one.ms, bare.value()?.steps[i]?.ms, one.cache_bytes, one.cache_bytes + kept.value()!.weight_bytes]) }),
  });
}

function triangle(decoded: Decoded, map: () => Frame | null, at: () => number): HTMLElement {
  let image: HTMLCanvasElement | null = null, of: Frame | null = null;
  const n = decoded.ids.length;
  const picture = canvas(say("title"), (width) => Math.min(width, 560), (context, width, height) => {
    const frame = map(), size = Math.min(width, height), cell = size / n, step = decoded.steps[at()], rows = step?.length ?? 0;
    if (frame !== of) { of = frame; image = frame && framePixels(frame, true, true); }
    context.fillStyle = ink.sunk;
    context.beginPath();
    context.moveTo(0, 0);
    context.lineTo(size, size);
    context.lineTo(0, size);
    context.fill();
    context.imageSmoothingEnabled = false;
    if (image && frame && rows > 0) {
      const cut = Math.min(Math.ceil(rows / frame.pooled), image.height);
      context.drawImage(image, 0, 0, image.width, cut, 0, 0, size, (cut * frame.pooled / n) * size);
    }
    if (step) {  // what this pass computed
      const first = step.length - step.rows;
      context.strokeStyle = ink.accent;
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(0, first * cell);
      context.lineTo(first * cell, first * cell);
      context.lineTo(rows * cell, rows * cell);
      context.lineTo(0, rows * cell);
      context.closePath();
      context.stroke();
      if (step.length > step.rows) {  // what it took from the cache
        context.setLineDash([4, 4]);
        context.strokeStyle = ink.soft;
        context.beginPath();
        context.moveTo(0, first * cell);
        context.lineTo(0, 0);
        context.lineTo(first * cell, first * cell);
        context.stroke();
        context.setLineDash([]);
      }
    }
    context.font = `12px ${ink.font}`;
    context.fillStyle = ink.soft;
    context.textAlign = "left";
    if (cell >= 11) for (let i = 0; i < rows; ++i) {
      const name = fitText(context, visible(decoded.tokens[i]?.text), 90);
      context.fillText(name, Math.min((i + 1) * cell + 5, width - textWidth(context, name) - 2), (i + 0.5) * cell);
    }
  });
  picture.holder.classList.add("triangle");
  effect(() => { at(); map(); picture.paint(); });
  return picture.holder;
}

function facts(decoded: Decoded, at: () => number): Child {
  return el("dl", { class: "decode-facts", "aria-live": "polite" }, () => {
    const i = at(), step = decoded.steps[i];
    if (!step) return [el("dt", {}, say("pass")), el("dd", {}, say("start"))];
    const line = (name: string, value: string) => [el("dt", {}, name), el("dd", {}, value)];
    return [line(say("pass"), say("step")(i)), line(say("rows"), String(step.rows)), line(say("ms"), num(step.ms, 3)), line(say("cacheSize"), decoded.cache ? bytes(step.cache_bytes) : "0 B"),
      line(say("reads"), `${bytes(decoded.weight_bytes)} ${say("weights")}${step.cache_bytes ? ` + ${bytes(step.cache_bytes)} ${say("cache")}` : ""}`), line(say("written"), visible(step.text))];
  });
}

function writtenSoFar(decoded: Decoded, at: () => number): Child {
  return el("p", { class: "written-line decode-text" }, el("span", { class: "prompt" }, joinedText(decoded.tokens.slice(0, decoded.prompt))),
    el("span", { class: "answer" }, () => joinedText(decoded.tokens.slice(decoded.prompt, decoded.prompt + Math.max(at(), 0)))), () => (at() >= decoded.steps.length - 1 && say("end")[decoded.finish] ? el("small", {}, ` ${say("end")[decoded.finish]}`) : ""));
}

// Bars of milliseconds, both ways beside each other once both were measured.
function chart(kept: () => Decoded | null, bare: () => Decoded | null, at: { (): number; set(next: number): void }): Child {
  const picture = canvas(say("chart"), () => 170, (context, width, height) => {
    const all = [kept(), bare()], count = Math.max(...all.map((one) => one?.steps.length ?? 0)), most = Math.max(...all.flatMap((one) => list(one?.steps).map((step) => step.ms)), 0.01);
    const g = frameOf(width, height, count, 0, most * 1.05, 8), wide = (g.right - g.left) / count;
    axes(context, g, 0, most * 1.05, 0);
    all.forEach((one, n) => list(one?.steps).forEach((step, i) => {
      context.fillStyle = n === 0 ? series.training : series.heldOut;
      context.globalAlpha = i <= at() ? 1 : 0.3;
      const share = bare() ? wide / 2 : wide;
      context.fillRect(g.x(i) + 1 + n * share, g.y(step.ms), Math.max(share - 2, 1), g.bottom - g.y(step.ms));
    }));
    context.globalAlpha = 1;
    context.fillStyle = ink.soft;
    context.textAlign = "center";
    context.font = `11px ${ink.font}`;
    for (let i = 0; i < count; i += Math.max(1, Math.ceil(count / 8))) context.fillText(String(i), g.x(i + 0.5), g.bottom + 13);
  });
  effect(() => { kept(); bare(); at(); picture.paint(); });
  picture.holder.addEventListener("click", (event) => {
    const count = Math.max(list(kept()?.steps).length, list(bare()?.steps).length), { x } = pointIn(picture.node, event);
    at.set(clamp(Math.floor(((x - 40) / (picture.holder.clientWidth - 50)) * count), 0, count - 1));
  });
  return [el("h3", {}, say("chart")), picture.holder, el("p", { class: "legend dots" }, el("span", {}, el("i", { style: { background: series.training } }), say("withCache")), () => (bare() ? el("span", {}, el("i", { style: { background: series.heldOut } }), say("without")) : null))];
}

function summary(kept: () => Decoded | null, bare: () => Decoded | null): Child {
  return el("p", { class: "decode-sum" }, () => {
    const a = kept(), b = bare();
    if (!a || !b || JSON.stringify(a.ids) !== JSON.stringify(b.ids)) return "";
    const sum = (one: Decoded) => one.steps.reduce((all, step) => all + step.ms, 0);
    return say("faster")(num(sum(b) / sum(a), 1));
  });
}
