// training_test.mjs ADDRESS PID [SHOTS]: trains a model and runs a lab from the page of the server PID, and looks.
// training_test.mjs --follow ADDRESS: looks at a training that is under way until it is done.
import { readdirSync, readFileSync } from "node:fs";
import { check, equal, finish, settle, shooter, watchedPage } from "./browser.mjs";

const [address, pid, shots] = process.argv.slice(2);
const shoot = shooter(shots);

// A refusal (4xx) is an answer; browsers log it.
async function open(url, { width = 1400, scheme = "light", locale = "en-GB" } = {}) {
  const page = await watchedPage(url, { width, scheme, locale, from: /^(http:\/\/127\.0\.0\.1:|data:|blob:)/, allow: (text) => / 4\d\d /.test(text) });
  await page.goto(url);
  return page;
}
const patient = { timeout: 300000 };  // a slow machine is not a failure
const stateIs = (page, door, state) => page.waitForSelector(`#${door} .job[data-state="${state}"]`, patient)
  .catch(async () => { throw new Error(`never ${state}: ${await page.textContent(`#${door} .job`)}`); });
const press = (page, does, within = "") => page.click(`${within} [data-do="${does}"]`, patient);
const stepOf = (page) => page.evaluate(async () => (await (await fetch("/page/jobs")).json()).training?.step ?? 0);
const canvasWith = (page, label) => page.waitForFunction((wanted) => [...document.querySelectorAll("#movie canvas")].some((canvas) => canvas.getAttribute("aria-label") === wanted && canvas.width > 0), label, patient);
const heads = (node) => Array.from(node.querySelectorAll("b"), (b) => b.textContent);

async function shootAll(hash, name, ready) {
  if (!shots) return;
  for (const [lang, locale] of [["en", "en-GB"], ["zh", "zh-CN"]]) {
    for (const scheme of ["light", "dark"]) {
      for (const width of [390, 1400]) {
        const page = await open(`${address}/page${hash}`, { width, scheme, locale });
        await page.waitForSelector(ready, patient);
        await page.waitForTimeout(400);
        check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} ${lang} ${width}: the page scrolls sideways`);
        await shoot(page, `${name}-${lang}-${scheme}-${width}`);
        await page.close();
      }
    }
  }
}

if (address === "--follow") {
  const page = await open(pid);
  await stateIs(page, "training", "running");
  await canvasWith(page, "Loss");
  await stateIs(page, "training", "finished");
  await finish();
}

// --- a training ---------------------------------------------------------------------------------------------------------

const page = await open(`${address}/page#/training?knobs=width:30`);
await page.waitForSelector('[data-knob="width"]');
await shootAll("#/training", "training-before", '[data-knob="width"]');
await press(page, "start");  // 4 heads do not fit into a width of 30
await page.waitForSelector("#training .failure.refused", patient);
check((await page.textContent("#training .failure")).includes("width"), "a width that cannot be is named");
await page.click("#training .failure button");
equal(await page.locator("#training .failure").count(), 0, "the note goes away");

await page.selectOption('[data-knob="width"] select', "32");
await page.selectOption('[data-knob="heads"] select', "2");
await page.selectOption('[data-knob="language"] select', "zh");
await page.fill('[data-knob="steps"] input', "150");
await page.dispatchEvent('[data-knob="steps"] input', "change");
await page.waitForFunction(() => decodeURIComponent(location.hash).includes("width:32"));  // the address holds what was chosen
await press(page, "start");
await stateIs(page, "training", "running");
for (const picture of ["Loss", "Heads and their roles", "Word embeddings", "Distance of the weights from the start"]) await canvasWith(page, picture);
check((await page.textContent("#training .job")).includes("2 layers × 2 heads, width 32"), "the model is named");
await page.waitForFunction(() => document.querySelector(".sample")?.textContent, null, patient);

await press(page, "pause");
await stateIs(page, "training", "paused");
await page.waitForTimeout(600);
const held = await stepOf(page);
await page.waitForTimeout(1200);
equal(await stepOf(page), held, "a paused training stands still");
check((await page.locator("#training progress").getAttribute("value")) > 0, "the bar shows how far it is");

// Another tab sees the same, and may not start a second one.
const second = await open(`${address}/page#/training`);
await stateIs(second, "training", "paused");
await canvasWith(second, "Loss");
equal(await second.locator('[data-do="start"]').count(), 0, "a second training is not offered");
const refused = await second.evaluate(async () => {
  const { token } = JSON.parse(document.getElementById("report").textContent);
  const ask = (headers) => fetch("/page/training/start", { method: "POST", body: "{}", headers }).then(async (answer) => [answer.status, (await answer.json()).error.message]);
  return [await ask({ "X-QKV-Token": token }), await ask({ "X-QKV-Token": "0".repeat(64) }), await ask({})];
});
equal(refused[0][0], 409, "a second training");
check(refused[0][1].includes("one piece of work at a time"), `the refusal says why: ${refused[0][1]}`);
equal(refused[1][0], 403, "a wrong token");
equal(refused[2][0], 403, "no token");
await second.close();

// Looking back while it goes on: the slider stays, the pictures go on.
await press(page, "resume");
await stateIs(page, "training", "running");
await page.locator("#movie input[type=range]").focus();
await page.keyboard.press("ArrowLeft");
const looked = await page.textContent("#movie .readout b");
await page.waitForFunction((before) => fetch("/page/jobs").then((a) => a.json()).then((all) => all.training.step > before + 10), held, patient);
equal(await page.textContent("#movie .readout b"), looked, "the moment that is looked at stays");
await page.locator("#movie input[type=range]").focus();
await page.keyboard.press("End");

// A page that comes back has all there is; one that leaves ends nothing.
const before = await stepOf(page);
await page.reload();
await canvasWith(page, "Loss");
check((await page.evaluate(() => qkv.jobs.liveMovie().loss.length)) >= before, "the losses so far are there after a reload");

// The process dies: it is said, and the training goes on from its last checkpoint.
await page.waitForFunction(() => fetch("/page/jobs").then((a) => a.json()).then((all) => all.training.can_resume), null, patient);
const children = readdirSync(`/proc/${pid}/task`).flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number));
equal(children.length, 1, "processes of the server");
process.kill(children[0], "SIGKILL");
await stateIs(page, "training", "failed");
check((await page.textContent("#training .job")).includes("signal 9"), `a failed training says why: ${await page.textContent("#training .job")}`);
await shootAll("#/training", "training-failed", "#training .job.failed");
await press(page, "resume");
await stateIs(page, "training", "running");
await press(page, "stop");
await stateIs(page, "training", "stopped");
await press(page, "resume");
await stateIs(page, "training", "running");
await canvasWith(page, "Loss");
await page.waitForFunction(() => document.querySelectorAll("#movie .phases li").length > 0, null, patient);
await shootAll("#/training", "training", "#movie .phases li");
await stateIs(page, "training", "finished");
const phases = await page.$eval("#movie .phases", heads);
equal(phases.join(", "), "word frequencies, word pairs, induction, plateau", "the phases");
check((await page.textContent("#training")).includes("demo-1"), "the run is named");
await page.click(".language");
await page.waitForFunction(() => document.querySelector("#training h2")?.textContent.includes("从零学起"));
check((await page.textContent("#training")).includes("训练完成"), "in Chinese it is done too");

// --- a lab --------------------------------------------------------------------------------------------------------------

await page.goto("about:blank");  // a new page, not the old one at another address
await page.goto(`${address}/page#/labs?lang=en`);
const lab = '[data-lab="causality"]';
await page.waitForSelector(lab, patient);
check((await page.locator(".lab").count()) >= 8, "all labs are listed");
equal(await page.textContent(`${lab} .verdict`), "seen", "the verdict on record");
check(/\[.*\]/.test(await page.textContent(`${lab} .rule-number >> nth=0`)), "the number has an interval");
await shootAll("#/labs?lab=scale", "labs", ".lab table");
await press(page, "run", lab);
await stateIs(page, "labs", "running");
await page.waitForSelector(`${lab} progress[value]`, patient);
check(await page.locator('[data-lab="scale"] [data-do="run"]').isDisabled(), "one lab at a time");
await shoot(page, "lab-running");
await page.route("**/page/labs/stop", async (route) => {  // its answer comes after the event that says the end
  const answer = await route.fetch();
  await stateIs(page, "labs", "stopped");
  await route.fulfill({ response: answer });
});
const answered = page.waitForResponse("**/page/labs/stop", patient);
await press(page, "stop", lab);
await answered;
await settle(page);
await stateIs(page, "labs", "stopped");
await press(page, "run", lab);
await page.waitForFunction((which) => document.querySelector(which).textContent.includes("6 of 6 rules hold · 3 seeds · here"), lab, patient);
equal(await page.locator(`${lab} .measured`).count(), 12, "every rule on record and here");
await shoot(page, "lab-done");
await finish();
