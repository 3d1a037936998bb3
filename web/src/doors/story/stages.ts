// The steps from a word to the next one: the blocks of each, and how each of their numbers was made.
import { mi, mn, mo, productSum, row, sub, sup, frac, sqrt, formula, shownNumber } from "../../core/formula";
import { el, math, type Child } from "../../core/dom";
import { axisName, list, tokenName, visible } from "../../core/format";
import { pinned, pointed, type Block, type Made } from "../../core/matrix";
import { report, type Token } from "../../core/report";
import { nextBars, samplingSliders } from "../../parts/ask";
import { headMap } from "../../parts/bigmap";
import { headSplit, learnStage, updateStage } from "./extras";
import { weight, weightLimit, type MatrixName, type Norm, type Numbers, type Projected, type Update } from "./data";
import { say, type StageName } from "./words";

export interface Context { numbers: Numbers; tokens: readonly Token[]; model: string | undefined; update?: Update | null }
export interface Stage { name: StageName; text: string; blocks: (Block | string)[]; start: { block: string; row: number; column: number } | null; large?: boolean; extra?: () => Child }

const vector = (id: string, name: Child, values: readonly number[], more: Partial<Block> = {}): Block => ({ id, name, rows: 1, columns: values.length, at: (_, j) => values[j], ...more });
const column = (id: string, name: Child, values: readonly number[], more: Partial<Block> = {}): Block => ({ id, name, rows: values.length, columns: 1, at: (i) => values[i], ...more });
const others = (n: number) => say("others")(n);

// y[j] = sum_i a[i] W[i][j] (+ bias[j]).
function dotMade(letters: { a: Child; w: string; y: string }, a: readonly number[], column: readonly number[] | null, j: number, from: Made["from"], bias?: number): Made | null {
  if (!column) return { formula: formula(sub(letters.y, j), "=", mi("…")), from };
  return {
    formula: [formula(sub(letters.y, j), "=", math("munder", mathSum(), mi("i")), letters.a, sub(matrixName(letters.w), row(mi("i"), ",", math("mn", j)))), formula("=", productSum(a, column, others, bias))],
    from, terms: { names: [`${letters.w}[i]`, `${letters.w}[i][${j}]`], a, b: column },
  };
}
const matrixName = (name: string): Child => { const [w, index] = name.split("_"); return index ? row("(", sub(w, mi(index)), ")") : mi(w); };
const mathSum = (): Element => math("mo", "∑");

// The columns of a weight that belong to the head: all of them where they are few enough, else only column j.
function columnOf({ numbers, model }: Context, matrix: MatrixName, rows: number, columns: number, j: number, head?: number): number[] | null {
  const whole = rows * columns <= weightLimit;
  const got = weight(model, { layer: numbers.layer, matrix, ...(head === undefined ? {} : { head }), ...(whole ? {} : { columns: [j, j + 1] }) });
  return got ? got.values.map((line) => line[whole ? j : 0]) : null;
}
// The column of a large matrix that the chosen number of `of` was made with, laid under what it is multiplied with.
function usedColumn(context: Context, matrix: MatrixName, letter: string, [rows, columns]: [number, number], of: string, head?: number): Block {
  const j = () => { const cell = pointed() ?? pinned(); return cell?.block === of ? cell.column : 0; };
  return { id: `W_${matrix}`, name: () => `${letter}[·, ${j()}]`, shape: () => say("columnOf")(j(), rows, columns), rows: 1, columns: rows, changes: true, at: (_, i) => columnOf(context, matrix, rows, columns, j(), head)?.[i] ?? 0 };
}
function weightBlock(context: Context, matrix: MatrixName, name: Child, rows: number, columns: number, head?: number): Block | null {
  if (rows * columns > weightLimit) return null;
  const got = weight(context.model, { layer: context.numbers.layer, matrix, ...(head === undefined ? {} : { head }) });
  return got ? { id: `W_${matrix}`, name, rows, columns, at: (i, j) => got.values[i][j] } : null;
}

