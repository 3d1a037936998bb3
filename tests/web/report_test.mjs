// report_test.mjs FOLDER [SHOTS]: opens FOLDER's demo.html, translate.html, large.html, long.html, patch.html and labs.html as a person would, and looks.
import { readFileSync } from "node:fs";
import path from "node:path";
import { check, equal, finish, inkOf, settle, shooter, watchedPage } from "./browser.mjs";

const [folder, shots] = process.argv.slice(2);
const shoot = shooter(shots);

async function open(name, { width, scheme = "light", motion = "no-preference", walls = true }) {
  const page = await watchedPage(name, { width, scheme, motion });
  await page.addInitScript(() => {  // what canvases show as text
    window.drawnTexts = new Set();
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { drawnTexts.add(String(text)); return fillText.call(this, text, ...rest); };
  });
  await page.goto(`file://${path.resolve(folder, name)}.html`);
  if (walls) await page.waitForFunction(() => document.documentElement.classList.contains("thumbs-ready"), null, { timeout: 60000 });
  else await settle(page);
  return page;
}

// Where a head's thumbnail is on the screen: the page's own geometry must agree with what the pointer finds there.
async function overHead(page, layer, seat, layers, across) {
  await page.locator(".wall").first().scrollIntoViewIfNeeded();
  const box = await page.locator(".wall canvas").first().boundingBox();
  const pitch = Math.min(Math.max(Math.floor((box.width - 30) / across) - 8, 26), 124) + 8;
  return [box.x + 30 + (seat + 0.5) * pitch, box.y + (layers - 1 - layer + 0.5) * pitch];
}

// All texts on the page: those of elements, and those drawn on canvases.
const shownTexts = (page) => page.evaluate(async () => {
  drawnTexts.clear();
  qkv.repaintAll();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const texts = [...drawnTexts], walk = document.createTreeWalker(document.getElementById("page"), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) texts.push(walk.currentNode.textContent);
  for (const node of document.querySelectorAll("[aria-label]")) texts.push(node.getAttribute("aria-label"));
  return texts;
});

// English words the page itself says, not the report's texts, formulas or names.
async function leftInEnglish(page) {
  const data = await page.evaluate(() => { const report = qkv.report(), list = (x) => x ?? []; return JSON.stringify([report.tokens, report.source, report.ladder?.guesses, report.patch, report.written, report.built_in, list(report.cuts).map((cut) => [cut.before, cut.after]), report.movie && [report.movie.samples, report.movie.embedding.tokens], report.model, report.made_with, report.story]); });
  const allowed = [...new Set(data.match(/[A-Za-z]{3,}/g)), "qkv", "CSV", "PNG", "SVG", "softmax", "norm", "logit", "Esc", "English"];
  const words = (text) => text.match(/[A-Za-z]{3,}/g) || [];  // a canvas may cut a word short
  return (await shownTexts(page)).filter((text) => words(text).some((word) => !allowed.some((one) => one.startsWith(word))));
}

