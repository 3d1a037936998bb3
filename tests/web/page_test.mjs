// page_test.mjs QKV FOLDER [SHOTS]: the live page as a person uses it. FOLDER has the models of page_test.sh.
import path from "node:path";
import { gzipSync } from "node:zlib";
import { accessible, asked, check, download, equal, finish, inkOf, near, serve, settle, shooter, watchedPage } from "./browser.mjs";
import { formulaHolds } from "./page_formula.mjs";
import { faults } from "./page_faults.mjs";
import { views } from "./page_views.mjs";

const [program, folder, shots] = process.argv.slice(2);
const shoot = shooter(shots);
const models = ["plain", "<img src=x onerror=window.boom=1>", "translator", "experts"].map((name) => path.join(folder, name));
const server = await serve(program, models), origin = `http://127.0.0.1:${server.port}`;
const from = new RegExp(`^(${origin}/|data:|blob:)`);
const began = Date.now(), part = (name) => console.log(`${((Date.now() - began) / 1000).toFixed(1)} s: ${name}`);

async function open(address = "", options = {}) {
  const page = await watchedPage(`the page ${address}`, { from, ...options });
  await page.goto(`${origin}/${address}`);
  await page.waitForFunction(() => document.documentElement.classList.contains("thumbs-ready"), null, { timeout: 30000 });
  return page;
}
const reportOf = (page) => page.evaluate(() => qkv.report());
const read = async (page, text) => {
  await page.locator("#text").fill(text);
  await page.waitForFunction((text) => qkv.report().title === text && document.documentElement.classList.contains("thumbs-ready"), text);
};
const headPlace = async (page, layer, seat, layers = 2, across = 4) => {
  await page.locator(".wall").first().scrollIntoViewIfNeeded();
  const box = await page.locator(".wall canvas").first().boundingBox();
  const pitch = Math.min(Math.max(Math.floor((box.width - 30) / across) - 8, 26), 124) + 8;
  return [box.x + 30 + (seat + 0.5) * pitch, box.y + (layers - 1 - layer + 0.5) * pitch];
};

// --- opened: there is an answer, and nothing was asked for it ----------------------------------------------------------
{
  for (let i = 0; i < 100 && !(await (await fetch(origin)).text()).includes('"answer":"'); ++i) await new Promise((done) => setTimeout(done, 100));
  const page = await watchedPage("first sight", { from });
  await page.route("**/page/**", () => {});  // no answer to anything
  const response = await page.goto(`${origin}/`);
  await page.waitForSelector(".written-line .answer");
  for (const selector of ["#ladder", "#wall", "#story", ".next-bars .bar", ".ask-tokens .chip"]) check(await page.locator(selector).count() > 0, `${selector} is there before the server was asked`);
  const report = await reportOf(page), told = report.tokens[report.story.token].text;
  check(/\p{L}/u.test(told), `the first story is of a word: ${told}`);
  const bytes = await response.body(), packed = gzipSync(bytes).length;
  check(bytes.length < 600000 && packed < 250000, `the page has ${bytes.length} bytes, ${packed} packed`);
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(`first paint after ${Math.round(paint)} ms, with the answer; ${bytes.length} bytes, ${packed} packed`);
  await page.close();
}