// n[i] = (x[i] - mean) / size x w[i] + b[i]; the size of rms norms is the root of the mean square.
const normMade = (norm: Norm, x: readonly number[], from: string) => (_: number, i: number): Made => {
  const mean = norm.kind === "layer" ? norm.mean ?? 0 : null, size = mean === null ? mi("rms") : mi("σ"), offset = norm.bias ? [math("mo", "+"), sub("b", i)] : null;
  return {
    formula: [formula(sub("n", i), "=", frac(mean === null ? sub("x", i) : row(sub("x", i), "−", mi("μ")), size), "×", sub("w", i), offset, mo(","), size.cloneNode(true), "=", sqrt(row(mean === null ? sup(math("mover", mi("x"), mo("¯")), math("mn", 2)) : sup(math("mover", row("(", mi("x"), "−", mi("μ"), ")"), mo("¯")), math("mn", 2)), "+", mi("ε"))), "=", mn(1 / norm.scale)),
      formula(sub("n", i), "=", mean === null ? mn(x[i]) : row("(", mn(x[i]), "−", mn(mean), ")"), "×", mn(norm.scale), "×", mn(norm.weight[i]), norm.bias ? [math("mo", "+"), mn(norm.bias[i])] : null, "=", mn(norm.values[i]))],
    from: [{ block: from, columns: [i, i + 1] }, { block: "w", columns: [i, i + 1] }],
  };
};
function normStage(name: StageName, norm: Norm, x: readonly number[], id: string): Stage {
  const made = normMade(norm, x, "x");
  return { name, text: say("texts").norm(), blocks: [vector("x", "x", x), vector("w", "w", norm.weight), "=", vector(id, "n", norm.values, { made })], start: { block: id, row: 0, column: 0 } };
}

function projection(context: Context, name: "q" | "k" | "v", projected: Projected, text: string): Stage {
  const { numbers: n } = context, input = n.norm?.values ?? n.x, letter = `W_${name.toUpperCase()}`, columns = projected.linear.length;
  const head = name === "q" ? n.head : n.kv_head, w = weightBlock(context, name, letter, n.width, columns, head);
  const linear = vector(`${name}_linear`, name, projected.linear, {
    made: (_, j) => dotMade({ a: sub("n", mi("i")), w: letter, y: name }, input, columnOf(context, name, n.width, columns, j, head), j,
      [{ block: "n" }, { block: `W_${name}`, columns: [j, j + 1] }], projected.bias?.[j]),
  });
  const blocks: (Block | string)[] = [vector("n", "n", input), "×", w ?? usedColumn(context, name, letter, [n.width, columns], linear.id, head), "=", linear];
  if (projected.rope) blocks.push("→", rotated(name, projected));
  return { name, text, blocks, start: { block: linear.id, row: 0, column: 0 }, large: !w && n.width * columns > weightLimit, extra: () => headSplit(n, name) };
}

// Rotary positions: pairs of numbers are turned by an angle that grows with the place of the token.
function rotated(name: string, { linear, norm, rope, values }: Projected): Block {
  const from = norm?.values ?? linear, { cos, sin, first, style } = rope!, half = cos.length;
  const pairOf = (j: number): [number, number, number] => (style === "half" ? [(j - first) % half, first + ((j - first) % half), first + ((j - first) % half) + half] : [(j - first) >> 1, first + ((j - first) & ~1), first + ((j - first) | 1)]);
  return vector(`${name}_rope`, [name, "′ (RoPE)"], values, { made: (_, j) => {
    const [k, a, b] = pairOf(j);
    if (j < first || j >= first + 2 * half || b >= from.length) return null;  // this number is not turned
    const isFirst = j === a;
    return {
      formula: formula(sub(`${name}′`, j), "=", sub(name, isFirst ? a : b), mi(" cos θ"), isFirst ? "−" : "+", sub(name, isFirst ? b : a), mi(" sin θ"), "=",
        mn(from[isFirst ? a : b]), "×", mn(cos[k]), isFirst ? "−" : "+", mn(from[isFirst ? b : a]), "×", mn(sin[k]), "=", mn(values[j])),
      from: [{ block: `${name}_linear`, columns: [a, a + 1] }, { block: `${name}_linear`, columns: [b, b + 1] }],
    };
  } });
}

