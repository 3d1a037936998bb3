// The first page: whatever parts the report has, in the order a story is told.
import { el, type Child } from "../core/dom";
import { list } from "../core/format";
import { report } from "../core/report";
import { section, type Part } from "../core/section";
import { say } from "../core/words";
import { hasLadder, ladderPart } from "../parts/ladder";
import { moviePart } from "../parts/movie";
import { storyPart } from "../parts/story";
import { tokensPart } from "../parts/tokens";
import { hasWall, wallPart } from "../parts/wall";
import { cutsPart, writtenPart } from "../parts/written";
import type { Door } from "./door";

type PartId = keyof ReturnType<typeof navWords>;
const navWords = () => say("nav");
const parts: [PartId, () => boolean, () => Part][] = [
  ["written", () => Boolean(report().written?.text || report().written?.prompt), writtenPart],
  ["tokens", () => list(report().tokens).length > 0, tokensPart],
  ["ladder", hasLadder, ladderPart],
  ["wall", hasWall, () => wallPart()],
  ["cuts", () => list(report().cuts).length > 0, cutsPart],
  ["story", () => list(report().story?.layers).length > 0, storyPart],
  ["movie", () => list(report().movie?.steps).length > 0, () => moviePart()],
];
export const presentParts = (): PartId[] => parts.filter(([, has]) => has()).map(([id]) => id);

function built(id: string, make: () => Part): HTMLElement {
  try {
    return section(make());
  } catch (error) {
    console.error(error);
    return el("section", { id }, el("p", { class: "card" }, say("broken")));
  }
}

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
  here: () => true,
  show() {
    const present = parts.filter(([, has]) => has());
    return [header, present.length ? present.map(([id, , make]) => built(id, make)) : el("p", { class: "card" }, say("nothing"))];
  },
};
