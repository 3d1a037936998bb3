// Starts the page: reads the report and the address, draws the shell, and keeps language, theme and address in step.
import { startLive } from "./core/api";
import { repaintAll } from "./core/canvas";
import { readInk } from "./core/colour";
import { fragment } from "./core/dom";
import { doors } from "./doors";
import { watchLinks } from "./core/link";
import { startKeys } from "./keys";
import { startLooking } from "./core/looking";
import * as jobs from "./core/jobs";
import { report, setReport, type Report } from "./core/report";
import { effect } from "./core/signal";
import * as store from "./core/store";
import { tip } from "./core/tip";
import { allWords } from "./core/words";
import { playing } from "./parts/movie";
import { thumbsReady } from "./parts/wall";
import { darkNow, shell, systemDark } from "./shell";

const first = JSON.parse(document.getElementById("report")!.textContent ?? "{}") as Report;
setReport(first);
startLive();
// A file speaks the language of its report, a live page that of the browser; an address may say otherwise.
const spoken = first.report === "live" ? navigator.language : first.lang ?? "en";
store.lang.set(spoken.toLowerCase().startsWith("zh") ? "zh" : "en");
store.followAddress();
startLooking();
watchLinks(doors);
startKeys();

const page = document.getElementById("page")!;
effect(() => { document.documentElement.lang = store.lang() === "zh" ? "zh-Hans" : "en"; });
effect(() => {
  document.documentElement.dataset.theme = darkNow() ? "dark" : "light";
  repaintAll();
});
systemDark.addEventListener("change", () => {
  document.documentElement.dataset.theme = darkNow() ? "dark" : "light";
  repaintAll();
});
effect(() => {
  store.lang();
  tip.hide();
  readInk();
  const scroll = scrollY;
  page.replaceChildren(fragment(shell()));
  scrollTo(0, scroll);
});
effect(() => { document.documentElement.classList.toggle("thumbs-ready", thumbsReady()); });
addEventListener("resize", () => tip.hide());
addEventListener("scroll", () => tip.hide(), { passive: true });

// For the console and the tests.
Object.assign(window, { qkv: { report, store, words: allWords, playing, repaintAll, jobs } });
