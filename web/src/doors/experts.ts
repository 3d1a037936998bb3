// Experts: which token goes where, how evenly they are used, and what happens without one.
import { live } from "../core/api";
import { seriesColours, withAlpha } from "../core/colour";
import { el, type Child } from "../core/dom";
import { clamp, list, num, percent, signed, tokenName, visible } from "../core/format";
import { examplesOf, type CutAnswer } from "../core/looking";
import type { Token } from "../core/report";
import { section } from "../core/section";
import { computed, signal } from "../core/signal";
import * as store from "../core/store";
import { words } from "../core/words";
import { chips, chipsOf } from "../parts/chips";
import { intervalText, struckTexts, whisker } from "../parts/written";
import type { Door } from "./door";
import { asking, doorModel, fitting, modelPicker, needs, textBox, waits } from "./kit";

const say = words({
  en: {
    name: "Experts", title: "Which token goes where", lead: "In these layers a router sends every token to a few of many feed-forward networks. Each dot is one token at one expert; the larger, the more weight it gets.",
    text: "Text for the model to read", layer: "Layer", expert: (e: number) => `expert ${e}`, perToken: (k: number, e: number) => `${k} of ${e} experts for each token`, useTitle: "How they are used", useLead: "Measured over many texts of the built-in world: the share of tokens that go to each expert. The line is what each would get if all were used alike.",
    load: "share of tokens", even: "even", mostly: (kind: string, times: string) => `${kind} × ${times}`, balance: (b: string, k: number) => `balance ${b} (even: ${k})`, specialised: (bits: string, chance: string) => `specialisation ${bits} bits (by chance ${chance})`, cut: (e: string) => `Cut ${e}`, isCut: (e: string) => `${e} is cut`, measuring: (n: number) => `measuring … ${n} texts`,
    cutTitle: "Without it", cutLead: "Its tokens go to the next best expert instead. The answer, and the change of the loss over many texts:", delta: "nats per token", putBack: "Put all experts back", waits: "measuring what the cut costs …", noCut: "Cut an expert above to see what it is needed for.",
    token: "token", weight: "weight", row: (t: string) => `Where “${t}” goes`, goes: (t: string, where: string) => `“${t}” goes to ${where}`,
    kinds: { word: "words", "word part": "word parts", number: "numbers", sign: "signs", Chinese: "Chinese", space: "spaces", special: "special tokens" } as Record<string, string>,
    explain: (d: { token: string; parts: string; layer: number }) => [`In layer ${d.layer} the router computes one logit for each expert from “${d.token}”, takes the best, and softmaxes them: ${d.parts}. The layer’s output is the sum of these experts’ outputs, times their weights.`, "balance = E Σ load · p. It equals the number of experts per token if all are used alike. Specialisation is the mutual information of expert and kind of token."],
  },
  zh: {
    name: "专家", title: "哪个词元去哪里", lead: "这些层里有很多个前馈网络，路由器把每个词元送给其中几个。每个圆点是一个词元去了一个专家；越大，分到的权重越多。",
    text: "给模型读的文字", layer: "层", expert: (e: number) => `专家 ${e}`, perToken: (k: number, e: number) => `每个词元用 ${e} 个专家中的 ${k} 个`, useTitle: "使用情况", useLead: "在内置世界的许多文本上测量：每个专家分到多少词元。横线是平均分配时的份额。",
    load: "词元的份额", even: "平均", mostly: (kind: string, times: string) => `${kind} × ${times}`, balance: (b: string, k: number) => `均衡度 ${b}（平均时为 ${k}）`, specialised: (bits: string, chance: string) => `专门化 ${bits} 比特（随机 ${chance}）`, cut: (e: string) => `去掉 ${e}`, isCut: (e: string) => `${e} 已去掉`, measuring: (n: number) => `正在测量……${n} 篇`,
    cutTitle: "去掉它会怎样", cutLead: "它的词元改去次优的专家。答案，以及在许多文本上损失的变化：", delta: "纳特／词元", putBack: "恢复所有专家", waits: "正在测量去掉它的代价……", noCut: "在上面去掉一个专家，看看哪里需要它。",
    token: "词元", weight: "权重", row: (t: string) => `“${t}”去哪里`, goes: (t: string, where: string) => `“${t}”去了 ${where}`,
    kinds: { word: "单词", "word part": "词的一部分", number: "数字", sign: "符号", Chinese: "汉字", space: "空白", special: "特殊词元" } as Record<string, string>,
    explain: (d: { token: string; parts: string; layer: number }) => [`在第 ${d.layer} 层，路由器由“${d.token}”给每个专家算一个 logit，取最好的几个做 softmax：${d.parts}。这一层的输出，是这些专家的输出乘以权重之和。`, "均衡度 = E Σ 份额 · p，平均使用时等于每个词元用的专家数。专门化是专家与词元种类之间的互信息。"],
  },
});