// --- the words ---------------------------------------------------------------------------------------------------------
{
  const page = await open("demo", { width: 1000 });
  const paths = (lang) => page.evaluate((lang) => {
    const all = [];
    const walk = (value, path) => (typeof value === "object" ? Object.entries(value).forEach(([key, inner]) => walk(inner, `${path}.${key}`)) : all.push(`${path}:${typeof value}`));
    walk(qkv.words[lang], "");
    return all.sort();
  }, lang);
  equal((await paths("zh")).join("\n"), (await paths("en")).join("\n"), "both languages have the same words");
  // Keys that the program sends.
  const source = (file) => readFileSync(new URL(`../../src/inspect/${file}`, import.meta.url), "utf8");
  const keysIn = (text, pattern) => [...text.matchAll(pattern)].map((found) => found[1]).sort();
  const roles = keysIn(source("heads/role_rules.cpp"), /^ {4}\{"([^"]+)", Measure::/gm);
  const reasons = keysIn(source("watch/phases.cpp"), /^ {4}\{"([a-z_]+)",/gm);
  check(roles.length > 10 && reasons.length > 5, `${roles.length} roles and ${reasons.length} reasons in the sources`);
  const known = await page.evaluate(() => ({ roles: Object.keys(qkv.words.en.roles), reasons: Object.keys(qkv.words.en.reasons).sort() }));
  for (const role of roles) check(known.roles.includes(role), `the role ${role} has words`);
  equal(known.reasons.join(), reasons.join(), "every reason of a phase has words");
  await page.close();
}

// --- patching -----------------------------------------------------------------------------------------------------------
{
  const page = await open("patch", { width: 1400, walls: false });
  equal(await page.locator("section#patch").count(), 1, "#patch");
  equal(await page.locator(".patch-map canvas").count(), 4, "a map for each kind of site");
  check(await inkOf(page, ".patch-map canvas") > 20, "the maps are drawn");
  check((await shownTexts(page)).includes("0.88"), "what comes back stands in its cell");
  equal(await page.locator(".patch-text.clean b").textContent(), "明", "the word that was changed");
  check((await page.locator(".patch").textContent()).includes("+3.250 after the clean text, −1.500 after the corrupt one"), "both differences");
  await page.locator("#patch [data-depth=explain]").click();
  check((await page.locator("#patch .explain").textContent()).includes("r = 0.875"), "the strongest site, worked out");
  await page.locator("#patch [data-depth=numbers]").click();
  equal(await page.locator("#patch tbody tr").count(), 3 * 7 * 3 + 11, "every number; a head that is not there has none");
  await shoot(page, "patch-1400-light");
  await page.locator(".language").click();
  equal((await leftInEnglish(page)).join("|"), "", "patching in Chinese");
  await page.close();
}

// --- labs in a file -----------------------------------------------------------------------------------------------------
{
  const page = await open("labs", { width: 1000, walls: false });
  equal(await page.locator(".lab").count(), 1, "one lab");
  equal(await page.locator(".lab header .verdict").textContent(), "partly seen", "its verdict");
  equal((await page.locator(".lab-parts .verdict").allTextContents()).join(), "seen,partly seen,seen,skipped", "the verdict of each part");
  equal(await page.locator(".rule").count(), 7, "every rule");
  check((await page.locator(".rule").last().textContent()).includes("skipped"), "a rule that was skipped says so");
  check(!(await page.locator(".lab").textContent()).includes("Run it"), "nothing can be started in a file");
  await page.locator(".lab summary").click();
  await page.waitForSelector(".lab .panel canvas");
  await settle(page);
  check(await inkOf(page, ".lab .panel canvas") > 20, "curves are drawn");
  await shoot(page, "labs-1000-light");
  await page.locator(".language").click();
  check((await page.locator(".lab-parts").textContent()).includes("梯度随之消失"), "parts in Chinese");
  await page.close();
}

// --- every part of a demo, wide ---------------------------------------------------------------------------------------
{
  const page = await open("demo", { width: 1400 });
  for (const id of ["written", "tokens", "ladder", "wall", "cuts", "story", "movie"]) equal(await page.locator(`section#${id}`).count(), 1, `#${id}`);
  equal(await page.title(), "A model trained in minutes · qkv", "title");
  for (const selector of [".ladder canvas", ".wall canvas", ".bigmap canvas", ".panel canvas"]) check(await inkOf(page, selector) > 20, `${selector} is drawn`);
  await shoot(page, "demo-1400-light");

  // Text that is HTML stays text; Chinese and emoji are whole.
  const ships = await page.locator("#builtin").textContent();
  for (const said of ["world", "Anna went to the sea . She saw <b>ships</b> .", "L2H0", "0.57"]) check(ships.includes(said), `the built-in model: ${said}`);
  check((await page.locator("#written").textContent()).includes("</script> 小明笑了。"), "</script> and Chinese in what was written");
  check(!(await page.content()).includes("\ufffd"), "no replacement characters");
  equal(await page.locator("#tokens .chip").count(), 25, "chips");
  equal(await page.locator("#tokens .chip.continues").count(), 2, "pieces of the fox");
  equal(await page.locator("#tokens .glyph").textContent(), "🦊", "the fox is one glyph");

  // The ladder: hover shows five guesses, arrows walk.
  await page.locator("#ladder").scrollIntoViewIfNeeded();
  const ladder = await page.locator(".ladder canvas").boundingBox();
  await page.mouse.move(ladder.x + 400, ladder.y + 45);
  equal(await page.locator("#tip .bar").count(), 5, "guesses in the ladder's tip");
  check(/entropy.*nats/.test(await page.locator("#tip").textContent()), "entropy in the ladder's tip");
  await page.mouse.move(5, 5);
  await page.locator(".ladder").focus();
  const head = () => page.locator(".ladder-detail .detail-head").textContent();
  check((await head()).startsWith("after “red”output"), `the ladder begins at the last token: ${await head()}`);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowDown");
  check((await head()).startsWith("after “the”layer 3"), `arrows walk the ladder: ${await head()}`);

  // The wall: hover shows, click locks, arrows move, Esc lets go.
  const name = () => page.locator(".map-name b").textContent();
  await page.mouse.move(...await overHead(page, 2, 0, 4, 4));
  equal(await name(), "L2H0", "hover shows the head");
  await page.mouse.move(...await overHead(page, 0, 0, 4, 4));
  equal(await name(), "L0H0", "hover shows another head");
  await page.mouse.down();
  await page.mouse.up();
  equal(await page.locator(".map-panel.is-locked").count(), 1, "click locks");
  await page.mouse.move(...await overHead(page, 3, 3, 4, 4));
  equal(await name(), "L0H0", "a locked head stays");
  await page.waitForFunction(() => ["layer=0", "head=L0H0"].every((part) => location.hash.split(/[?&]/).includes(part)));  // a locked head has an address
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowRight");
  equal(await name(), "L1H1", "arrows move over layer and head");
  equal(await page.locator("#wall .role-tag").textContent(), "previous token", "its role");
  await page.keyboard.press("ArrowRight");
  equal(await page.locator("#wall .role-tag").textContent(), "no role found", "a head without a role");
  await page.keyboard.press("ArrowLeft");

  // The large map: row and column light up, and say the weight that the report has.
  const report = await page.evaluate(() => JSON.parse(document.getElementById("report").textContent));
  const previous = report.heads.find((one) => one.name === "L1H1");
  const cell = await page.evaluate(() => {
    document.querySelector(".bigmap").scrollIntoView({ block: "center", behavior: "instant" });
    const box = document.querySelector(".bigmap canvas").getBoundingClientRect(), width = box.width, left = Math.min(Math.max(width * 0.17, 48), 84);
    return { left: box.left + left, top: box.top + 64, size: Math.min((width - left - 6) / 25, Math.max(440, width * 0.6) / 25, 40) };
  });
  await page.mouse.move(cell.left + 9.5 * cell.size, cell.top + 10.5 * cell.size);  // row 10 "ball", column 9 "red"
  const weight = Math.round(previous.top[10].find(([key]) => key === 9)[1] * 100);
  equal(await page.locator(".reading").textContent(), `“ball” looks at “red”: ${weight} %`, "the weight under the pointer");
  equal(await page.locator(".map-panel .strip .asking").textContent(), "ball", "the asking token");
  equal(await page.locator(".map-panel .strip .answering").textContent(), "red", "the answering token");
  const depths = await page.$$eval(".map-panel .strip .chip", (chips) => chips.map((chip) => Number(chip.style.getPropertyValue("--p"))));
  equal(depths.indexOf(Math.max(...depths)), 9, "the deepest chip is the one looked at most");
  await page.locator(".wall").first().focus();
  await page.keyboard.press("Escape");
  equal(await page.locator(".map-panel.is-locked").count(), 0, "Esc lets go");

  // The legend filters; the first column comes back.
  const before = await inkOf(page, ".wall canvas");
  await page.locator(".wall-tools .role[data-role=induction]").click();
  equal(await page.locator(".wall-tools .role[aria-pressed=true]").count(), 1, "one role chosen");
  await settle(page);
  check(await inkOf(page, ".wall canvas") !== before, "filtering changes the wall");
  await page.locator(".wall-tools .role[data-role=induction]").click();

  // Depths: explain has this example's numbers, numbers has a table.
  await page.locator("#wall [data-depth=explain]").click();
  check(/the shares add up to 100 %/.test(await page.locator("#wall .explain").textContent()), "the shares are explained");
  check(/= 100 %/.test(await page.locator("#wall .explain").textContent()), "the row's shares make 100 %");
  const most = Array.from({ length: 25 }, (_, i) => Math.log(i + 1)).reduce((a, b) => a + b) / 25;
  check((await page.locator("#wall .explain").textContent()).includes(`${previous.entropy.toFixed(2)} nats: 0 is one token at a time, ${most.toFixed(2)} is all`), "its entropy, and the most it can be");
  await page.locator("#ladder [data-depth=numbers]").click();
  equal(await page.locator("#ladder tbody tr").count(), report.ladder.layers.length, "a row for every layer");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.locator("#ladder .plain").click()]);
  equal(saved.suggestedFilename(), "qkv-ladder.csv", "the table can be saved");

  // The story: space and arrows.
  await page.locator(".story").focus();
  const stop = () => page.locator(".track [aria-current=step]").getAttribute("data-stop");
  equal(await stop(), "in", "the story begins");
  await page.keyboard.press(" ");
  const cells = await page.$$eval(".vector span", (spans) => spans.map((span) => [span.textContent, span.scrollWidth - span.clientWidth]));
  check(cells.length && cells.every(([, over]) => over <= 0), `numbers of q stay in their cells: ${cells.filter(([, over]) => over > 0)}`);
  equal(cells.slice(0, 3).map(([text]) => text).join(" "), "−0.03 −123 56.8", "numbers of q are short");
  await page.keyboard.press("ArrowRight");
  equal(await stop(), "k", "space and the arrow go on");
  check((await page.locator(".story-body .match").count()) >= 16, "matches of every head");
  await page.keyboard.press("ArrowLeft");
  equal(await stop(), "q", "and back");
  for (let i = 0; i < 7; ++i) await page.keyboard.press(" ");
  equal(await stop(), "in", "on to the next layer");
  equal(await page.locator(".rung[aria-pressed=true] .rung-name").textContent(), "layer 2", "from the layer of the head that was chosen to the next");
  await page.locator(".track [data-stop=k]").click();

  // Cuts.
  equal(await page.locator(".cut del").textContent(), "ball . Mia is happy .", "what it no longer writes is struck through");
  check(/\+0\.361.*\+0\.466.*n = 4096/.test(await page.locator(".cut.most .fine").textContent()), "the interval and its n");
  check(/is unchanged/.test(await page.locator(".cut.least").textContent()), "nothing changed without the least important head");

  // The movie: the slider moves everything, play plays.
  const sample = () => page.locator(".sample").textContent();
  check((await sample()).includes("小明也喜欢🦊。"), "the last sample");
  await page.locator(".transport input").focus();
  await page.keyboard.press("ArrowLeft");
  check(/snapshot 29 of 30/.test(await page.locator(".readout").textContent()), "one snapshot back");
  await page.evaluate(() => { const slider = document.querySelector(".transport input"); slider.value = 0; slider.dispatchEvent(new Event("input")); });
  equal(await sample(), report.movie.samples[0].text, "the first sample");
  equal(await page.locator(".phases .past").count(), 0, "no phase at the start");
  equal(await page.locator(".phases small").last().textContent(), "the loss is still falling at the end: −1.02 nats per e-fold of steps, flat is under 0.10", "why there was no plateau");
  await page.locator(".play").click();
  await page.waitForFunction(() => qkv.store.step() > 1, null, { timeout: 20000 });
  await page.locator(".play").click();
  equal(await page.evaluate(() => qkv.playing()), false, "pause");
  await page.evaluate(() => { const slider = document.querySelector(".transport input"); slider.value = 20; slider.dispatchEvent(new Event("input")); });
  await settle(page);
  await shoot(page, "demo-1400-explained");

  // A score below what the program asks of a role is no role: grey, not the role's colour.
  await page.evaluate(() => { const slider = document.querySelector(".transport input"); slider.value = slider.max; slider.dispatchEvent(new Event("input")); });
  await settle(page);
  const chroma = (layer, seat) => page.$eval("canvas[aria-label='Heads and their roles']", (canvas, [layer, seat]) => {
    const ratio = canvas.width / canvas.clientWidth, w = (canvas.clientWidth - 30) / 4, h = Math.min(Math.max(Math.min(w, 75), 22), 64);
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const [r, g, b] = copy.getImageData((30 + seat * w + 12) * ratio, ((3 - layer) * h + 12) * ratio, 1, 1).data;
    return Math.max(r, g, b) - Math.min(r, g, b);
  }, [layer, seat]);
  check(await chroma(2, 0) > 60, `L2H0 has the colour of its role: ${await chroma(2, 0)}`);
  check(await chroma(0, 2) < 30, `L0H2 has none: ${await chroma(0, 2)}`);
  await page.evaluate(() => { const slider = document.querySelector(".transport input"); slider.value = 20; slider.dispatchEvent(new Event("input")); });

  // The other language.
  await page.locator(".language").click();
  equal(await page.locator("#wall h2").textContent(), "注意力头总览", "Chinese");
  equal(await page.getAttribute("html", "lang"), "zh-Hans", "the page's language");
  equal(await page.evaluate(() => qkv.store.step()), 20, "the movie stays where it was");
  for (const depth of ["see", "explain", "numbers"]) {
    for (const button of await page.locator(`[data-depth=${depth}]`).all()) await button.click();
    await settle(page);
    equal((await leftInEnglish(page)).join("|"), "", `English words left in the Chinese page (${depth})`);
  }
  for (let i = 0; i < 8; ++i) {
    await page.locator(".track button").nth(i).click();
    equal((await leftInEnglish(page)).join("|"), "", `English words left in the Chinese story, step ${i}`);
  }
  await shoot(page, "demo-1400-zh");
  check(!(await shownTexts(page)).some((text) => /\\x[0-9A-F]{2}|^#\d+$/.test(text)), "bytes and numbers of tokens are not shown as words");
  await page.locator(".language").click();
  equal(await page.locator("#wall h2").textContent(), "All attention heads", "and back");
  await page.close();
}

// --- no width is too small, day and night -----------------------------------------------------------------------------
for (const name of ["demo", "translate"]) {
  for (const [width, scheme] of [[390, "light"], [390, "dark"], [820, "light"], [1400, "dark"]]) {
    const page = await open(name, { width, scheme, motion: "reduce" });
    for (const depth of ["see", "explain", "numbers"]) {
      for (const button of await page.locator(`[data-depth=${depth}]`).all()) await button.click();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= width, `${name} at ${width}, ${depth}: ${wide} pixels wide`);
    }
    for (const button of await page.locator("[data-depth=see]").all()) await button.click();
    await settle(page);
    await shoot(page, `${name}-${width}-${scheme}`);
    await page.close();
  }
}

