// The block with its residual stream, as a map: where the step that is shown stands.
import { svg, type Child } from "../../core/dom";
import { say, type StageName } from "./words";

const places: Partial<Record<StageName, [number, number, number]>> = {  // x, y, width; y grows downward, the stream flows upward
  embed: [20, 452, 80], norm: [66, 408, 84], q: [40, 366, 40], k: [88, 366, 40], v: [136, 366, 40], scores: [40, 324, 88], softmax: [40, 288, 88], z: [66, 252, 84], concat: [66, 216, 84],
  o: [66, 180, 84], mid: [2, 146, 36], mlp: [66, 110, 84], router: [66, 110, 84], post: [2, 76, 36], logits: [12, 34, 96], sample: [12, 2, 96],
};

export function blockPicture(now: StageName | undefined, go: (name: StageName) => void, present: readonly StageName[]): Child {
  const line = (d: string) => svg("path", { d, class: "wire" });
  return svg("svg", { viewBox: "0 0 190 486", class: "block-picture", "aria-hidden": "true" },
    line("M20 452 V 30"), line("M20 434 H 108 V 432"), line("M108 408 V 386 M108 396 H 60 V 386 M108 396 H 156 V 386"), line("M60 366 V 344 M108 366 V 344"), line("M84 324 V 308 M84 288 V 272 M156 366 V 262 H 150"), line("M108 252 V 236 M108 216 V 200 M108 180 V 156 H 38"), line("M20 136 H 108 V 130 M108 110 V 86 H 38"),
    Object.entries(places).filter(([name]) => present.includes(name as StageName)).map(([name, [x, y, w]]) => svg("g", { class: name === now ? "place now" : "place", onclick: () => go(name as StageName) },
      svg("rect", { x, y, width: w, height: 20, rx: 6 }), svg("text", { x: x + w / 2, y: y + 14 }, name === "mid" || name === "post" ? "+" : say("stages")[name as StageName]))));
}
