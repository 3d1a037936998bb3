// doors_test.mjs BASE [SHOTS]: walks through the doors that look, of a server with a decoder "plain", a "translator" and
// "experts" (doors_test.sh starts one), and checks what they show against what the server says.
import { asked, check, equal, finish, near, shooter, watchedPage } from "./browser.mjs";
import { workedOut } from "./page_formula.mjs";

const [base, shots] = process.argv.slice(2);
const shoot = shooter(shots);

const post = (route, body) => asked(base, `/page/${route}`, body);
const percentOf = (text) => Number(/(<?[\d.]+) %/.exec(text)?.[1]?.replace("<", "")) / 100;

async function open(hash, { width = 1400, scheme = "light", lang = "en", models = null } = {}) {
  const page = await watchedPage(hash, { width, scheme, locale: lang === "zh" ? "zh-CN" : "en-US", from: /^(http:\/\/127\.0\.0\.1:|data:|blob:)/ });
  page.setDefaultTimeout(60000);
  // Fewer models than the server has: they come with the page, and with /page/models.
  if (models) {
    await page.route("**/page/models", async (route) => { const all = await (await fetch(`${base}/page/models`)).json(); route.fulfill({ json: { models: all.models.filter(models) } }); });
    await page.route(`${base}/page`, async (route) => {
      const answer = await fetch(`${base}/page`), html = await answer.text();
      const body = html.replace(/(id="report">)(.*?)(<\/script>)/s, (_, open, json, close) => {
        const first = JSON.parse(json);
        if (first.models) first.models = first.models.filter(models);
        return open + JSON.stringify(first).replace(/</g, "\\u003c") + close;
      });
      route.fulfill({ status: 200, contentType: "text/html; charset=utf-8", body });
    });
  }
  await page.goto(`${base}/page${hash}`);
  return page;
}
const textOf = (page, selector) => page.locator(selector).first().innerText();
const chosenHead = (page) => page.$eval(".head-panel select", (select) => select.value);
async function depth(page, part, name) {
  await page.locator(`#${part} button[data-depth="${name}"]`).click();
}
const tableRows = (page, part) => page.$$eval(`#${part} .depth-extra tbody tr`, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

// --- the router in the story of one token ------------------------------------------------------------------------------
{
  const page = await open("#/story?model=experts&layer=0&stage=router&text=one%20two%20three");
  await page.waitForSelector("[data-block=logits] canvas");
  const token = Number(await page.locator(".story-pick .chip.chosen").getAttribute("data-token"));
  const { value, said } = await workedOut(page), told = await post("story", { model: "experts", text: "one two three", token, layer: 0, head: 0 });
  near(value, said, 2e-5 * (1 + Math.abs(said)), "n W_router: the formula's numbers make its result");
  near(said, told.experts.logits[told.experts.ids[0]], 1e-4 * (1 + Math.abs(said)), "and it is the server's logit of the first expert");
  await page.close();
}

// --- heads found -------------------------------------------------------------------------------------------------------
{
  const page = await open("#/heads?model=plain&head=L1H2");
  await page.waitForSelector(".tenth");
  equal(await chosenHead(page), "L1H2", "the permalink's head is chosen");
  equal(await page.locator(".tenth").count(), 10, "examples come in tenths");
  const strengths = (await page.locator(".strength").allInnerTexts()).map(percentOf);
  check(strengths.every((one, i) => i === 0 || one <= strengths[i - 1] + 1e-9), `examples go from strong to weak: ${strengths}`);
  check(await page.locator(".example .asking").count() >= 20, "every example marks the token that looks");
  await page.selectOption("#axis-x", "entropy");
  await page.selectOption("#axis-y", "distance");
  await page.waitForFunction(() => location.hash.includes("x=entropy") && location.hash.includes("y=distance"));
  await page.locator(".scatter").focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".head-panel select").value !== "L1H2");
  const chosen = await chosenHead(page);
  check((await page.locator(".permalink").getAttribute("href")).includes(`head=${chosen}`), "the link is of the head that is chosen");
  const roles = await post("roles", { model: "plain" });
  const order = roles.heads.map((head) => [head.name, head.measures.entropy.mean]).sort((a, b) => a[1] - b[1]).map(([name]) => name);
  equal(chosen, order[Math.min(order.indexOf("L1H2") + 1, order.length - 1)], "the arrow goes to the next head on the axis");
  await page.waitForSelector("#twins tbody tr");
  check(/of|None/.test(await textOf(page, "#twins .card p")), "twins are said in words");
  await page.close();
}