function scoreStages(context: Context): Stage[] {
  const { numbers: n, tokens } = context, { keys, qk, scores, pattern, q } = n;
  if (!keys || !qk || !scores || !pattern || !q) return [];
  const rowName = (i: number) => axisName(tokens, i), S = keys.length;
  const lit = (i: number): Made["from"] => [{ block: "q" }, { block: "keys", rows: [i, i + 1] }];
  const plain = scores.every((s, i) => Math.abs(s - qk[i] * n.scale) < 1e-3 * (1 + Math.abs(s)));
  const keyBlock: Block = { id: "keys", name: "K", rows: S, columns: keys[0].length, at: (i, j) => keys[i][j], rowName };
  const first: Stage = { name: "scores", text: say("texts").scores({ d: n.head_width, scale: shownNumber(n.scale) }), start: { block: "qk", row: S - 1, column: 0 }, blocks: [
    vector("q", "q", q.values, { line: true }), "×", keyBlock, "=",
    column("qk", "q · k", qk, { made: (i) => ({ formula: [formula(mi("q"), "·", sub("k", i)), formula("=", productSum(q.values, keys[i], others))], from: lit(i), terms: { names: ["q[i]", `k[${i}][i]`], a: q.values, b: keys[i] } }) }),
    "→",
    column("scores", "s", scores, { made: (i) => (plain ? { formula: formula(sub("s", i), "=", row("(", mi("q"), "·", sub("k", i), ")"), "×", frac(math("mn", 1), sqrt(mi("d"))), "=", mn(qk[i]), "×", mn(n.scale), "=", mn(scores[i])), from: [{ block: "qk", rows: [i, i + 1] }] } : null) })] };
  const second: Stage = { name: "softmax", text: say("texts").softmax(), extra: () => headMap(n.name, n.token), start: { block: "pattern", row: S - 1, column: 0 }, blocks: [
    column("scores", "s", scores, { rowName }), "→",
    column("pattern", "A", pattern, { kind: "share", made: (i) => ({
      formula: formula(sub("A", i), "=", frac(sup(mi("e"), sub("s", i)), row(math("munder", mathSum(), mi("j")), sup(mi("e"), sub("s", mi("j"))))), "=", sup(mi("e"), row(mn(scores[i]), "−", mn(n.lse))), "=", mn(pattern[i])),
      from: [{ block: "scores" }] }) })] };
  return [first, second];
}

function mixStages(context: Context): Stage[] {
  const { numbers: n, tokens } = context, made: Stage[] = [], { pattern, value_rows: values, z } = n;
  if (pattern && values && z) {
    const rowName = (i: number) => axisName(tokens, i);
    made.push({ name: "z", text: say("texts").z(), start: { block: "z", row: 0, column: 0 }, blocks: [
      column("A", "A", pattern, { kind: "share", rowName }), "×",
      { id: "V", name: "V", rows: values.length, columns: values[0].length, at: (i, j) => values[i][j] }, "=",
      vector("z", "z", z, { made: (_, j) => ({ formula: [formula(sub("z", j), "=", math("munder", mathSum(), mi("i")), sub("A", mi("i")), sub("V", row(mi("i"), ",", math("mn", j)))), formula("=", productSum(pattern, values.map((v) => v[j]), others))],
        from: [{ block: "A" }, { block: "V", columns: [j, j + 1] }], terms: { names: ["A[i]", `V[i][${j}]`], a: pattern, b: values.map((v) => v[j]) } }) })] });
  }
  const { concat, out } = n;
  if (concat && z) {
    const begin = n.head * n.value_width, slice: [number, number] = [begin, begin + n.value_width];
    made.push({ name: "concat", text: say("texts").concat({ heads: n.heads }), start: { block: "concat", row: 0, column: begin }, blocks: [
      vector("z", "z", z), "→", vector("concat", "concat", concat, { slice, made: (_, j) => (j >= slice[0] && j < slice[1] ? { formula: formula(sub("c", j), "=", sub("z", j - begin), "=", mn(concat[j])), from: [{ block: "z", columns: [j - begin, j - begin + 1] }] } : null) })] });
  }
  if (concat && out) {
    const begin = n.head * n.value_width, w = weightBlock(context, "o", "W_O", concat.length, out.length);
    made.push({ name: "o", text: say("texts").o(), start: { block: "out", row: 0, column: 0 }, large: !w && concat.length * out.length > weightLimit, blocks: [
      vector("concat", "concat", concat, { slice: [begin, begin + n.value_width] }), "×", w ?? usedColumn(context, "o", "W_O", [concat.length, out.length], "out"), "=",
      vector("out", "o", out, { made: (_, j) => dotMade({ a: sub("c", mi("i")), w: "W_O", y: "o" }, concat, columnOf(context, "o", concat.length, out.length, j), j, [{ block: "concat" }, { block: "W_o", columns: [j, j + 1] }], n.out_bias?.[j]) })] });
  }
  const adds = out && n.mid && n.mid.every((m, j) => Math.abs(n.x[j] + out[j] - m) < 1e-3 * (1 + Math.abs(m)));  // another order of norms has another sum
  if (adds) made.push(addStage("mid", n.x, "x", out, "o", n.mid!, "m"));
  return made;
}

