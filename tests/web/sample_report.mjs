// Reports to try the page with, the same ones every time:  node sample_report.mjs demo|translate|large|long|patch|labs > report.json
// demo: every part, English, Chinese and an emoji in three pieces. translate: encoder and decoder. large: 512 tokens, 144 heads.
// long: 1500 tokens without maps, of which only the last rows were kept. patch: qkv patch. labs: qkv lab --html, with the record of scale.
import { readFileSync } from "node:fs";

let seed = 1;
const random = () => {  // a small generator of our own: Math.random has no seed
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};
const round = (x, digits = 3) => Number(x.toFixed(digits));
const token = (text, id, continues = false) => ({ id, text, continues });

const words = ["Tom", "has", "a", "red", "ball", ".", "Mia", "sees", "the", "red", "ball", ".", "小", "明", "也", "喜欢", "🦊", null, null, "。", "Tom", "gives", "Mia", "the", "red"];
const demoTokens = words.map((word, i) => (word === null ? token("", 200 + i, true) : token(word, 10 + i)));
const vocabulary = ["ball", "red", "the", "Tom", "Mia", "a", "狐狸", "红色", "喜欢", "。", "🦊", "gives", "</script>", "小明", "\\xE6\\xB3"];

function attention(kind, tokens, keys, causal) {
  return tokens.map((_, i) => {
    const end = causal ? i + 1 : keys.length;
    const raw = Array.from({ length: end }, (_, j) => {
      const same = keys[j].text !== "" && keys[j].text === tokens[i].text;
      const after = j > 0 && keys[j - 1].text !== "" && keys[j - 1].text === tokens[i].text && j <= i;
      const likes = { previous: j === i - 1, induction: after, duplicate: same && j < i, first: j === 0, none: false, diagonal: Math.abs(j - (i * keys.length) / tokens.length) < 0.8 }[kind];
      return Math.exp((likes ? 4.5 : 0) + (j === 0 ? 1.6 : 0) + random() * (kind === "none" ? 1.5 : 0.8));
    });
    const sum = raw.reduce((a, b) => a + b, 0);
    return raw.map((x) => x / sum);
  });
}

function head(name, stack, layer, seat, kind, tokens, keys) {
  const causal = stack === "decoder", rows = attention(kind, tokens, keys, causal);
  const bytes = new Uint8Array(tokens.length * keys.length);
  rows.forEach((row, i) => row.forEach((weight, j) => { bytes[i * keys.length + j] = Math.round(255 * Math.sqrt(weight)); }));
  const entropy = rows.reduce((sum, row) => sum - row.reduce((s, a) => s + a * Math.log(a), 0), 0) / rows.length;  // nats
  const found = { previous: "previous token", induction: "induction", duplicate: "duplicate token", first: "first token" }[kind];
  const score = 0.72 + 0.25 * random();
  const roles = found ? [{ name: found, score: round(score), low: round(score - 0.03), high: round(score + 0.03), n: 1800 + Math.floor(random() * 400) }] : [];
  return { name, stack, layer, head: seat, queries: stack === "encoder" ? "source" : "tokens", keys: stack === "decoder" ? "tokens" : "source", entropy: round(entropy),
    map: Buffer.from(bytes).toString("base64"), roles,
    top: rows.map((row) => row.map((weight, j) => [j, round(weight, 4)]).sort((a, b) => b[1] - a[1]).slice(0, 6)) };
}

const kinds = [["previous", "first", "none", "duplicate"], ["none", "previous", "none", "first"], ["induction", "none", "first", "none"], ["none", "induction", "none", "first"]];

function guesses(final, sure) {
  const others = vocabulary.filter((word) => word !== final);
  const list = [final, ...Array.from({ length: 4 }, () => others.splice(Math.floor(random() * others.length), 1)[0])];
  let left = 1 - sure;
  return list.map((text, i) => {
    const p = i === 0 ? sure : left * (0.3 + 0.2 * random());
    if (i > 0) left -= p;
    return { text, p: round(p, 4) };
  }).sort((a, b) => b.p - a.p);
}