// --- encoder and decoder ----------------------------------------------------------------------------------------------
{
  const page = await open("translate", { width: 1200 });
  equal(await page.getAttribute("html", "lang"), "zh-Hans", "the report's language is the page's");
  equal(await page.locator(".wall").count(), 3, "encoder, decoder and cross-attention");
  equal((await leftInEnglish(page)).join("|"), "", "English words left in the Chinese page of a translation");
  check(/^X/.test(await page.locator(".map-name b").textContent()), "a translation begins at the cross-attention");
  equal(await page.locator(".map-panel .strip .chip").count(), 9, "which looks at the source");
  check(!(await page.content()).includes("\ufffd"), "no replacement characters");
  await page.close();
}

// --- 512 tokens, 144 heads --------------------------------------------------------------------------------------------
{
  const start = Date.now();
  const page = await open("large", { width: 1400 });
  const ready = Date.now() - start;
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  check(nodes < 5000, `${nodes} elements: cells must be pixels`);
  await page.locator("#wall").scrollIntoViewIfNeeded();
  const { moving, resting } = await page.evaluate(async () => {
    const wall = document.querySelector(".wall canvas"), box = wall.getBoundingClientRect(), moving = [], resting = [];
    for (let i = 0; i < 40; ++i) {
      const idle = performance.now();
      await new Promise(requestAnimationFrame);
      const begin = performance.now();
      resting.push(begin - idle);
      wall.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.left + 40 + ((box.width - 60) * i) / 40, clientY: box.top + ((box.height - 40) * i) / 40 }));
      await new Promise(requestAnimationFrame);
      moving.push(performance.now() - begin);
    }
    const middle = (times) => times.sort((a, b) => a - b)[20];
    return { moving: middle(moving), resting: middle(resting) };
  });
  console.log(`512 tokens, 144 heads: ready after ${ready} ms, a frame takes ${moving.toFixed(0)} ms moving over the wall, ${resting.toFixed(0)} at rest (medians)`);
  check(moving < 4 * resting + 40, "moving over the wall stays smooth");  // beside a frame at rest: the machine may be busy
  await shoot(page, "large-1400");
  await page.close();
}

// --- a text too long for maps: the largest weights of the rows that were kept -----------------------------------------
{
  const page = await open("long", { width: 1000 });
  equal(await page.locator(".reading").textContent(), "Where “ball” looks", "the last row");
  equal(await page.locator(".role-legend").count(), 0, "no roles, no legend");
  equal(await page.locator("#wall .role-tag").count(), 0, "what was not measured is not denied");
  check(await inkOf(page, ".bigmap canvas") > 3, "the large map is drawn");
  await page.locator(".bigmap").focus();
  await page.keyboard.press("ArrowRight");
  equal(await page.locator(".reading").textContent(), "“ball” looks at “fox”: 0.0 %", "what is not listed is nothing");
  await page.keyboard.press("ArrowLeft");
  equal(await page.locator(".reading").textContent(), "“ball” looks at “the”: 20 %", "what is listed is exact");
  await page.close();
}

await finish();