part("walk");
// --- a person types, looks, cuts ----------------------------------------------------------------------------------------
const page = await open();
{
  await read(page, "one two three one two");
  const report = await reportOf(page);
  equal(await page.locator(".ask-tokens .chip").count(), report.tokens.length, "a chip for every token");
  check(await inkOf(page, ".ladder canvas") > 20, "the ladder is drawn");
  const written = await asked(origin, "/page/write", { text: "one two three one two", max_tokens: 24 });
  await page.waitForFunction((wanted) => document.querySelector(".written-line .answer")?.textContent === wanted, written.sentence || written.text).catch(() => {});
  equal(await page.locator(".written-line .answer").textContent(), written.sentence || written.text, "the answer is the model's");

  // One selected token: chips, ladder, wall and story follow one another.
  await page.locator(".ask-tokens .chip").nth(2).click();
  const name = await page.evaluate(() => document.querySelectorAll(".ask-tokens .chip")[2].textContent);
  await page.waitForFunction((name) => document.querySelector("#story-title").textContent.includes(name), name);
  check((await page.locator(".ladder-detail .detail-head").textContent()).includes(name), "the ladder shows the token");
  equal(await page.locator(".map-panel .strip .asking").textContent(), name, "the map shows the token");

  // Roles: the same rule as everywhere (server's /page/roles).
  await page.waitForFunction(() => qkv.report().heads.every((head) => head.roles), null, { timeout: 60000 });
  const roles = await asked(origin, "/page/roles", {});
  equal(roles.state, "ready", "roles are measured");
  for (const head of roles.heads) {
    const shown = (await reportOf(page)).heads.find((one) => one.name === head.name);
    equal(shown.roles[0]?.name, head.roles[0]?.name, `the role of ${head.name}`);
  }
  part("roles");

  // Lock a head, cut it with c.
  await page.waitForFunction(() => document.documentElement.classList.contains("thumbs-ready"));
  await page.mouse.click(...await headPlace(page, 1, 2));
  equal(await page.locator(".map-name b").textContent(), "L1H2", "the head that was clicked");
  await page.keyboard.press("Escape");
  equal(await page.locator(".map-panel.is-locked").count(), 0, "Esc lets go");
  await page.mouse.click(...await headPlace(page, 1, 2));
  await page.waitForFunction(() => location.hash.includes("head=L1H2"));
  await page.keyboard.press("c");
  await page.waitForSelector(".cut-above .cut-cost b");
  equal(await page.locator(".cut-switch").getAttribute("aria-checked"), "true", "the switch says it is cut");
  const cut = await asked(origin, "/page/cut", { text: "one two three one two", cut: ["L1H2"], max_tokens: 24 });
  check(cut.changed, "cutting this head changes the answer of this model");
  const kept = await page.evaluate(async () => {
    qkv.report.set({ ...qkv.report.peek() });
    await new Promise((done) => setTimeout(done));
    return document.querySelector(".answer-box .texts") !== null;
  });
  check(kept, "a report that says the same leaves the answer of the cut");
  const parts = await page.evaluate(() => { const texts = document.querySelector(".answer-box .texts"), of = (tag) => texts.querySelector(tag)?.textContent ?? ""; return { start: texts.firstChild.textContent, del: of("del"), ins: of("ins") }; });
  equal(parts.start + parts.del, cut.before, "the old answer, struck through");
  equal(parts.start + parts.ins, cut.after, "the new answer");
  equal(await page.locator(".cut-above .cut-cost b").textContent(), (cut.delta > 0 ? "+" : "") + cut.delta.toFixed(3).replace("-", "−"), "the change of the loss");
  await page.locator(".answer-box .small-button").click();
  await page.waitForFunction(() => document.querySelector(".written-line .answer") && !qkv.report().cut);
}

// --- sampling moves the bars ------------------------------------------------------------------------------------------
{
  const next = (await reportOf(page)).next, slide = (name, value) => page.locator(`.ask-side [data-sampling=${name}]`).fill(String(value));
  const bars = async () => (await page.locator(".next-bars .bar:not(.rest) .bar-value").allTextContents()).map((text) => (text.startsWith("<") ? 0 : parseFloat(text) / 100));
  await page.locator(".ask-side summary").click();
  await slide("temperature", 0.5);
  await page.waitForFunction(() => location.hash.includes("temperature=0.5"));
  const weights = next.candidates.map((one) => Math.exp((one.logit - next.candidates[0].logit) / 0.5)), sum = weights.reduce((a, b) => a + b, 0);
  const cold = await bars();
  cold.forEach((share, i) => near(share, weights[i] / sum, 0.012, `bar ${i} at temperature 0.5`));
  await slide("topK", 2);
  await settle(page);
  const two = await bars();
  near(two[0], weights[0] / (weights[0] + weights[1]), 0.006, "top-k 2, first");
  equal(two[2], 0, "top-k 2, third");
  await slide("topK", 0);
  await slide("topP", 0.05);
  await settle(page);
  equal((await bars())[0], 1, "top-p 0.05 leaves one");
  await slide("topP", 1);
  await slide("temperature", 0);
}

// A link that is followed just as the page is about to write its own address: the link wins.
{
  const stands = (stage) => page.waitForFunction((stage) => document.querySelector(".track .now button")?.dataset.stage === stage, stage, { timeout: 15000 });
  for (const stage of ["norm", "v"]) {
    await page.evaluate((stage) => { location.hash = `#/story?stage=${stage}&token=2`; }, stage);
    await stands(stage);
  }
  await page.evaluate(() => new Promise((done) => {
    const later = setTimeout, due = [];
    window.setTimeout = (task, delay) => (delay === 150 ? due.push(task) : later(task, delay));
    addEventListener("hashchange", () => later(() => {
      window.setTimeout = later;
      location.hash = "#/story?token=2&stage=k";
      for (const task of due) task();  // before the page has heard of it
      done();
    }, 50), { once: true });
    location.hash = "#/story?stage=q&token=2";
  }));
  await stands("k").catch(() => check(false, "a link that is followed while the page writes its address is not lost"));
}