interface LayerRoutes { layer: number; ids: (number[] | null)[]; weights: (number[] | null)[] }
interface ExpertUse { load: number; low: number; high: number; probability: number; kinds: number[] }
interface LayerUse { layer: number; visited: number; tokens: number; balance: number; entropy: number; information: number; by_chance: number; experts: ExpertUse[] }
interface Answer { tokens: Token[]; routes: LayerRoutes[]; use: { state: string; done?: number; error?: string; kinds?: string[]; layers?: LayerUse[] } }

const own = store.keep("expert-text", signal("")), cutNames = store.keep("experts", signal("")), layerAt = store.keep("elayer", signal("0"));
const cutList = (): string[] => cutNames().split(",").filter(Boolean);
const toggle = (name: string): void => { const now = cutNames.peek().split(",").filter(Boolean); cutNames.set((now.includes(name) ? now.filter((one) => one !== name) : [...now, name]).join(",")); };
export const expertColour = (e: number): string => seriesColours[e % seriesColours.length];

export const expertsDoor: Door = { id: "experts", name: () => say("name"), here: live, show: () => needs("experts", say("title"), say("lead"), open) };

function open(): Child {
  const model = computed(() => doorModel("experts")), text = () => own() || (examplesOf(model(), store.lang() === "zh")[0] ?? "");
  const ask = () => (model() && text().trim() ? { model: model()!.name, text: text() } : null);
  const seen = asking<Answer>("/page/experts", () => (ask() ? { ...ask()!, ...(cutList().length ? { cut: cutList() } : {}) } : null), { delay: 200, until: (next) => next.use.state !== "measuring" });
  const cut = asking<CutAnswer>("/page/cut", () => (ask() && cutList().length ? { ...ask()!, cut: cutList(), max_tokens: 24 } : null), { delay: 100 });
  const layers = computed(() => list(seen.value()?.routes) as LayerRoutes[]);
  const layer = () => layers()[clamp(Number(layerAt()) || 0, 0, Math.max(layers().length - 1, 0))];
  const use = () => list(seen.value()?.use.layers).find((one) => one.layer === layer()?.layer);
  const count = () => model()?.facts.experts ?? use()?.experts.length ?? 0;
  const token = () => clamp(store.token() ?? list(seen.value()?.tokens).length - 1, 0, Math.max(list(seen.value()?.tokens).length - 1, 0));
  return [
    section({
      id: "experts", title: say("title"), lead: say("lead"),
      figure: el("div", { class: "card" }, textBox(text, own.set, say("text")),
        el("div", { class: "picks" }, () => (fitting("experts").length > 1 ? modelPicker(() => fitting("experts"), model) : ""),
          () => el("div", { class: "switch", role: "group", "aria-label": say("layer") }, layers().map((one, i) => el("button", { type: "button", "aria-pressed": () => String(one.layer === layer()?.layer), onclick: () => layerAt.set(String(i)) }, `${say("layer")} ${one.layer}`))),
          () => (layer() ? el("span", { class: "fine" }, say("perToken")(layer()!.ids.find((ids) => ids)?.length ?? 0, count())) : "")),
        seen.note, () => (layer() ? grid(seen.value()!.tokens, layer()!, count(), token) : seen.failed() ? null : waits())),
      explain: () => { const at = layer(), t = token(); return at ? say("explain")({ layer: at.layer, token: tokenName(seen.value()!.tokens, t), parts: list(at.ids[t]).map((e, i) => `${say("expert")(e)} ${percent(at.weights[t]?.[i])}`).join(" + ") }) : []; },
      numbers: () => ({ columns: [say("layer"), say("token"), ...["1", "2"].flatMap((n) => [say("name"), `${say("weight")} ${n}`])], rows: layers().flatMap((one) => one.ids.map((ids, t) => [one.layer, visible(seen.value()!.tokens[t]?.text), ...list(ids).slice(0, 2).flatMap((e, i) => [e, one.weights[t]?.[i]])])) }),
    }),
    section({
      id: "expert-use", title: say("useTitle"), lead: say("useLead"),
      figure: el("div", { class: "card" }, () => {
        const now = use(), measured = seen.value()?.use;
        if (measured?.state === "failed") return el("p", { class: "fine" }, measured.error);
        return now ? usage(now, measured!.kinds ?? []) : el("p", { class: "fine" }, say("measuring")(measured?.done ?? 0));
      }),
      numbers: () => ({ columns: [say("layer"), say("name"), say("load"), "2.5 %", "97.5 %", "p", ...list(seen.value()?.use.kinds).map((kind) => say("kinds")[kind] ?? kind)], rows: list(seen.value()?.use.layers).flatMap((one) => one.experts.map((expert, e) => [one.layer, e, expert.load, expert.low, expert.high, expert.probability, ...expert.kinds])) }),
    }),
    section({
      id: "expert-cut", title: say("cutTitle"), lead: say("cutLead"),
      figure: el("div", { class: "card" }, cut.note, () => {
        if (!cutList().length) return el("p", { class: "fine" }, say("noCut"));
        const now = cut.value(), fresh = now && now.cut.length === cutList().length && now.cut.every((one) => cutList().includes(one));
        return [el("p", { class: "kicker" }, cutList().join(", "), " ", el("button", { type: "button", class: "small-button", onclick: () => cutNames.set("") }, say("putBack"))),
          fresh ? [el("p", { class: "prompt" }, text()), struckTexts(now.before ?? "", now.after ?? ""), el("div", { class: "cut-cost" }, el("b", {}, signed(now.delta)), el("span", {}, say("delta")), whisker({ head: "", ...now }, [now.low ?? 0, now.high ?? 0, now.delta ?? 0]), el("span", { class: "fine" }, intervalText({ head: "", ...now })))]
            : cut.failed() ? null : el("p", { class: "fine" }, say("waits"))];
      }),
    }),
  ];
}

