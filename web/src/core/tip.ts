// The tip beside the pointer, and bars of guesses, which tips and stories show.
import { el, fragment, type Child } from "./dom";
import { clamp, list, percent, visible } from "./format";
import type { Guess } from "./report";
import { say } from "./words";

const node = document.getElementById("tip")!;
export const tip = {
  show(x: number, y: number, ...content: Child[]): void {
    node.replaceChildren(fragment(...content));
    node.hidden = false;
    const { width, height } = node.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    node.style.left = `${clamp(x + 16 + width > room ? x - width - 16 : x + 16, 8, Math.max(room - width - 8, 8))}px`;
    node.style.top = `${y + 18 + height > innerHeight ? Math.max(y - height - 14, 8) : y + 18}px`;
  },
  hide(): void {
    node.hidden = true;
  },
};

// One line: name, bar, value. share is 0 to 1.
export const barLine = (name: Child, share: number, value: string, colour = "", names = "bar"): HTMLElement => el("div", { class: names },
  el("span", { class: "bar-name" }, name),
  el("span", { class: "bar-track" }, el("i", { style: { width: `${clamp(share, 0, 1) * 100}%`, ...(colour ? { background: colour } : {}) } })),
  el("span", { class: "bar-value" }, value));

export const guessName = (text: string): Child => [visible(text), visible(text) === "◌" ? el("small", {}, ` ${say("partOfCharacter")}`) : ""];

export function guessBars(guesses: readonly Guess[] | null | undefined): HTMLElement {
  return el("div", { class: "bars" }, list(guesses).map((guess, i) => barLine(guessName(guess.text), guess.p, percent(guess.p), "", i ? "bar" : "bar first")));
}