// --- translate ---------------------------------------------------------------------------------------------------------
{
  const page = await open("#/translate?from=one%20two%20three&reference=two%20one");
  await page.waitForSelector(".lines path");
  await page.waitForSelector(".forced-row + .forced-row");
  const lines = () => page.locator(".lines path").count();
  await page.locator(".line-row").last().locator(".chip").nth(1).hover();
  await page.waitForFunction(() => document.querySelector(".reading").textContent.includes("→"));
  const target = await page.$$eval(".line-row:last-of-type .chip", (nodes) => nodes.length), source = await page.$$eval(".line-row:first-of-type .chip", (nodes) => nodes.length);
  check((await lines()) <= source && (await lines()) > 0, "lines follow the pointer: those of one token");
  await page.locator(".line-row").first().locator(".chip").nth(1).hover();
  await page.waitForFunction(() => document.querySelector(".reading").textContent.includes("←"));
  check((await lines()) <= target, "a word of the source shows who looks at it");
  await page.mouse.move(5, 5);
  await page.locator('input[data-stack="encoder"]').check();
  await page.waitForSelector(".line.encoder", { state: "attached" });
  await depth(page, "forcing", "numbers");
  const rows = await tableRows(page, "forcing"), reference = rows.filter(([text]) => text === "your reference");
  const looked = await post("look", { model: "translator", text: "one two three", target: "two one" });
  equal(reference.length, looked.tokens.length - 1, "one row for each token of the reference");
  reference.forEach((row, i) => near(Number(row[2]), Math.exp(-looked.ladder.losses[i]), 2e-4, `p of token ${i} of the reference`));
  const nats = Number(/= ([\d.]+) nats/.exec(await textOf(page, ".forced-row .fine"))[1]);
  near(nats, looked.ladder.losses.slice(0, -1).reduce((sum, x) => sum + x, 0), 0.02, "the sum of all of them");
  await page.close();
  const none = await open("#/translate", { models: (one) => one.name !== "translator" });
  equal(await textOf(none, ".missing code"), "qkv serve translator", "without a translator it says how to start one");
  await none.close();
}

// --- experts -----------------------------------------------------------------------------------------------------------
{
  const page = await open("#/experts?expert-text=one%20two%20three");
  await page.waitForSelector(".use");
  const seen = await post("experts", { model: "experts", text: "one two three" });
  equal(await page.locator(".dots-table tbody td i").count(), 2 * seen.tokens.length, "a dot for each token and expert");
  const first = seen.routes[0].ids[0][0];
  await page.locator(".use .cut-switch").nth(first).click();
  await page.waitForSelector("#expert-cut .cut-cost");
  await page.waitForFunction((e) => document.querySelectorAll(".dots-table tbody tr")[e].querySelectorAll("td i").length === 0, first);
  check((await page.evaluate(() => location.hash)).includes(`experts=L0E${first}`), "the cut stands in the address");
  const loads = (await page.locator(".use .bar-value").allInnerTexts()).map(percentOf);
  near(loads.reduce((a, b) => a + b, 0), 2, 0.05, "the loads of all experts");
  await page.close();
}