function ladder(tokens, layerCount) {
  const layers = ["embed", ...Array.from({ length: layerCount }, (_, i) => String(i)).slice(0, layerCount - 1), "out"];
  const next = tokens.map((_, t) => (t + 1 < tokens.length ? tokens[t + 1].text || "🦊" : null));
  const finals = next.map((word) => (word && random() < 0.7 ? word : vocabulary[Math.floor(random() * vocabulary.length)]));
  const settled = tokens.map(() => 1 + Math.floor(random() * (layers.length - 1)));
  const rows = layers.map((_, l) => tokens.map((_, t) => {
    const isSettled = l >= settled[t];
    const list = guesses(isSettled ? finals[t] : vocabulary[Math.floor(random() * vocabulary.length)], isSettled ? 0.46 + (0.5 * l * random()) / layers.length : 0.04 + 0.1 * random());
    return isSettled || list[0].text !== finals[t] ? list : list.reverse();
  }));
  const fall = (top) => layers.map((_, l) => tokens.map(() => round(top * (1 - l / (layers.length - 1)) * (0.6 + 0.4 * random()))));
  return { layers, guesses: rows, settled, next, entropy: fall(5).map((row) => row.map((x) => round(x + 0.3))), kl: fall(6), rank: layers.map((_, l) => tokens.map((_, t) => (l >= settled[t] ? 1 : 2 + Math.floor(random() * 90)))) };
}

function story(tokens, at, layerCount, heads, seats) {
  return { token: at, shown: tokens[at].text, layers: Array.from({ length: layerCount }, (_, layer) => ({
    layer, norm_in: round(2 + layer * 1.9), attn_out_norm: round(1.2 + random()), resid_mid_norm: round(2.9 + layer * 1.9), mlp_out_norm: round(1.4 + random()), resid_norm: round(3.9 + layer * 1.9),
    heads: heads.slice(layer * seats, (layer + 1) * seats).map((one) => ({ name: one.name, q: [-0.025, -123.4, 56.78, ...Array.from({ length: 5 }, () => round(4 * random() - 2))], q_norm: round(3 + random()), z_norm: round(0.5 + random()), out_norm: round(0.3 + random()),
      matches: one.top[at].slice(0, 5).map(([key, share]) => ({ key, text: tokens[key].text, qk: round(12 * random() + 6 * share), score: round(3 * random() + 1.5 * share), share, v_norm: round(0.8 + random()) })) })),
    guess: guesses(layer > 1 ? "ball" : vocabulary[layer], 0.2 + layer * 0.18),
  })) };
}

function movie(heads) {
  const count = 30, steps = Array.from({ length: count }, (_, i) => Math.round(600 * (i / (count - 1)) ** 1.7));
  const rise = (step, from, to, size) => round(size / (1 + Math.exp(-(step - (from + to) / 2) / ((to - from) / 8))));
  const labels = ["ball", "fox", "house", "sees", "gives", "has", "red", "small", "Tom", "Mia", "小明", "狐狸", "喜欢", "红色", ""];
  const kind = [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 0, 1, 2, 3];
  const centre = [[2, 1], [-2, 1.5], [1.6, -2], [-1.6, -1.8]];
  const start = labels.map(() => [random() - 0.5, random() - 0.5]), spread = labels.map(() => [1.4 * (random() - 0.5), 1.4 * (random() - 0.5)]);
  const path = (axis) => steps.map((step) => labels.map((_, t) => {
    const done = rise(step, 20, 400, 1);
    return round((1 - done) * start[t][axis] + done * (centre[kind[t]][axis] + spread[t][axis]));
  }));
  return {
    steps,
    loss: Array.from({ length: 121 }, (_, i) => ({ step: i * 5, loss: round(0.95 + 3.6 * Math.exp(-i / 14) - (i > 62 ? 0.35 * (1 - Math.exp(-(i - 62) / 6)) : 0) + 0.09 * random()), val: i % 15 ? null : round(1 + 3.6 * Math.exp(-i / 14) - (i > 62 ? 0.33 : 0)) })),
    thresholds: { previous: 0.4, duplicate: 0.4, induction: 0.4, first: 0.3 },
    heads: heads.map((one, i) => {  // L0H2 has the mean of a role, but its interval begins below
      const kind = kinds.flat()[i], end = (role) => (role === kind ? one.roles[0].score : one.name === "L0H2" && role === "previous" ? 0.43 : 0.16 * random());
      const curve = (role) => { const top = end(role); return steps.map((step) => round(0.02 * random() + (role === "induction" ? rise(step, 250, 380, top) : rise(step, 40, 260, top)))); };
      const curves = Object.fromEntries(["previous", "duplicate", "induction", "first"].map((role) => [role, curve(role)]));
      return { name: one.name, intervals: Object.fromEntries(Object.entries(curves).map(([role, means]) => [role, { low: means.map((x) => x - 0.06), high: means.map((x) => x + 0.06), n: 400 }])), importance: steps.map((step) => round(0.04 * random() + rise(step, 60, 420, kind === "none" ? 0.1 : 0.7))),
        roles: Object.fromEntries([...Object.entries(curves), ["entropy", steps.map((step) => round(0.95 - rise(step, 30, 400, 0.2 * one.entropy)))]]) };
    }),
    weights: ["L0 W_Q", "L0 W_K", "L0 W_V", "L2 W_Q", "L2 W_K", "L2 W_V"].map((name, i) => ({ name, moved: steps.map((step) => rise(step, 0, 500, 0.7 + 0.12 * i)), cosine: steps.map((step) => round(0.2 + rise(step, 0, 400, 0.8))) })),
    embedding: { tokens: labels, x: path(0), y: path(1) },
    phases: [{ name: "unigram", step: 25, reason: "lowest", numbers: { start: 4.182, first_step: 0, low: 0.214, end: 3.051 } },
      { name: "bigram", step: 90, reason: "lowest", numbers: { start: 4.602, first_step: 0, low: 0.731, end: 1.214 } },
      { name: "induction", step: 315, reason: "jump", numbers: { from: 0.021, to: 0.861, rise: 0.712, least: 0.15, first_step: 250, last_step: 380 } },
      { name: "plateau", step: null, reason: "still_falling", numbers: { slope: -1.016, limit: 0.1 } }],
    samples: [{ step: 0, text: "ball 。 Mia Mia a 红色 gives" }, { step: 60, text: "the the red a Tom ." }, { step: 200, text: "Tom gives the ball . Tom gives the ball ." }, { step: 500, text: "Tom gives Mia the red ball . 小明也喜欢🦊。" }],
  };
}

