// The first page: whatever parts the report has, in the order a story is told. Live, the text box stands above them.
import { live } from "../core/api";
import { el, type Child } from "../core/dom";
import { list } from "../core/format";
import { can, cutList, toggleCut } from "../core/looking";
import { report, story, type Head } from "../core/report";
import { section, type Part } from "../core/section";
import { say } from "../core/words";
import { askPart } from "../parts/ask";
import { cutResult } from "../parts/cut_result";
import { hasLadder, ladderPart } from "../parts/ladder";
import { moviePart } from "../parts/movie";
import { patchPart } from "../parts/patch";
import { storyPart } from "../parts/story";
import { tokensPart } from "../parts/tokens";
import { hasWall, wallPart } from "../parts/wall";
import { builtInPart, cutsPart, writtenPart } from "../parts/written";
import type { Door } from "./door";

type PartId = keyof ReturnType<typeof navWords>;
const navWords = () => say("nav");
const parts: [PartId, () => boolean, () => Part][] = [
  ["builtin", () => !live() && Boolean(report().built_in), builtInPart],
  ["written", () => !live() && Boolean(report().written?.text || report().written?.prompt), writtenPart],
  ["tokens", () => !live() && list(report().tokens).length > 0, tokensPart],
  ["ladder", hasLadder, ladderPart],
  ["wall", hasWall, () => wallPart(live() ? { title: cutSwitch, above: cutAbove } : {})],
  ["cuts", () => list(report().cuts).length > 0, cutsPart],
  ["story", () => list(story()?.layers).length > 0, storyPart],
  ["patch", () => list(report().patch?.maps).length > 0, patchPart],
  ["movie", () => list(report().movie?.steps).length > 0, () => moviePart()],
];
export const presentParts = (): PartId[] => parts.filter(([, has]) => has()).map(([id]) => id);

// Each part is built by itself: what one of them reads does not build the others again.
function built(id: string, has: () => boolean, make: () => Part): Child {
  return () => {
    if (!has()) return null;
    try {
      return section(make());
    } catch (error) {
      console.error(error);
      return el("section", { id }, el("p", { class: "card" }, say("broken")));
    }
  };
}

function cutSwitch(head: Head): Child {
  const isCut = () => cutList().includes(head.name);
  return can("cut") ? el("button", { type: "button", class: "cut-switch", role: "switch", "aria-checked": () => String(isCut()), onclick: () => toggleCut(head.name) },
    el("i"), () => say(isCut() ? "isCut" : "cutIt")(head.name)) : null;
}

// The changed answer stands beside the switch too: nobody should have to scroll to see it.
const cutAbove = (): Child => (cutList().length ? el("div", { class: "cut-above", "aria-live": "polite" }, cutResult) : null);

function header(): Child {
  const { title, model, made_with } = report(), kind = (say("kinds") as Record<string, string>)[report().report ?? ""];
  return el("header", { class: "top" },
    el("p", { class: "kicker" }, [title ? kind : "", model ? `${say("model")} ${model}` : ""].filter(Boolean).join(" · ")),
    el("h1", {}, title || kind || "qkv"),
    made_with ? el("p", { class: "made" }, el("code", {}, made_with)) : null);
}

export const lookDoor: Door = {
  id: "look",
  name: () => say("doorLook"),
  here: () => live() || !list(report().labs).length,
  show: () => [live() ? askPart() : header(), parts.map(([id, has, make]) => built(id, has, make)),
    () => (live() || presentParts().length ? null : el("p", { class: "card" }, say("nothing")))],
};