function addStage(name: "mid" | "post", a: readonly number[], aName: string, b: readonly number[], bName: string, sum: readonly number[], sumName: string): Stage {
  return { name, text: say("texts")[name](), start: { block: sumName, row: 0, column: 0 }, blocks: [vector(aName, aName, a), "+", vector(bName, bName, b), "=",
    vector(sumName, sumName, sum, { made: (_, j) => ({ formula: formula(sub(sumName, j), "=", sub(aName, j), "+", sub(bName, j), "=", mn(a[j]), "+", mn(b[j]), "=", mn(sum[j])), from: [{ block: aName, columns: [j, j + 1] }, { block: bName, columns: [j, j + 1] }] }) })] };
}

function hiddenStages(context: Context): Stage[] {
  const { numbers: n } = context, made: Stage[] = [], { mlp } = n;
  if (mlp) {
    const input = mlp.norm?.values ?? n.mid ?? [], F = mlp.post.length, act = mlp.activation;
    // y[j] = sum_i a[i] W[i][j]; what is left over is the bias.
    const product = (id: string, name: string, letter: string, matrix: MatrixName, a: readonly number[], values: readonly number[], of: { block: string; letter: string }) => vector(id, name, values, { made: (_, j) => {
      const w = columnOf(context, matrix, a.length, values.length, j), rest = w ? values[j] - w.reduce((sum, x, i) => sum + x * a[i], 0) : 0;
      return dotMade({ a: sub(of.letter, mi("i")), w: letter, y: name }, a, w, j, [{ block: of.block }], Math.abs(rest) > 1e-4 * (1 + Math.abs(values[j])) ? rest : undefined);
    } });
    const pre = product("pre", mlp.gated ? "g" : "h", mlp.gated ? "W_gate" : "W_1", mlp.gated ? "gate" : "up", input, mlp.pre, { block: "n", letter: "n" });
    const up = mlp.gated && mlp.up ? product("up", "u", "W_up", "up", input, mlp.up, { block: "n", letter: "n" }) : null;
    const hidden = vector("hidden", up ? `${act}(g) × u` : `${act}(h)`, mlp.post, { made: (_, j) => (up && mlp.pre[j] !== 0 && mlp.up![j] !== 0 ? { formula: formula(sub("h", j), "=", mi(act), "(", mn(mlp.pre[j]), ")", "×", mn(mlp.up![j]), "=", mn(mlp.post[j])), from: [{ block: "pre", columns: [j, j + 1] }, { block: "up", columns: [j, j + 1] }] }
      : { formula: formula(sub("h", j), "=", mi(act), "(", mn(mlp.pre[j]), ")", "=", mn(mlp.post[j])), from: [{ block: "pre", columns: [j, j + 1] }] }) });
    made.push({ name: "mlp", text: say("texts").mlp({ hidden: F, activation: act }), start: { block: "ffn_out", row: 0, column: 0 }, blocks: [
      vector("n", "n", input), "×", usedColumn(context, mlp.gated ? "gate" : "up", mlp.gated ? "W_gate" : "W_1", [n.width, F], "pre"), "=", pre, ...(up ? ["n ×", usedColumn(context, "up", "W_up", [n.width, F], "up"), "=", up] : []),
      "→", hidden, "×", usedColumn(context, "down", "W_down", [F, n.width], "ffn_out"), "=", product("ffn_out", "f", "W_down", "down", mlp.post, mlp.out, { block: "hidden", letter: "h" })] });
    if (n.mid && n.post) made.push(addStage("post", n.mid, "m", mlp.out, "f", n.post, "x′"));
  } else if (n.experts && n.mid && n.post) {
    made.push(routerStage(context, n.experts));
    made.push(addStage("post", n.mid, "m", n.experts.out, "f", n.post, "x′"));
  }
  return made;
}