function demo() {
  const heads = kinds.flatMap((row, layer) => row.map((kind, seat) => head(`L${layer}H${seat}`, "decoder", layer, seat, kind, demoTokens, demoTokens)));
  return { report: "demo", model: "world", lang: "en", made_with: "qkv demo", tokens: demoTokens, ladder: ladder(demoTokens, 5), heads,
    story: story(demoTokens, demoTokens.length - 1, 4, heads, 4),
    built_in: { model: "world", written: { prompt: "Anna went to the sea .", text: " She saw <b>ships</b> ." },
      roles: [{ name: "previous token", head: "L2H0", score: 0.57, low: 0.51, high: 0.62, n: 4000, heads: 2 }] },
    written: { prompt: "Tom has a red ball . Mia sees the red ball . 小明也喜欢🦊。 Tom gives Mia the red", text: " ball . Mia is happy . </script> 小明笑了。" },
    cuts: [{ head: "L2H0", kind: "most", delta: 0.412, low: 0.361, high: 0.466, n: 4096, before: "Tom gives Mia the red ball . Mia is happy .", after: "Tom gives Mia the red house . The fox sees ." },
      { head: "L1H2", kind: "least", delta: 0.002, low: -0.004, high: 0.008, n: 4096, before: "Tom gives Mia the red ball . Mia is happy .", after: "Tom gives Mia the red ball . Mia is happy ." }],
    movie: movie(heads) };
}

function translate() {
  const source = ["The", "small", "fox", "sees", "the", "red", "ball", ".", "</s>"].map((word, i) => token(word, i));
  const tokens = ["<s>", "小", "狐", "狸", "看见", "红", "球", "。"].map((word, i) => token(word, 50 + i));
  const grid = (stack, letter, queries, keys, row) => [0, 1].flatMap((layer) => row.map((kind, seat) => head(`${letter}${layer}H${seat}`, stack, layer, seat, kind, queries, keys)));
  return { report: "look", model: "en-zh", lang: "zh", made_with: 'qkv look en-zh "The small fox sees the red ball."', tokens, source,
    heads: [...grid("encoder", "E", source, source, ["previous", "none", "first"]), ...grid("decoder", "L", tokens, tokens, ["previous", "first", "none"]), ...grid("cross", "X", tokens, source, ["diagonal", "none", "diagonal"])],
    ladder: ladder(tokens, 3), written: { prompt: "The small fox sees the red ball. → ", text: "小狐狸看见红球。" } };
}

