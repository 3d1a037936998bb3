// What goes wrong: each is said plainly, with a way back, and the page goes on.
import { asked, check, equal, serve, settle, watchedPage } from "./browser.mjs";

const note = (page, kind) => page.locator(`.failure.${kind}`);
const long = (page, text) => page.evaluate((text) => { const box = document.getElementById("text"); box.value = text; box.dispatchEvent(new Event("input")); }, text);

export async function faults({ program, models, origin, open, read }) {
  const quietly = { allow: (text) => /Failed to load resource|ERR_CONNECTION/.test(text) };  // what a browser says of an answer that is an error
  const page = await open("", quietly);

  // HTML stays text: in tokens, in answers, in names of models.
  await read(page, '<img src=x onerror="window.boom=1"> <b>b</b> &amp;');
  check((await page.locator(".ask-tokens").textContent()).includes("img"), "HTML in a text is shown");
  await page.locator(".ask-side summary").click();
  const named = "<img src=x onerror=window.boom=1>";
  check((await page.locator("#model option").allTextContents()).includes(named), "HTML in a name is shown");
  await page.locator("#model").selectOption(named);
  await page.waitForFunction((name) => qkv.report().model === name, named);
  equal(await page.locator("main img, main b b").count(), 0, "no HTML of a text is in the page");
  equal(await page.evaluate(() => window.boom), undefined, "no script of a text has run");
  await page.locator("#model").selectOption("plain");

  // Nothing, and far too much.
  await read(page, "one two three");
  await page.locator("#text").fill("");
  await page.waitForFunction(() => /at least one token/.test(document.querySelector(".answer-box").textContent));
  check(await page.locator(".ask-tokens .chip").count() > 0, "the last text stays");
  await long(page, "one two three ".repeat(2000));
  await note(page, "long").waitFor();
  check(/has \d+ tokens; this model takes at most 512/.test(await note(page, "long").textContent()), "too many tokens, both numbers");
  await note(page, "long").locator("button").click();
  await page.waitForFunction(() => document.getElementById("text").value === "one two three" && !document.querySelector(".failure"));
  await long(page, "one two ".repeat(4e4));
  await note(page, "long").waitFor();
  check(/256 KiB/.test(await note(page, "long").textContent()), "too many bytes");
  await note(page, "long").locator("button").click();
  await page.waitForFunction(() => !document.querySelector(".failure"));

  // What UTF-8 cannot hold.
  await long(page, "one \ud83d two");
  await note(page, "surrogate").waitFor();
  await note(page, "surrogate").locator("button").click();
  await page.waitForFunction(() => qkv.report().title === "one \ufffd two" && !document.querySelector(".failure"));

  // Addresses of another time.
  for (const [address, said] of [["#/attic", /no view “attic”/], ["#/look?model=gone", /no model “gone”/], ["#/look?head=L9H9", /no head L9H9/], ["#/look?cut=L9H9", /L9H9 cannot be cut/],
    ["#/look?token=99", /token 99/], ["#/look?text=%FF%FEone", /no text/], ["#/%E0%A4%A", /no text/]]) {
    const there = await open(address, quietly);
    await there.waitForSelector(".failure.link");
    check(said.test(await note(there, "link").textContent()), `${address}: ${await note(there, "link").textContent()}`);
    await there.waitForSelector(".wall canvas");
    await note(there, "link").locator("button").first().click();
    await there.waitForFunction(() => !document.querySelector(".failure.link") && !/attic|gone|L9H9|token=99|FF/.test(location.hash));
    await there.close();
  }

  // A second tab is a page of its own.
  const second = await open("#/look?text=one%20two&cut=L0H1", quietly);
  await second.waitForFunction(() => qkv.report().cut?.join() === "L0H1");
  await read(page, "two one two");
  equal(await page.evaluate(() => qkv.store.cut()), "", "a cut in one tab is none in another");
  equal(await second.evaluate(() => qkv.report().title), "one two", "a text in one tab is none in another");
  await second.close();
  await page.close();
  await serverGoes({ program, models, quietly });
  await wantsKey({ program, models, quietly });
  equal((await asked(origin, "/health")).status, "ok", "the server is well after all that");
}

// Stopped, started without the model, loading: the page says so, keeps what it has, and goes on by itself.
async function serverGoes({ program, models, quietly }) {
  let server = await serve(program, models);
  const { port } = server, origin = `http://127.0.0.1:${port}`;
  const page = await watchedPage("a server that goes", { from: new RegExp(`^(${origin}/|data:|blob:)`), ...quietly });
  await page.goto(`${origin}/#/look?model=${encodeURIComponent("<img src=x onerror=window.boom=1>")}`);
  await page.waitForSelector(".wall canvas");
  await server.stop();
  await page.locator("#text").fill("two three");
  await note(page, "gone").waitFor();
  check(await page.locator(".wall canvas").count() > 0, "what was there stays");
  server = await serve(program, models.slice(0, 1), { port });
  await note(page, "model").waitFor({ timeout: 15000 });  // it came back, without this model
  await note(page, "model").locator("button").click();
  await page.waitForFunction(() => !document.querySelector(".failure") && qkv.report().model === "plain");
  let loading = true;
  await page.route("**/page/look", (route) => (loading ? route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: { message: "the models are still being loaded" } }) }) : route.continue()));
  await page.locator("#text").fill("three two");
  await note(page, "loading").waitFor();
  loading = false;
  await page.waitForFunction(() => qkv.report().title === "three two" && !document.querySelector(".failure"), null, { timeout: 15000 });
  await page.close();
  await server.stop();
}

async function wantsKey({ program, models, quietly }) {
  const server = await serve(program, models.slice(0, 1), { environment: { QKV_API_KEYS: "key-of-the-tests-0001" } }), origin = `http://127.0.0.1:${server.port}`;
  const page = await watchedPage("a server with keys", { from: new RegExp(`^(${origin}/|data:|blob:)`), ...quietly });
  await page.goto(`${origin}/`);
  for (const key of ["key-of-nobody-0000001", "key-of-the-tests-0001"]) {
    await note(page, "key").locator("input").fill(key);
    await note(page, "key").locator("button").click();
    await settle(page);
    if (key.includes("nobody")) await page.waitForFunction(() => document.querySelector(".failure.key input")?.value === "");
  }
  await page.waitForFunction(() => !document.querySelector(".failure") && qkv.report().tokens);
  await page.locator("#text").fill("one two");
  await page.waitForFunction(() => qkv.report().title === "one two");
  await page.close();
  await server.stop();
}
