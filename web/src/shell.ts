// What surrounds every door: the menu, language and theme, the footer.
import { live } from "./core/api";
import { el, type Child } from "./core/dom";
import { failureNote } from "./core/failure";
import { linkNote } from "./core/link";
import { chooseText, failure, lastText, mended, retry, textNow } from "./core/looking";
import { report } from "./core/report";
import { computed, effect } from "./core/signal";
import * as store from "./core/store";
import { say } from "./core/words";
import { doors } from "./doors";
import type { Door } from "./doors/door";
import { presentParts } from "./doors/look";
import { keysNote, toggleKeys } from "./keys";
import { tourButton, tourCard, tourReady } from "./tour/tour";

export function openDoor(): Door {
  return doors.find((door) => door.id === store.door() && door.here()) ?? doors.find((door) => door.here())!;
}

export const darkNow = (): boolean => (store.theme() || (systemDark.matches ? "dark" : "light")) === "dark";
export const systemDark = matchMedia("(prefers-color-scheme: dark)");

// A page of several doors has a menu of them; one with a single door has links to its parts.
function links(): Child {
  const open = openDoor(), all = doors.filter((door) => door.here());
  if (all.length > 1) {
    return all.map((door) => el("a", { href: `#/${door.id}`, "aria-current": door === open ? "page" : null, onclick: (event: Event) => { event.preventDefault(); store.door.set(door.id); scrollTo(0, 0); } }, door.name()));
  }
  const parts = presentParts();
  return parts.length > 1 ? parts.map((id) => el("a", { href: `#${id}`, onclick: (event: Event) => { event.preventDefault(); document.getElementById(id)?.scrollIntoView(); } }, say("nav")[id])) : null;
}

// Where there is no room for all of it, the open door's name is in view.
function menu(): HTMLElement {
  const bar = el("div", { class: "links" }, links);
  effect(() => {
    openDoor();
    requestAnimationFrame(() => {
      const now = bar.querySelector<HTMLElement>("[aria-current]");
      if (now) bar.scrollLeft = now.offsetLeft - bar.offsetLeft - (bar.clientWidth - now.offsetWidth) / 2;
    });
  });
  return bar;
}

const waysBack = () => ({
  back: lastText() !== null && lastText() !== textNow() ? () => { chooseText(lastText.peek()); retry(); } : undefined,
  models: () => { store.model.set(""); chooseText(null); retry(); },
  mend: () => { chooseText(mended(textNow())); retry(); },
});

export function shell(): Child {
  const other = store.lang() === "zh" ? "en" : "zh";
  const open = computed(openDoor);  // what tells doors apart may change without another one opening
  const title = () => report().title || (say("kinds") as Record<string, string>)[report().report ?? ""] || "qkv";
  return [
    el("a", { class: "skip", href: "#content", onclick: (event: Event) => { event.preventDefault(); document.getElementById("content")?.focus(); } }, say("skip")),
    el("nav", { "aria-label": say("menu") },
      el("a", { class: "mark", href: "#/", "aria-label": "qkv", onclick: (event: Event) => { event.preventDefault(); store.door.set(""); scrollTo(0, 0); } }, "q", el("b", {}, "k"), "v"),
      menu(),
      () => (live() && tourReady() ? tourButton() : ""),
      el("button", { type: "button", class: "lang theme", "aria-label": () => say(darkNow() ? "toLight" : "toDark"), title: () => say(darkNow() ? "toLight" : "toDark"), onclick: () => store.theme.set(darkNow() ? "light" : "dark") }, () => (darkNow() ? "☀" : "☾")),
      el("button", { type: "button", class: "lang language", lang: other, title: say("otherHint"), onclick: () => store.chooseLang(other) }, say("other"))),
    el("main", { id: "content", tabindex: "-1" }, () => {
      document.title = `${live() ? open().name() : title()} · qkv`;
      return [linkNote, () => (failure() ? failureNote(failure()!, retry, waysBack()) : ""), open().show()];
    }),
    el("footer", {}, el("span", {}, say(live() ? "footerLive" : "footer")), " ", el("button", { type: "button", class: "plain", onclick: toggleKeys }, say("keys"))),
    keysNote, tourCard,
  ];
}