// --- by words: the sum over a word that is looked at, the mean over one that looks ----------------------------------------
{
  const text = "one two three one two", there = await open(`#/look?text=${encodeURIComponent(text)}&by=words&head=L1H2`);
  await there.waitForFunction((text) => qkv.report().title === text && qkv.report().heads[0].top, text);
  const { tokens } = await reportOf(there), spans = [];
  tokens.forEach((token, i) => { if (i === 0 || /^\s/.test(token.text)) spans.push([i, i + 1]); else spans.at(-1)[1] = i + 1; });
  check(spans.length === 5 && tokens.length > 5, `a text of ${spans.length} words and ${tokens.length} tokens`);
  await there.waitForFunction(() => document.querySelectorAll(".map-panel .strip .chip").length === 5);
  const answer = await fetch(`${origin}/page/tile`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text, head: "L1H2" }) });
  const cells = new Float32Array(await answer.arrayBuffer(), 32), [from, to] = spans.at(-1), key = spans[1];
  let sum = 0;
  for (let i = from; i < to; ++i) for (let j = key[0]; j < key[1]; ++j) sum += cells[i * tokens.length + j] / (to - from);
  await there.evaluate(() => qkv.store.token.set(qkv.report().tokens.length - 1));
  await there.locator(".bigmap").focus();
  await there.keyboard.press("ArrowRight");
  await there.waitForFunction(() => /%/.test(document.querySelector(".reading").textContent));
  const said = /“(.*)” looks at “(.*)”: <?([\d.]+) %/.exec(await there.locator(".reading").textContent());
  equal(`${said?.[1]} ${said?.[2]}`, "two two", "the words that are read");
  near(Number(said?.[3]) / 100, sum, 0.012, "what one word gives another");
  await there.locator(".by-words input").uncheck();
  await there.waitForFunction((n) => document.querySelectorAll(".map-panel .strip .chip").length === n, tokens.length);
  await there.close();
}

part("a number to its formula");
await formulaHolds(page, origin);

// --- keys, the tour ------------------------------------------------------------------------------------------------------
{
  await page.evaluate(() => { location.hash = "#/"; });
  await page.waitForSelector(".wall canvas");
  await page.evaluate(() => document.activeElement?.blur());
  await page.locator(".wall").scrollIntoViewIfNeeded();
  await page.keyboard.press("ArrowRight");
  const before = await page.locator(".map-name b").textContent();
  await page.keyboard.press("ArrowLeft");
  check(before !== await page.locator(".map-name b").textContent(), "arrows move over the heads");
  await page.keyboard.press("/");
  await page.waitForFunction(() => document.activeElement?.id === "text");
  await page.evaluate(() => document.activeElement.blur());
  await page.locator("#story").scrollIntoViewIfNeeded();
  await settle(page);
  const now = () => page.locator("#story .track .now").textContent();
  const first = await now();
  for (let i = 0; i < 3 && (await now()) === first; ++i) { await page.keyboard.press("Space"); await page.waitForTimeout(400); }
  check((await now()) !== first, "space is the next step of the story");
  const texts = [];
  await page.locator("#story [data-depth=explain]").click();
  for (let i = 0; i < 6; ++i) { texts.push(await page.locator("#story .explain").textContent()); await page.locator("#story .step-button.main").click(); await settle(page); }
  equal(new Set(texts).size, texts.length, "every step has its own explanation");
  await page.keyboard.press("?");
  await page.waitForSelector(".keys-note");
  await page.keyboard.press("Escape");
  for (const lang of ["en", "zh"]) {
    if (lang === "zh") await page.locator(".language").click();
    await page.locator(".tour-button").click();
    const seen = [];
    for (let i = 0; i < 10; ++i) {
      const step = await page.locator(".tour").getAttribute("data-step"), text = await page.locator(".tour").textContent();
      seen.push(step);
      check(!/undefined|NaN|“\?”|“”/.test(text), `the tour says ${text}`);
      await page.waitForSelector(".tour-target", { timeout: 5000 }).catch(() => check(false, `nothing is lit at ${step}`));
      if (i < 9) await page.locator("[data-tour=next]").click();
    }
    equal(seen.join(), "tokens,vector,qkv,match,heads,output,ladder,next,cut,thoughts", "the line of the tour");
    await page.keyboard.press("Escape");
    equal(await page.locator(".tour").count(), 0, "Esc ends the tour");
  }
  equal(await page.evaluate(() => document.documentElement.lang), "zh-Hans", "the language of the page");
  equal(await page.locator("h1").textContent(), "它在想什么？", "Chinese");
  await page.locator(".language").click();
}