// --- prefill and decode ------------------------------------------------------------------------------------------------
{
  const page = await open("#/decode?model=plain&prompt=one%20two%20three");
  await page.waitForSelector(".decode-facts dd");
  await page.waitForFunction(() => document.querySelectorAll(".decode-facts dd").length >= 6);
  const fact = async (n) => page.locator(".decode-facts dd").nth(n).innerText();
  equal(await fact(1), "1", "with a cache the last pass computes one row");
  const length = (await post("decode", { model: "plain", text: "one two three", steps: 24 })).ids.length;
  await page.locator(".cache-switch").click();
  await page.waitForFunction((n) => document.querySelectorAll(".decode-facts dd")[1]?.textContent === n, String(length));
  equal(await fact(3), "0 B", "without one there is nothing kept");
  check(/times as long/.test(await textOf(page, ".decode-sum")), "both were measured");
  await page.locator(".step-button.main").click();
  await page.waitForFunction(() => document.querySelector(".decode-facts dd").textContent === "prefill");
  await page.close();
}

// --- compare -----------------------------------------------------------------------------------------------------------
{
  const page = await open("#/compare?model=plain&both=one%20two%20three");
  await page.waitForSelector(".moved");
  const asked = { text: "one two three", a: { model: "plain" }, b: { model: "plain", form: "q4" } }, answer = await post("compare", asked);
  const mean = answer.rows.reduce((sum, row) => sum + row.kl, 0) / answer.rows.length;
  near(Number(/Mean KL ([\d.]+)/.exec(await textOf(page, ".summary"))[1]), mean, 2e-4, "the mean KL against four bits");
  equal(await page.locator(".moved").count(), answer.heads.length, "a square for each head");
  equal(await page.locator(".map-triple canvas").count(), 3, "left, right and their difference");
  await page.locator(".form-of").last().selectOption("exact");
  await page.waitForFunction(() => /Mean KL 0\.0000/.test(document.querySelector(".summary")?.textContent ?? ""));
  await page.locator(".cut-names").last().fill("L0, L1");
  await page.waitForFunction(() => !/Mean KL 0\.0000/.test(document.querySelector(".summary")?.textContent ?? "0.0000"));
  await page.close();
}

// --- thinking aloud ----------------------------------------------------------------------------------------------------
{
  const page = await open("#/sums?model=plain&sum=12%2B30");
  await page.waitForSelector(".way + .way");
  check((await textOf(page, ".ways + .fine")).includes("42"), "the right answer is worked out");
  check((await page.locator(".way-text").last().innerText()).startsWith("Compute 12 + 30 by steps."), "the steps are asked for as the world does");
  await page.locator(".count").click();
  await page.waitForFunction(() => !document.querySelector(".count").disabled && document.querySelector("#many-sums canvas"), null, { timeout: 120000 });
  await depth(page, "many-sums", "numbers");
  equal((await tableRows(page, "many-sums")).length, 32, "eight sums of four lengths");
  await page.close();
  const chinese = await open("#/sums?model=plain&sum=12%2B30&lang=zh");
  await chinese.waitForSelector(".way + .way");
  check((await chinese.locator(".way-text").last().innerText()).startsWith("一步一步地算12+30。"), "and in Chinese");
  await chinese.close();
}

// --- pictures ----------------------------------------------------------------------------------------------------------
const views = { heads: ["#/heads?model=plain", ".tenth"], translate: ["#/translate?from=one%20two%20three&reference=two%20one", ".lines path"], experts: ["#/experts", ".use"], decode: ["#/decode?model=plain&cache=off", ".triangle"], compare: ["#/compare?model=plain", ".moved"], sums: ["#/sums?model=plain", ".way"] };
for (const [name, [hash, ready]] of Object.entries(views)) {
  for (const lang of ["en", "zh"]) for (const scheme of ["light", "dark"]) for (const width of [390, 1400]) {
    if (!shots && (scheme === "dark" || lang === "en")) continue;
    const page = await open(hash, { width, scheme, lang });
    await page.waitForSelector(ready, { state: "attached" });
    await page.waitForTimeout(400);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(wide <= 0, `${name} at ${width} px is ${wide} px wider than the screen`);
    const nameless = await page.$$eval("main button, main select, main input, main textarea", (nodes) => nodes.filter((node) => !(node.textContent.trim() || node.getAttribute("aria-label") || node.closest("label")?.textContent.trim())).length);
    equal(nameless, 0, `${name}: controls without a name`);
    await shoot(page, `door-${name}-${lang}-${scheme}-${width}`);
    await page.close();
  }
}

await finish();
