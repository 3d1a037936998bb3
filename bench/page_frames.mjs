// page_frames.mjs BASE TOKENS: frames per second of moving and zooming the large map of one head of a long text, on the
// page of a running server (qkv serve MODEL), in Chromium without a GPU. `npm ci` in tests/web first.
import { createRequire } from "node:module";
import path from "node:path";

const { chromium } = createRequire(path.join(import.meta.dirname, "../tests/web/x.js"))("playwright-core");
const [base, wanted = "4096"] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
page.on("pageerror", (error) => console.log(error.stack));
page.setDefaultTimeout(600000);

// As many tokens as wanted: the server says how many a text has when it has too many.
const words = "the clock cake duck Anna Tom said one two three river bridge kite park sun moon cat".split(" ");
let seed = 1;
const draw = () => { seed = (seed * 1103515245 + 12345) % 2147483648; return words[seed % words.length]; };
const long = Array.from({ length: Number(wanted) * 2 }, draw).join(" ");
const said = await (await fetch(`${base}/page/tile`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text: long, head: "L0H0" }) })).json();
const text = long.slice(0, Math.floor((long.length * Number(wanted)) / (said.error?.tokens ?? Number(wanted)) * 0.99));

const start = Date.now();
await page.goto(`${base}/page#/look?text=${encodeURIComponent(text)}`);
await page.waitForFunction((n) => (qkv.report().tokens ?? []).length > 0.9 * n, Number(wanted));
await page.waitForSelector(".longmap canvas");
await page.waitForFunction(() => document.documentElement.classList.contains("thumbs-ready"));
const tokens = await page.evaluate(() => qkv.report().tokens.length), heads = await page.evaluate(() => qkv.report().heads.length);
console.log(`${tokens} tokens, ${heads} heads: the wall stands after ${((Date.now() - start) / 1000).toFixed(1)} s`);
await page.locator(".longmap").scrollIntoViewIfNeeded();
await page.waitForTimeout(3000);

// One event in every frame, as a hand that never rests.
const measure = (name, frames) => page.evaluate(async ([name, frames]) => {
  const holder = document.querySelector(".longmap"), box = holder.getBoundingClientRect(), times = [];
  const at = (x, y) => ({ clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true, buttons: 1, pointerId: 1 });
  let x = 300, y = 300;
  if (name === "move") holder.dispatchEvent(new PointerEvent("pointerdown", at(x, y)));
  for (let i = 0; i < frames; ++i) {
    if (name === "zoom") holder.dispatchEvent(new WheelEvent("wheel", { ...at(200, 260), deltaY: i < frames / 2 ? -18 : 18, ctrlKey: true }));
    else holder.dispatchEvent(new PointerEvent("pointermove", at((x -= i < frames / 2 ? 3 : -3), (y -= i < frames / 2 ? 3 : -3))));
    await new Promise((done) => requestAnimationFrame((t) => { times.push(t); done(); }));
  }
  if (name === "move") holder.dispatchEvent(new PointerEvent("pointerup", at(x, y)));
  const gaps = times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b);
  return { mean: (1000 * gaps.length) / (times.at(-1) - times[0]), slowest: gaps[Math.floor(gaps.length * 0.95)] };
}, [name, frames]);
// What the page's thread worked, not what it waited for: other work on the machine does not count.
const cdp = await page.context().newCDPSession(page);
await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
const worked = async () => (await cdp.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value;
for (const name of ["zoom", "move", "zoom"]) {
  if (name === "move") for (let i = 0; i < 4; ++i) await page.locator(".map-tools button").first().click();
  const before = await worked(), { mean, slowest } = await measure(name, 240), each = (1000 * (await worked() - before)) / 240;
  console.log(`${name}: ${mean.toFixed(1)} frames/s; 95 % of the frames within ${slowest.toFixed(0)} ms; the page's thread works ${each.toFixed(1)} ms a frame`);
}
const wall = await page.evaluate(async () => {
  const times = [];
  for (let i = 0; i < 120; ++i) { scrollBy(0, i < 60 ? 12 : -12); await new Promise((done) => requestAnimationFrame((t) => { times.push(t); done(); })); }
  return (1000 * (times.length - 1)) / (times.at(-1) - times[0]);
});
console.log(`scrolling the page: ${wall.toFixed(1)} frames/s`);
await browser.close();