part("addresses and files");
// --- an address holds the state; what is seen can be saved --------------------------------------------------------------
{
  const there = await open("#/look?lang=zh&theme=dark&text=one%20two%20three&token=1&layer=0&head=L0H3&cut=L0H3&temperature=0.7");
  await there.waitForFunction(() => qkv.report().title === "one two three" && qkv.report().cut?.join() === "L0H3");
  equal(await there.evaluate(() => document.documentElement.dataset.theme), "dark", "the theme of an address");
  equal(await there.locator("h1").textContent(), "它在想什么？", "the language of an address");
  equal(await there.locator(".map-name b").textContent(), "L0H3", "the head of an address");
  equal(await there.locator(".ask-tokens .chip.chosen").getAttribute("data-token"), "1", "the token of an address");
  equal(await there.locator(".cut-switch").getAttribute("aria-checked"), "true", "the cut of an address");
  equal(await there.locator(".failure").count(), 0, "nothing is wrong with it");
  const link = await there.evaluate(() => location.hash);
  for (const said of ["lang=zh", "theme=dark", "text=one%20two%20three", "token=1", "head=L0H3", "cut=L0H3", "temperature=0.7"]) check(link.includes(said), `${said} stays in the address: ${link}`);
  for (const id of ["ladder", "wall", "story"]) {
    const save = (kind) => download(there, async () => { await there.locator(`#${id} .save summary`).click(); await there.locator(`#${id} [data-save=${kind}]`).click(); });
    const png = await save("png"), svg = await save("svg"), csv = await save("csv");
    equal(`${png.name} ${svg.name} ${csv.name}`, `qkv-${id}.png qkv-${id}.svg qkv-${id}.csv`, "names of the files");
    check(png.bytes.subarray(1, 4).toString() === "PNG" && png.bytes.readUInt32BE(16) > 1500, `${id}: a PNG of ${png.bytes.length} bytes`);
    const wrong = await there.evaluate((text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")?.textContent ?? "", svg.bytes.toString());
    equal(wrong, "", `${id}: the SVG can be read`);
    const word = (await reportOf(there)).tokens[1].text.trim();
    check(svg.bytes.toString().replace(/<text[^>]*>\s*/g, "<text>").includes(`<text>${word}`), `${id}: the SVG has “${word}” as text`);
    check(!/style=|<script|foreignObject/.test(svg.bytes.toString()), `${id}: the SVG is plain`);
    check(csv.bytes.toString().split("\r\n").length > 3, `${id}: the CSV has rows`);
    if (shots) { const { writeFileSync } = await import("node:fs"); writeFileSync(path.join(shots, `saved-${id}.png`), png.bytes); writeFileSync(path.join(shots, `saved-${id}.svg`), svg.bytes); }
  }
  await there.close();
}
await page.close();

part("bad input");
await faults({ program, folder, models, origin, open, read });

part("every view, both languages, light and dark, narrow and wide");
async function seen(width, scheme, locale) {
  const english = locale === "en-US", name = `${width}-${scheme}-${english ? "en" : "zh"}`, view = await open("", { width, scheme, locale, motion: "reduce" });
  for (const { name: which, address, ready, prepare, walk } of views) {
    await view.goto(`${origin}/#/${address}`);
    await prepare?.(view);
    await view.waitForSelector(ready, { timeout: 20000 }).catch(() => check(false, `${which} ${name}: there is no ${ready}`));
    await settle(view);
    if (name === "1400-light-en") await walk?.(view, { origin });
    const wide = await view.evaluate(() => (document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("main *")].filter((node) => node.getBoundingClientRect().right > innerWidth).slice(0, 8).map((node) => `${node.tagName}.${node.className}`).join(", ") || "something"));
    equal(wide, "", `${which} ${name}: what is too wide`);
    if (name === "1400-light-en" || name === "390-dark-zh") await accessible(view, `${which} ${name}`);
    await shoot(view, `${which}-${name}`);
    if (prepare) await view.goto("about:blank");  // what was prepared is in no address
  }
  await view.close();
}
// Two at a time: a browser draws in a process of its own.
for (const locale of ["en-US", "zh-CN"]) for (const scheme of ["light", "dark"]) await Promise.all([seen(1400, scheme, locale), seen(390, scheme, locale)]);
part("done");
await server.stop();
await finish();
