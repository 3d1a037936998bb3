// Compare: two models, two forms of one, or one before and after a cut, token by token.
import { live } from "../core/api";
import { canvas } from "../core/canvas";
import { heatColour, ink, withAlpha } from "../core/colour";
import { el, type Child } from "../core/dom";
import { bytes, clamp, list, num, percent, tokenName, visible } from "../core/format";
import { examplesOf, type Model } from "../core/looking";
import type { Token } from "../core/report";
import { section } from "../core/section";
import { computed, effect, signal, type Signal } from "../core/signal";
import * as store from "../core/store";
import { barLine, guessName, tip } from "../core/tip";
import { words } from "../core/words";
import { chips, chipsOf } from "../parts/chips";
import type { Door } from "./door";
import { asking, doorModel, fitting, needs, textBox, waits } from "./kit";

const say = words({
  en: {
    name: "Compare", title: "Two models on one text", lead: "Two models of this server, two forms of one (32, 16, 8 or 4 bits), or one before and after a cut. The deeper a token, the more the two disagree about what follows it.",
    text: "Text for both to read", left: "Left", right: "Right", form: "Form", cut: "Cut", cutHint: "L3H7, L1E3", forms: { exact: "as the page has it", bf16: "bf16", q8: "8 bits", q4: "4 bits" } as Record<string, string>, after: (t: string) => `After “${t}”`, really: "actual next", swap: "Swap",
    kl: "KL(left, right), nats", mean: (kl: string, same: string) => `Mean KL ${kl} nats per token; the top guess is the same at ${same} of the places.`, loss: (a: string, b: string) => `Loss ${a} against ${b} nats per token.`, size: (a: string, b: string) => `Weights ${a} against ${b}.`, other: "They cut the text into different tokens, so there is no KL: each is shown for itself.",
    same: "These are the same: choose another model or form, or name a head to cut.", headsTitle: "Where the heads differ", headsLead: "Every square is a head: the share of its attention that lies elsewhere on this text, 0 to 100 %. Click one to see both maps.", difference: "difference", noHeads: "Their heads are not the same ones, so maps cannot be compared head by head.", noMap: "Maps are shown for up to 128 tokens.", more: "more on the right", less: "more on the left", token: "token", head: "head", moved: "moved",
    explain: (d: { token: string; a: string; pa: string; b: string; pb: string; kl: string }) => [`KL = Σ p · ln(p / q): what it would cost, in nats, to code what follows with the right one’s probabilities if the left one is right. After “${d.token}” it is ${d.kl}: left says “${d.a}” (${d.pa}), right says “${d.b}” (${d.pb}).`, "Rounding to bf16 usually costs less than 0.002 nats, 4 bits up to 0.035; small models lose more."],
  },
  zh: {
    name: "对比", title: "同一段文字，两个模型", lead: "服务器上的两个模型，同一个模型的两种形式（32、16、8 或 4 位），或者去掉某个头的前后。颜色越深，两者对后面的猜测越不一致。",
    text: "两边都读的文字", left: "左", right: "右", form: "形式", cut: "去掉", cutHint: "L3H7, L1E3", forms: { exact: "本页原样", bf16: "bf16", q8: "8 位", q4: "4 位" } as Record<string, string>, after: (t: string) => `读完“${t}”之后`, really: "实际下一个", swap: "左右互换",
    kl: "KL(左, 右)，纳特", mean: (kl: string, same: string) => `平均 KL 为 ${kl} 纳特／词元；${same} 的位置上首选相同。`, loss: (a: string, b: string) => `损失 ${a} 对 ${b} 纳特／词元。`, size: (a: string, b: string) => `权重 ${a} 对 ${b}。`, other: "两者切分词元的方式不同，没有 KL 可算，只能各看各的。",
    same: "两边一样：换一个模型或形式，或者写出要去掉的头。", headsTitle: "哪些头不一样", headsLead: "每个方块是一个头：在这段文字上，它的注意力有多少挪了地方，0 到 100 %。点一个看两边的图。", difference: "差", noHeads: "两边的头不是同一套，不能逐个对比。", noMap: "128 个词元以内才显示图。", more: "右边更多", less: "左边更多", token: "词元", head: "头", moved: "挪动",
    explain: (d: { token: string; a: string; pa: string; b: string; pb: string; kl: string }) => [`KL = Σ p · ln(p / q)：如果左边说得对，却用右边的概率来编码，平均多花多少纳特。读完“${d.token}”之后是 ${d.kl}：左边说“${d.a}”（${d.pa}），右边说“${d.b}”（${d.pb}）。`, "四舍五入到 bf16 通常不到 0.002 纳特，4 位可到 0.035；小模型损失更多。"],
  },
});