// The router's logit of every expert, the weights of the best, and what these write together.
function routerStage(context: Context, { logits, ids, weights, out, norm }: NonNullable<Numbers["experts"]>): Stage {
  const input = norm?.values ?? context.numbers.mid ?? [], E = logits.length, all = logits.map((_, e) => e);
  // Some families take the softmax over all experts, some over the chosen ones.
  const over = [ids, all].find((some) => { const sum = some.reduce((s, e) => s + Math.exp(logits[e]), 0); return ids.every((e, i) => Math.abs(Math.exp(logits[e]) / sum - weights[i]) < 1e-3); });
  const sum = over?.reduce((s, e) => s + Math.exp(logits[e]), 0) ?? 1;
  return { name: "router", text: say("texts").router({ experts: E, chosen: ids.length }), start: { block: "logits", row: 0, column: ids[0] ?? 0 }, blocks: [
    vector("n", "n", input), "×", usedColumn(context, "router", "W_router", [input.length, E], "logits"), "=",
    vector("logits", "s", logits, { columnName: (e) => `E${e}`, made: (_, e) => dotMade({ a: sub("n", mi("i")), w: "W_router", y: "s" }, input, columnOf(context, "router", input.length, E, e), e, [{ block: "n" }, { block: "W_router" }]) }), "→",
    vector("weights", "g", weights, { kind: "share", columnName: (i) => `E${ids[i]}`, made: (_, i) => (over ? { formula: formula(sub("g", ids[i]), "=", frac(sup(mi("e"), sub("s", ids[i])), row(math("munder", mathSum(), mi("j")), sup(mi("e"), sub("s", mi("j"))))), "=", sup(mi("e"), row(mn(logits[ids[i]]), "−", mn(Math.log(sum)))), "=", mn(weights[i])), from: over.map((e) => ({ block: "logits", columns: [e, e + 1] as [number, number] })) } : null) }), "→",
    vector("f", "f", out, { made: (_, j) => ({ formula: formula(sub("f", j), "=", ids.flatMap((e, i): Child[] => [i ? math("mo", "+") : null, mn(weights[i]), math("mo", "×"), sub(sub("E", e), j), row("(", mi("n"), ")")]), "=", mn(out[j])), from: [{ block: "weights" }, { block: "n" }] }) })] };
}

export function stagesOf(context: Context): Stage[] {
  const { numbers: n, tokens } = context, all: Stage[] = [];
  if (n.embedding && n.layer === 0) {
    const { id, token, position, values } = n.embedding;
    all.push({ name: "embed", text: say("texts").embed({ id, width: n.width, token: tokenName(tokens, n.token), rope: !position && Boolean(n.q?.rope) }), start: { block: "e", row: 0, column: 0 }, blocks: [
      vector("E", ["E[", String(id), "]"], token), ...(position ? ["+", vector("P", ["P[", String(n.token), "]"], position)] : []), "=",
      vector("e", "x", values, { made: (_, j) => ({ formula: formula(sub("x", j), "=", sub("E", row(math("mn", id), ",", math("mn", j))), position ? [math("mo", "+"), sub("P", row(math("mn", n.token), ",", math("mn", j)))] : null, "=", position ? [mn(token[j]), math("mo", "+"), mn(position[j]), math("mo", "=")] : null, mn(values[j])), from: [{ block: "E", columns: [j, j + 1] }, { block: "P", columns: [j, j + 1] }] }) })] });
  }
  const learn = n.layer === 0 ? learnStage(context) : null;
  if (learn) all.push(learn);
  if (n.norm) all.push(normStage("norm", n.norm, n.x, "n"));
  if (n.q) all.push(projection(context, "q", n.q, say("texts").q({ width: n.width, heads: n.heads, d: n.head_width })));
  if (n.k) all.push(projection(context, "k", n.k, say("texts").k()));
  if (n.v) all.push(projection(context, "v", n.v, say("texts").v()));
  all.push(...scoreStages(context), ...mixStages(context), ...hiddenStages(context));
  const last = n.token === tokens.length - 1, top = n.final && last ? list(report().next?.candidates).slice(0, 20) : [];
  if (n.final && top.length) {
    const lse = report().next!.lse, final = n.final.values;
    const logit = (i: number): Made | null => dotMade({ a: sub("n", mi("j")), w: "W_U", y: "s" }, final, weight(context.model, { layer: 0, matrix: "head", columns: [top[i].id, top[i].id + 1] })?.values.map((line) => line[0]) ?? null, top[i].id, [{ block: "n" }]);
    all.push({ name: "logits", text: say("texts").logits(), start: { block: "p", row: 0, column: 0 }, blocks: [...(n.final.norm && n.post ? [vector("x", "x", n.post), "→", vector("n", "n", final, { made: normMade(n.final.norm, n.post, "x") })] : [vector("n", "n", final)]), "→",
      column("logits", "logit", top.map((c) => c.logit), { rowName: (i) => visible(top[i].text), made: logit }), "→",
      column("p", "p", top.map((c) => c.p), { kind: "share", made: (i) => ({ formula: formula(sub("p", i), "=", sup(mi("e"), row(mn(top[i].logit), "−", mn(lse))), "=", mn(top[i].p)), from: [{ block: "logits", rows: [i, i + 1] }] }) })] });
    const update = updateStage(context, final, top[0]);
    all.push({ name: "sample", text: say("texts").sample(), start: null, blocks: [], extra: () => el("div", { class: "sample-stage" }, nextBars, samplingSliders()) });
    if (update) all.push(update);
  }
  return all;
}