function large() {
  const tokens = Array.from({ length: 512 }, (_, i) => token(["the", "fox", "看见", "小", "ball", "gives", ".", "red"][Math.floor(random() * 8)], i));
  const drawn = ["none", "previous", "first", "induction"].map((kind) => head("", "decoder", 0, 0, kind, tokens, tokens));  // drawing 144 takes minutes
  const heads = Array.from({ length: 144 }, (_, i) => ({ ...drawn[Math.floor(random() * 4)], name: `L${Math.floor(i / 12)}H${i % 12}`, layer: Math.floor(i / 12), head: i % 12 }));
  return { report: "look", model: "large", lang: "en", made_with: "qkv look large FILE", tokens, heads, ladder: ladder(tokens, 12) };
}

function long() {
  const tokens = Array.from({ length: 1500 }, (_, i) => token(["the", "fox", "看见", "ball"][i % 4], i)), kept = 1490;
  const ladderOf = ladder(tokens, 3), blank = (row, nothing) => row.map((x, t) => (t < kept ? nothing : x));
  for (const name of ["guesses", "rank", "kl", "entropy"]) ladderOf[name] = ladderOf[name].map((row) => blank(row, name === "guesses" ? [] : null));
  ladderOf.settled = blank(ladderOf.settled, null);
  const heads = [0, 1, 2, 3].map((seat) => ({ name: `L0H${seat}`, stack: "decoder", layer: 0, head: seat, queries: "tokens", keys: "tokens", entropy: 0.2,
    top: tokens.map((_, i) => (i < kept ? [] : [[i - 1 - seat, 0.7], [0, 0.2], [i, 0.05]])) }));
  return { report: "look", model: "long", lang: "en", tokens, heads, ladder: ladderOf };
}

function patch() {
  const words = ["小", "明", "saw", "the", "🦊", null, "</b>"], of = (name) => words.map((word, i) => (word === null ? token("", 200 + i, true) : token(i === 1 ? name : word, i === 1 && name === "红" ? 99 : 10 + i)));
  const map = (site, across, rows, columns, at) => ({ site, stack: "decoder", across, rows, restored: rows.map((_, i) => Array.from({ length: columns }, (_, j) => at(i, j))) });
  const layers = ["L0", "L1", "L2"];
  return { report: "patch", model: "world", lang: "en", made_with: "qkv patch world --clean ... --corrupt ...", patch: { row: 6, tokens: { clean: of("明"), corrupt: of("红") },
    answer: { id: 5, text: " ran" }, wrong: { id: 6, text: " sat" }, difference: { clean: 3.25, corrupt: -1.5 },
    maps: [map("resid.pre", "tokens", layers, 7, (i, j) => (j === 1 ? 1 - 0.3 * i : j === 6 ? 0.3 * i : 0)), map("attn.out", "tokens", layers, 7, (i, j) => (j === 6 && i === 1 ? 0.875 : 0)),
      map("mlp.out", "tokens", layers, 7, (i, j) => (j === 1 && i === 0 ? -0.25 : 0)), map("attn.z", "heads", layers, 4, (i, j) => (i === 2 && j === 3 ? null : 0.01 * i * j))] } };
}

function labs() {
  const recorded = JSON.parse(readFileSync(new URL("../../src/labs/recorded/scale.json", import.meta.url), "utf8"));
  const here = structuredClone(recorded);
  here.parts.push({ ...here.parts[0], name: "elsewhere", name_zh: "别处", verdict: "skipped", found: "Skipped: the model nobody is not here.", found_zh: "跳过：没有 nobody 模型。" });
  here.rules.push({ ...here.rules[0], number: "of nobody", held: null });
  const lab = { name: "scale", claim: recorded.claim, claim_zh: "不除以 √d 时，宽头的 softmax 会饱和。", how: "How.", seeds: 3, rules: here.rules, recorded, here };
  return { report: "labs", made_with: "qkv lab scale", labs: [lab] };
}

const makers = { demo, translate, large, long, patch, labs };
const make = makers[process.argv[2]];
if (!make) {
  console.error(`usage: node sample_report.mjs ${Object.keys(makers).join("|")}`);
  process.exit(2);
}
process.stdout.write(JSON.stringify(make()));
