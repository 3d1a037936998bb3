// Tokens as chips. Pieces of one character, or of one word, are joined and stay on one line.
import { el } from "../core/dom";
import { continuesWord, known, tokenName, visible } from "../core/format";
import type { Token } from "../core/report";

interface ChipOptions {
  sureness?: (number | null | undefined)[];  // 0 to 1: how deep the colour is
  right?: boolean[];
  onPick?: (token: number) => void;          // makes chips buttons
}

export function chips(tokens: readonly Token[], { sureness, right, onPick }: ChipOptions = {}): HTMLDivElement {
  const nodes = tokens.map((token, i) => {
    const sure = sureness?.[i];
    const text = String(token.text ?? "");
    const lone = Boolean(token.continues) && text === "";
    const names = ["chip", token.continues && "continues", tokens[i + 1]?.continues && "joins", lone && "lone", right?.[i] && "right"];
    const node = el(onPick ? "button" : "span", {
      class: names.filter(Boolean).join(" "), type: onPick ? "button" : null, "data-token": i,
      "aria-label": lone && onPick ? tokenName(tokens, i) : null,
      onclick: onPick ? () => onPick(i) : null,
    }, lone ? "" : visible(text));
    if (known(sure)) node.style.setProperty("--p", sure.toFixed(3));
    return node;
  });
  const groups: { name: string; nodes: HTMLElement[] }[] = [];
  nodes.forEach((node, i) => {
    const name = tokens[i].continues ? "glyph" : continuesWord(tokens, i) ? "word" : "";
    if (name && groups.length) Object.assign(groups.at(-1)!, { name }).nodes.push(node);
    else groups.push({ name: "", nodes: [node] });
  });
  return el("div", { class: "chips" }, groups.map(({ name, nodes: group }) => (name ? el("span", { class: name }, group) : group)));
}

export const chipsOf = (node: Element): NodeListOf<HTMLElement> => node.querySelectorAll<HTMLElement>(".chip");
