// A number of the story is followed to its formula; the formula's own numbers are worked out again, and so are the
// server's: the product of a row and a column of weights that were asked for apart.
import { asked, check, equal, near } from "./browser.mjs";

// The numbers and signs of the formulas on the page, in order.
const formulas = (page) => page.$$eval(".how .formula math", (all) => all.map((one) => [...one.querySelectorAll("mn, mo")].map((leaf) =>
  (leaf.dataset.value !== undefined ? Number(leaf.dataset.value) : leaf.tagName === "mo" ? leaf.textContent.trim() : null))));

// What stands between the last two equals signs, worked out; and what stands after the last. NaN: signs without numbers yet.
function worked(leaves) {
  const equals = leaves.flatMap((leaf, i) => (leaf === "=" ? [i] : [])), last = equals.at(-1), before = equals.length > 1 ? equals.at(-2) + 1 : 0;
  const text = leaves.slice(before, last).map((leaf) => ({ "×": "*", "−": "-", "·": "*" })[leaf] ?? (leaf === null ? "" : typeof leaf === "number" ? `(${leaf})` : leaf)).join(" ");
  const value = () => {
    try {
      return Function(`return ${text || "NaN"}`)();
    } catch {
      return NaN;
    }
  };
  return { value: value(), said: leaves.slice(last + 1).find((leaf) => typeof leaf === "number") };
}

// Once the weights have come that it needs.
export async function workedOut(page) {
  for (let i = 0; i < 100; ++i) {
    const all = await formulas(page), { value, said } = all.length ? worked(all.at(-1)) : {};
    if (Number.isFinite(value) && said !== undefined) return { value, said };
    await page.waitForTimeout(50);
  }
  return { value: NaN, said: NaN };
}

export async function formulaHolds(page, origin) {
  const text = await page.evaluate(() => qkv.report().title);
  for (const layer of [0, 1]) {
    for (const stage of [...(layer === 0 ? ["learn"] : []), "norm", "q", "k", "v", "scores", "z", "o", "mid", "mlp", "post"]) {
      await page.evaluate(([stage, layer]) => { location.hash = `#/story?token=3&layer=${layer}&head=L${layer}H2&stage=${stage}&text=${encodeURIComponent(qkv.report().title)}`; }, [stage, layer]);
      await page.waitForFunction((stage) => document.querySelector(".track .now button")?.dataset.stage === stage && document.querySelector(".how .formula math [data-value]"), stage, { timeout: 15000 })
        .catch(async () => { throw new Error(`the story has no formula at ${stage} of layer ${layer}: ${await page.locator("main").textContent()}`); });
      const { value, said } = await workedOut(page);
      near(value, said, 2e-5 * (1 + Math.abs(said)), `layer ${layer}, ${stage}: the formula's numbers make its result`);
    }
    // Another cell than the first: pointed at, its formula follows, and it is the server's number.
    await page.evaluate((layer) => { location.hash = `#/story?token=3&layer=${layer}&head=L${layer}H2&stage=q&text=${encodeURIComponent(qkv.report().title)}`; }, layer);
    await page.waitForSelector("[data-block=q_linear] .canvas");
    await page.locator("[data-block=q_linear] .canvas").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => document.querySelector(".how .formula msub mn")?.textContent === "2");
    const story = await asked(origin, "/page/story", { text, token: 3, layer, head: 2 });
    const weights = await asked(origin, "/page/weight", { matrix: "q", layer, head: 2, columns: [2, 3] });
    const product = story.norm.values.reduce((sum, x, i) => sum + x * weights.values[i][0], 0);
    const { value, said } = await workedOut(page);
    near(said, product, 1e-5 * (1 + Math.abs(product)), "x W_Q = q, with the row and the column asked for apart");
    near(value, product, 2e-5 * (1 + Math.abs(product)), "and with the formula's numbers");
    await page.evaluate((layer) => { location.hash = `#/story?token=3&layer=${layer}&head=L${layer}H2&stage=softmax&text=${encodeURIComponent(qkv.report().title)}`; }, layer);
    await page.waitForFunction(() => document.querySelector(".track .now button")?.dataset.stage === "softmax" && document.querySelector(".how msup [data-value]"));
    const [score, lse, share] = (await formulas(page)).at(-1).filter((leaf) => typeof leaf === "number");
    near(Math.exp(score - lse), share, 1e-6, "softmax: e to the power of the score, of all");
    near(story.pattern.reduce((a, b) => a + b, 0), 1, 1e-5, "shares add up to 1");
  }
  check(true, "formulas");
  equal(await page.locator(".failure").count(), 0, "no failure on the way");
}