interface Guess { id: number; text: string; p: number }
interface Said { top: Guess[]; loss?: number }
interface Side { model: string; form: string; weight_bytes: number; parameters: number; tokens: Token[] }
interface Answer { same_tokens: boolean; a: Side; b: Side; rows: { kl?: number; a?: Said; b?: Said }[]; heads?: { name: string; layer: number; head: number; distance: number }[]; maps?: { head: string; rows: number; columns: number; a: string; b: string } }
interface Chosen { model: Signal<string>; form: Signal<string>; cut: Signal<string> }

const own = store.keep("both", signal(""));
const side = (name: string, form: string): Chosen => ({ model: store.keep(`${name}-model`, signal("")), form: store.keep(`${name}-form`, signal(form)), cut: store.keep(`${name}-cut`, signal("")) });
const a = side("a", ""), b = side("b", "");
const forms = ["exact", "bf16", "q8", "q4"];

export const compareDoor: Door = { id: "compare", name: () => say("name"), here: live, show: () => needs("next", say("title"), say("lead"), open) };

function open(): Child {
  const all = () => fitting("next"), first = computed(() => doorModel("next"));
  const modelOf = (one: Chosen): Model | undefined => all().find((model) => model.name === one.model()) ?? first();
  // Without a choice: the model as it is, against four bits.
  const formOf = (one: Chosen) => one.form() || (one === b && !b.model() && !b.cut() && !a.form() ? "q4" : "exact");
  const asked = (one: Chosen) => ({ model: modelOf(one)?.name, form: formOf(one), cut: one.cut().split(/[,，\s]+/).filter(Boolean) });
  const text = () => own() || (examplesOf(modelOf(a), store.lang() === "zh")[0] ?? "");
  const target = () => (modelOf(a)?.can.includes("translate") ? { target: text() } : {});
  const body = () => (modelOf(a) && text().trim() ? { text: text(), ...target(), a: asked(a), b: asked(b), head: store.head() } : null);
  const found = asking<Answer>("/page/compare", body, { delay: 300 });
  const row = signal<number | null>(null);
  const rows = () => list(found.value()?.rows), shown = () => clamp(row() ?? worst(rows()), 0, Math.max(rows().length - 1, 0));
  const swap = () => { for (const part of ["model", "form", "cut"] as const) { const left = part === "form" ? formOf(a) : a[part].peek(), right = part === "form" ? formOf(b) : b[part].peek(); a[part].set(right); b[part].set(left); } };
  return [
    section({
      id: "compare", title: say("title"), lead: say("lead"),
      figure: el("div", { class: "card" }, textBox(text, (next) => { own.set(next); row.set(null); }, say("text")),
        el("div", { class: "sides" }, picker(a, say("left"), all, () => modelOf(a), () => formOf(a)), el("button", { type: "button", class: "small-button swap", "aria-label": say("swap"), title: say("swap"), onclick: swap }, "⇄"), picker(b, say("right"), all, () => modelOf(b), () => formOf(b))),
        () => (JSON.stringify(asked(a)) === JSON.stringify(asked(b)) ? el("p", { class: "fine" }, say("same")) : ""), found.note,
        () => (found.value() ? [tokensRow(found.value()!, row, shown), el("p", { class: "summary" }, summary(found.value()!)), () => bothSides(found.value()!, shown())] : found.failed() ? null : waits())),
      explain: () => { const now = found.value(), at = rows()[shown()]; return now && at?.a && at.b && at.kl !== undefined ? say("explain")({ token: tokenName(now.a.tokens, shown()), a: visible(at.a.top[0]?.text), pa: percent(at.a.top[0]?.p), b: visible(at.b.top[0]?.text), pb: percent(at.b.top[0]?.p), kl: num(at.kl, 4) }) : []; },
      numbers: () => ({ columns: [say("token"), say("kl"), ...[say("left"), say("right")].flatMap((name) => [name, "p", "−ln p"])], rows: rows().map((one, i) => [visible(found.value()!.a.tokens[i]?.text), one.kl, ...[one.a, one.b].flatMap((said) => [visible(said?.top[0]?.text), said?.top[0]?.p, said?.loss])]) }),
    }),
    section({
      id: "compare-heads", title: say("headsTitle"), lead: say("headsLead"),
      figure: el("div", { class: "card" }, () => (!found.value() ? waits() : found.value()!.heads ? heads(found.value()!) : el("p", { class: "fine" }, say("noHeads")))),
      numbers: () => ({ columns: [say("head"), say("moved")], rows: list(found.value()?.heads).map((one) => [one.name, one.distance]) }),
    }),
  ];
}