// Tokens across, experts down; a dot where a token goes.
function grid(tokens: readonly Token[], routes: LayerRoutes, count: number, token: () => number): Child {
  const head = chips(tokens, { onPick: (t) => store.token.set(t) });
  chipsOf(head).forEach((node, t) => {
    const ids = list(routes.ids[t]);
    node.style.setProperty("background", ids.length ? `linear-gradient(90deg, ${ids.map((e, i) => { const share = routes.weights[t]![i]; return `${withAlpha(expertColour(e), 0.2 + 0.6 * share)} ${i === 0 ? `0 ${share * 100}%` : `${list(routes.weights[t]).slice(0, i).reduce((a, b) => a + b, 0) * 100}% 100%`}`; }).join(", ")})` : "");
  });
  const rows = Array.from({ length: count }, (_, e) => el("tr", {}, el("th", { scope: "row", style: { "--role": expertColour(e) } }, el("i", { class: "dot" }), say("expert")(e)),
    tokens.map((_, t) => { const at = list(routes.ids[t]).indexOf(e), weight = at < 0 ? 0 : routes.weights[t]?.[at] ?? 0; return el("td", { class: () => (t === token() ? "chosen" : null) }, at < 0 ? "" : el("i", { style: { background: expertColour(e), transform: `scale(${(0.35 + 0.65 * Math.sqrt(weight)).toFixed(2)})` }, title: `${tokenName(tokens, t)} ${percent(weight)}` })); })));
  return [head, el("p", { class: "reading", "aria-live": "polite" }, () => say("goes")(tokenName(tokens, token()), list(routes.ids[token()]).map((e, i) => `${say("expert")(e)} (${percent(routes.weights[token()]?.[i])})`).join(", "))),
    el("div", { class: "dots-table", tabindex: "0", role: "region", "aria-label": say("title") }, el("table", {}, el("thead", {}, el("tr", {}, el("td"), tokens.map((token, t) => el("th", { scope: "col", title: tokenName(tokens, t) }, el("span", {}, visible(token.text)))))), el("tbody", {}, rows)))];
}

function usage(layer: LayerUse, kinds: readonly string[]): Child {
  const even = layer.visited / layer.experts.length, most = Math.max(...layer.experts.map((expert) => expert.high), even) * 1.05;
  const totals = kinds.map((_, k) => layer.experts.reduce((sum, expert) => sum + expert.kinds[k], 0)), all = totals.reduce((a, b) => a + b, 0);
  const liking = (expert: ExpertUse): string => {
    const sum = expert.kinds.reduce((a, b) => a + b, 0);
    const best = kinds.map((kind, k) => ({ kind, times: expert.kinds[k] < 5 ? 0 : (expert.kinds[k] / sum) * (all / totals[k]) })).sort((a, b) => b.times - a.times)[0];
    return best && best.times > 1.05 ? say("mostly")(say("kinds")[best.kind] ?? best.kind, num(best.times, 1)) : "";
  };
  return [el("div", { class: "usage" }, layer.experts.map((expert, e) => {
    const name = `L${layer.layer}E${e}`, isCut = () => cutList().includes(name);
    return el("div", { class: () => (isCut() ? "use is-cut" : "use") }, el("b", {}, say("expert")(e)),
      el("span", { class: "use-track" }, el("i", { style: { width: `${(100 * expert.load) / most}%`, background: expertColour(e) } }), el("em", { style: { left: `${(100 * expert.low) / most}%`, width: `${(100 * (expert.high - expert.low)) / most}%` } }), el("u", { style: { left: `${(100 * even) / most}%` } })),
      el("span", { class: "bar-value" }, percent(expert.load)), el("span", { class: "fine" }, liking(expert)),
      el("button", { type: "button", class: "cut-switch", role: "switch", "aria-checked": () => String(isCut()), onclick: () => toggle(name) }, el("i"), () => say(isCut() ? "isCut" : "cut")(name)));
  })), el("p", { class: "fine" }, `${say("balance")(num(layer.balance), layer.visited)} · ${say("specialised")(num(layer.information, 3), num(layer.by_chance, 3))}`)];
}
