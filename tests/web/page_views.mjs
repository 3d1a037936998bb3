// Every view of the live page: one list. A door that is added gets a line here, and with it a walk, a look by axe-core and
// screenshots in both languages, light and dark, at 390 and 1400 px.
//   address  what follows #/        ready  what must be there         walk(page, tools)  what a person would do, once, in English
import { check, equal, inkOf } from "./browser.mjs";

export const views = [
  { name: "look", address: "look", ready: ".wall canvas", async walk(page) {
    for (const selector of [".ladder canvas", ".wall canvas", ".bigmap canvas"]) check(await inkOf(page, selector) > 12, `${selector} is drawn`);
    equal(await page.locator("#text").count(), 1, "the text box");
  } },
  { name: "look-explain", address: "look?head=L1H2", ready: ".map-panel.is-locked", async prepare(page) {
    for (const part of ["ladder", "wall", "story"]) await page.locator(`#${part} [data-depth=explain]`).click();
  } },
  { name: "look-cut", address: "look?cut=L1H2&head=L1H2", ready: ".cut-above b" },
  { name: "story-q", address: "story?stage=q&layer=0", ready: "[data-block=W_q] canvas" },
  { name: "story-softmax", address: "story?stage=softmax&layer=1", ready: "[data-block=pattern] canvas" },
  { name: "training", address: "training", ready: ".training [data-do=start]" },
  { name: "labs", address: "labs", ready: "#labs" },
  { name: "tour", address: "look", ready: ".tour", async prepare(page) { await page.locator(".tour-button").click(); await page.locator("[data-tour=pause]").click(); } },
];