const worst = (rows: readonly { kl?: number }[]): number => rows.reduce((best, one, i) => ((one.kl ?? 0) > (rows[best]?.kl ?? 0) ? i : best), Math.max(rows.length - 1, 0));

function picker(one: Chosen, title: string, all: () => Model[], model: () => Model | undefined, form: () => string): HTMLElement {
  const cut = el("input", { type: "text", class: "cut-names", placeholder: say("cutHint"), "aria-label": `${title}: ${say("cut")}`, value: one.cut.peek(), oninput: () => one.cut.set(cut.value.trim()) });
  effect(() => { if (document.activeElement !== cut && cut.value !== one.cut()) cut.value = one.cut(); });
  return el("fieldset", { class: "side" }, el("legend", {}, title),
    () => el("select", { "aria-label": `${title}: ${say("text")}`, onchange: (event: Event) => one.model.set((event.target as HTMLSelectElement).value) }, all().map((each) => el("option", { value: each.name, selected: each.name === model()?.name }, each.name))),
    () => el("select", { "aria-label": `${title}: ${say("form")}`, class: "form-of", onchange: (event: Event) => one.form.set((event.target as HTMLSelectElement).value) }, forms.map((each) => el("option", { value: each, selected: each === form() }, each === "exact" && model()?.facts.dtype ? `${say("forms")[each]} (${model()!.facts.dtype})` : say("forms")[each]))),
    el("label", { class: "picker" }, el("span", {}, say("cut")), cut));
}

function tokensRow(answer: Answer, row: Signal<number | null>, shown: () => number): Child {
  const tokens = answer.a.tokens, most = 0.5;
  const line = chips(tokens, { onPick: (t) => row.set(t) });
  line.classList.add("compared");
  chipsOf(line).forEach((node, t) => node.style.setProperty("--p", Math.sqrt(clamp((answer.rows[t]?.kl ?? 0) / most, 0, 1)).toFixed(3)));
  effect(() => chipsOf(line).forEach((node, t) => node.classList.toggle("chosen", t === shown())));
  line.addEventListener("pointermove", (event) => {
    const node = (event.target as Element).closest<HTMLElement>(".chip"), at = node ? answer.rows[Number(node.dataset.token)] : null;
    if (!node || !at || event.pointerType === "touch") return tip.hide();
    tip.show(event.clientX, event.clientY, el("b", {}, say("after")(tokenName(tokens, Number(node.dataset.token)))), at.kl !== undefined ? el("span", {}, `${say("kl")}: ${num(at.kl, 4)}`) : null);
  });
  line.addEventListener("pointerleave", () => tip.hide());
  return line;
}

function summary(answer: Answer): string {
  const rows = answer.rows, mean = (pick: (one: Answer["rows"][number]) => number | undefined) => { const values = rows.map(pick).filter((x): x is number => x !== undefined); return values.reduce((sum, x) => sum + x, 0) / (values.length || 1); };
  const agree = rows.filter((one) => one.a && one.b && one.a.top[0]?.id === one.b.top[0]?.id).length / (rows.length || 1);
  return [answer.same_tokens ? say("mean")(num(mean((one) => one.kl), 4), percent(agree)) : say("other"), say("loss")(num(mean((one) => one.a?.loss), 3), num(mean((one) => one.b?.loss), 3)), say("size")(bytes(answer.a.weight_bytes), bytes(answer.b.weight_bytes))].join(" ");
}

