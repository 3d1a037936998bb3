// What the browser tests share: checks that count, a Chromium that is watched, a server to ask, files that are saved.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");
const axeSource = () => readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

let passed = 0, failed = 0;
export function check(good, what) {
  good ? ++passed : ++failed;
  if (!good) console.log(`not so: ${what}`);
}
export const equal = (got, wanted, what) => check(got === wanted, `${what}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);
export const near = (got, wanted, far, what) => check(Math.abs(got - wanted) <= far, `${what}: ${got}, not ${wanted}`);

// What was started here ends with us, however that happens: Playwright ends the browser, we the servers, each by its pid. A
// test that throws, a rejected promise and process.exit all come by "exit"; signals are sent there.
const servers = new Set();
process.on("exit", () => { for (const server of servers) server.kill(); });
for (const [signal, code] of [["SIGHUP", 129], ["SIGINT", 130], ["SIGTERM", 143]]) process.once(signal, () => process.exit(code));

// Playwright gives it a new, empty profile. Root has no sandbox in a container.
const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, headless: true, handleSIGHUP: false, handleSIGINT: false, handleSIGTERM: false, args: process.getuid() === 0 ? ["--no-sandbox", ...quiet] : quiet });
export async function finish() {
  await browser.close();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

// A page that is watched: nothing may go wrong in it, nothing may leave it. allow(text): what the console may say.
export async function watchedPage(name, { width = 1400, scheme = "light", locale = "en-US", motion = "no-preference", from = /^(file|data|blob):/, allow = () => false } = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme, locale, reducedMotion: motion, acceptDownloads: true });
  page.on("console", (message) => check(!["error", "warning"].includes(message.type()) || allow(message.text()), `${name}: the console says ${message.text()}`));
  page.on("pageerror", (error) => check(false, `${name}: ${error.stack}`));
  page.on("request", (request) => check(from.test(request.url()), `${name} asks for ${request.url()}`));
  return page;
}
export const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
export const inkOf = (page, selector) => page.$eval(selector, (canvas) => {  // how many colours it shows
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return new Set(new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
});
export function shooter(folder) {
  if (folder) mkdirSync(folder, { recursive: true });
  return async (page, name) => { if (folder) await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true }); };
}

// No serious finding of axe-core.
export async function accessible(page, what) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(`(() => { const module = undefined, exports = undefined; ${axeSource()} })()`);
  const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
    .filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => `${one.id} (${one.nodes.length}): ${one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any[0]?.message ?? ""}`).join("; ")}`));
  check(found.length === 0, `${what}: axe-core finds ${found.join(" | ")}`);
}

export async function download(page, action) {
  const [saved] = await Promise.all([page.waitForEvent("download"), action()]);
  return { name: saved.suggestedFilename(), bytes: readFileSync(await saved.path()) };
}

// qkv serve as a process of its own, on 127.0.0.1.
export function serve(program, models, { port = 0, more = [], environment = {} } = {}) {
  return new Promise((done, failed) => {
    const child = spawn(program, ["serve", ...models, "--port", String(port), "--threads", "1", ...more], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...environment } });
    servers.add(child);
    let said = "", printed = "";
    const server = { port: 0, child, stop: () => new Promise((ended) => { child.once("exit", ended); child.kill("SIGTERM"); }) };
    child.stdout.on("data", (text) => { printed += text; });
    child.stderr.on("data", (text) => {
      said += text;
      const found = /listening on \S+:(\d+)/.exec(printed);
      if (found && said.includes("ready:")) { server.port = Number(found[1]); done(server); }
    });
    child.once("exit", () => { servers.delete(child); failed(new Error(`the server ended: ${said}`)); });
  });
}
export const asked = async (origin, route, body) => (await fetch(`${origin}${route}`, body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();
