// Formulas as MathML, with the numbers of this example in them.
import { math, type Child } from "./dom";

export const mi = (name: string): Element => math("mi", name);
export const mo = (sign: string): Element => math("mo", sign);
export const sub = (name: Child, index: Child): Element => math("msub", typeof name === "string" ? mi(name) : name, typeof index === "string" || typeof index === "number" ? math("mn", index) : index);
export const sup = (base: Child, power: Child): Element => math("msup", base, power);
export const frac = (above: Child, under: Child): Element => math("mfrac", math("mrow", above), math("mrow", under));
export const sqrt = (inside: Child): Element => math("msqrt", inside);
export const row = (...parts: Child[]): Element => math("mrow", ...parts.map((part) => (typeof part === "string" ? mo(part) : part)));

// A number as the page shows it everywhere in formulas: four digits after the point, small ones with an exponent.
export function shownNumber(x: number): string {
  const size = Math.abs(x);
  if (size !== 0 && (size < 0.00005 || size >= 1e6)) return x.toExponential(2).replace("e+", "e").replace(/-/g, "−");
  return x.toFixed(size >= 1000 ? 1 : size >= 100 ? 2 : 4).replace("-", "−");
}
export const mn = (x: number): Element => {
  const made = math("mn", shownNumber(x));
  made.setAttribute("data-value", String(x));  // exact, for whoever checks the arithmetic
  return made;
};
// A number that somebody chose, as it was written.
export const given = (x: number): Element => {
  const made = math("mn", x);
  made.setAttribute("data-value", String(x));
  return made;
};
const inBrackets = (x: number): Child => (x < 0 ? row("(", mn(x), ")") : mn(x));

export function formula(...parts: Child[]): Element {
  const made = math("math", row(...parts));
  made.setAttribute("display", "block");
  return made;
}

// a_0 b_0 + a_1 b_1 + ...: the largest products in full, the others as one sum. They add up to the value.
const shownTerms = 3;
export function products(a: readonly number[], b: readonly number[]): { terms: [number, number, number][]; rest: number; restCount: number; sum: number } {
  const all = a.map((x, i) => [i, x, b[i]] as [number, number, number]);
  const sum = all.reduce((s, [, x, y]) => s + x * y, 0);
  const terms = [...all].sort((p, q) => Math.abs(q[1] * q[2]) - Math.abs(p[1] * p[2])).slice(0, shownTerms).sort((p, q) => p[0] - q[0]);
  return { terms, rest: sum - terms.reduce((s, [, x, y]) => s + x * y, 0), restCount: all.length - terms.length, sum };
}
export function productSum(a: readonly number[], b: readonly number[], others: (count: number) => string, plus?: number): Element {
  const { terms, rest, restCount, sum } = products(a, b);
  const parts: Child[] = [];
  terms.forEach(([, x, y], k) => parts.push(k ? "+" : null, k ? inBrackets(x) : mn(x), "×", inBrackets(y)));
  if (restCount > 0) {
    const under = math("munder", row("+", inBrackets(rest)), math("mtext", others(restCount)));
    parts.push(under);
  }
  if (plus !== undefined) parts.push("+", inBrackets(plus));
  return row(...parts, "=", mn(sum + (plus ?? 0)));
}