function bothSides(answer: Answer, row: number): Child {
  const at = answer.rows[row], next = answer.a.tokens[row + 1];
  if (!at) return null;
  const side = (said: Said | undefined, title: string, tokens: readonly Token[]) => el("div", {}, el("h3", {}, title, said?.loss !== undefined ? el("small", {}, ` · ${say("really")}: “${visible(tokens[row + 1]?.text)}” ${percent(Math.exp(-said.loss))}`) : ""),
    el("div", { class: "bars" }, list(said?.top).map((guess, i) => barLine(guessName(guess.text), guess.p, percent(guess.p), "", `bar ${i ? "" : "first"} ${answer.same_tokens && next && guess.id === next.id ? "real" : ""}`))));
  return [el("p", { class: "kicker" }, say("after")(tokenName(answer.a.tokens, row)), at.kl !== undefined ? ` · ${say("kl")}: ${num(at.kl, 4)}` : ""),
    el("div", { class: "both" }, side(at.a, say("left"), answer.a.tokens), side(at.b, say("right"), answer.b.tokens))];
}

// --- heads ---------------------------------------------------------------------------------------------------------------

function heads(answer: Answer): Child {
  const all = list(answer.heads), across = Math.max(...all.map((one) => one.head)) + 1, groups = [...new Set(all.map((one) => one.name.replace(/H\d+$/, "")))].reverse();  // layers upward, as on the wall
  const wall = el("div", { class: "moved-wall", style: { "--across": across } }, groups.map((group) => [el("span", { class: "fine" }, group), all.filter((one) => one.name.replace(/H\d+$/, "") === group).map((one) => el("button", {
    type: "button", class: "moved", "aria-pressed": () => String((answer.maps?.head ?? store.head()) === one.name), "aria-label": `${one.name} ${percent(one.distance)}`, title: `${one.name} ${percent(one.distance)}`, style: { "--p": Math.sqrt(clamp(one.distance, 0, 1)).toFixed(3) }, onclick: () => { store.head.set(one.name); store.locked.set(true); } }))]), el("span"), Array.from({ length: across }, (_, h) => el("span", { class: "fine seat" }, `H${h}`)));
  const maps = answer.maps;
  return el("div", { class: "moved-grid" }, wall, maps ? el("div", { class: "map-triple" }, mapOf(maps, say("left"), "a"), mapOf(maps, say("right"), "b"), mapOf(maps, say("difference"), "d")) : el("p", { class: "fine" }, say("noMap")));
}

function mapOf(maps: NonNullable<Answer["maps"]>, title: string, which: "a" | "b" | "d"): HTMLElement {
  const { rows, columns } = maps, left = atob(maps.a), right = atob(maps.b), weight = (text: string, i: number) => (text.charCodeAt(i) / 255) ** 2;
  const picture = canvas(`${maps.head} ${title}`, (width) => (width * rows) / columns, (context, width, height) => {
    const w = width / columns, h = height / rows;
    context.fillStyle = ink.sunk;
    context.fillRect(0, 0, width, height);
    for (let i = 0; i < rows; ++i) for (let j = 0; j < columns; ++j) {
      const at = i * columns + j, x = weight(left, at), y = weight(right, at), value = which === "a" ? x : which === "b" ? y : y - x;
      if ((rows === columns && j > i && !x && !y) || (which === "d" && Math.abs(value) < 0.002)) continue;
      context.fillStyle = which === "d" ? withAlpha(value > 0 ? "#e4572e" : "#2f8fe0", 0.15 + 0.85 * Math.sqrt(Math.abs(value))) : heatColour(value);
      context.fillRect(j * w, i * h, Math.max(w, 1), Math.max(h, 1));
    }
  });
  return el("figure", { class: "block" }, el("figcaption", {}, which === "d" ? title : `${maps.head} · ${title}`, which === "d" ? el("small", {}, el("i", { class: "swatch above" }), say("more"), el("i", { class: "swatch below" }), say("less")) : ""), picture.holder);
}
