// Patching: what came back of the clean answer, a map for each kind of site, layers from below to above.
import { canvas, fitText, pointIn } from "../core/canvas";
import { ink, signedColour } from "../core/colour";
import { el, type Child } from "../core/dom";
import { axisName, clamp, known, num, short, signed, tokenName, visible } from "../core/format";
import { report, type Patch, type PatchMap, type Token } from "../core/report";
import type { Part } from "../core/section";
import { effect } from "../core/signal";
import { tip } from "../core/tip";
import { say } from "../core/words";

const left = 52, top = 58, cell = 24;

const textOf = (patch: Patch, map: PatchMap) => (map.across === "source" ? patch.source! : patch.tokens);
const columnsOf = (map: PatchMap): number => map.restored[0]?.length ?? 0;

function columnName(patch: Patch, map: PatchMap, column: number): string {
  return map.across === "heads" ? `H${column}` : axisName(textOf(patch, map).clean, column);
}
function cellName(patch: Patch, map: PatchMap, row: number, column: number): string {
  if (map.across === "heads") return `${map.rows[row]}H${column}`;
  return `${map.rows[row]} · ${say("patchSites")[map.site] ?? map.site} · ${tokenName(textOf(patch, map).clean, column)} (${column})`;
}

function titleOf(patch: Patch, map: PatchMap): string {
  const stack = patch.source ? `${(say("stacks") as Record<string, string>)[map.stack].split(/[:：]/)[0]} · ` : "";
  const how = map.site !== "attn.z" ? "" : ` · ${say(map.across === "heads" ? "patchAll" : "patchByPosition")}`;
  return stack + (say("patchSites")[map.site] ?? map.site) + how;
}

// The last layer on top, as in the ladder of guesses.
function mapFigure(patch: Patch, map: PatchMap): HTMLElement {
  const rows = map.rows.length, columns = columnsOf(map), changed = (j: number) => map.across !== "heads" && textOf(patch, map).clean[j]?.id !== textOf(patch, map).corrupt[j]?.id;
  const wide = (width: number) => Math.min((width - left) / columns, map.across === "heads" ? 44 : 58);
  const picture = canvas(titleOf(patch, map), () => top + rows * cell + 4, (context, width) => {
    const w = wide(width);
    context.font = `12px ${ink.font}`;
    for (let j = 0; j < columns; ++j) {
      context.save();
      context.translate(left + (j + 0.5) * w, top - 6);
      context.rotate(-Math.PI / 4);
      context.textAlign = "left";
      context.fillStyle = changed(j) ? ink.accent : ink.soft;
      context.fillText(fitText(context, columnName(patch, map, j), 62), 0, 0);
      context.restore();
    }
    for (let i = 0; i < rows; ++i) {
      const y = top + (rows - 1 - i) * cell;
      context.textAlign = "right";
      context.fillStyle = ink.soft;
      context.fillText(map.rows[i], left - 8, y + cell / 2);
      for (let j = 0; j < columns; ++j) {
        const value = map.restored[i][j];
        if (!known(value)) continue;
        context.fillStyle = ink.sunk;
        context.fillRect(left + j * w, y, Math.max(w - 1, 1), cell - 1);
        context.fillStyle = signedColour(clamp(value, -1, 1), 1);
        if (Math.abs(value) >= 0.005) context.fillRect(left + j * w, y, Math.max(w - 1, 1), cell - 1);
        if (w < 32) continue;
        context.textAlign = "center";
        context.fillStyle = ink.text;
        context.fillText(short(value), left + (j + 0.5) * w, y + cell / 2);
      }
    }
  });
  const at = (event: MouseEvent): [number, number] | null => {
    const { x, y } = pointIn(picture.node, event), column = Math.floor((x - left) / wide(picture.node.clientWidth)), row = rows - 1 - Math.floor((y - top) / cell);
    return column >= 0 && column < columns && row >= 0 && row < rows && known(map.restored[row][column]) ? [row, column] : null;
  };
  picture.node.addEventListener("pointermove", (event) => {
    const found = at(event);
    if (!found) return tip.hide();
    tip.show(event.clientX, event.clientY, el("b", {}, cellName(patch, map, ...found)), el("span", {}, `r = ${num(map.restored[found[0]][found[1]], 3)}`));
  });
  picture.node.addEventListener("pointerleave", () => tip.hide());
  effect(() => picture.paint());
  return el("figure", { class: "patch-map" }, el("figcaption", {}, titleOf(patch, map)), picture.holder);
}

function textLine(name: string, tokens: readonly Token[], other: readonly Token[], kind: string): HTMLElement {
  return el("p", { class: `patch-text ${kind}` }, el("span", { class: "fine" }, name), el("span", {}, tokens.map((token, i) => (token.id === other[i]?.id ? token.text : el("b", {}, token.text)))));
}

// The strongest of what layers write: the stream itself stands behind all of it.
function strongest(patch: Patch): { map: PatchMap; row: number; column: number; value: number } | null {
  let best: ReturnType<typeof strongest> = null;
  for (const map of patch.maps) {
    if (map.site === "resid.pre") continue;
    map.restored.forEach((values, row) => values.forEach((value, column) => {
      if (known(value) && (!best || Math.abs(value) > Math.abs(best.value))) best = { map, row, column, value };
    }));
  }
  return best;
}

export function patchPart(): Part {
  const patch = report().patch!, { clean, corrupt } = patch.difference, answer = visible(patch.answer.text), wrong = visible(patch.wrong.text);
  const texts = [patch.source, patch.tokens].filter((both) => both !== undefined && both.clean.some((token, i) => token.id !== both.corrupt[i]?.id)).map((both): Child => [
    textLine(say("patchClean"), both!.clean, both!.corrupt, "clean"), textLine(say("patchCorrupt"), both!.corrupt, both!.clean, "corrupt")]);
  return {
    id: "patch", title: say("patchTitle"), lead: say("patchLead"),
    figure: el("div", { class: "card patch" }, texts, el("p", {}, say("patchAnswer")(answer, wrong, signed(clean), signed(corrupt))),
      el("div", { class: "patch-maps" }, patch.maps.map((map) => mapFigure(patch, map)))),
    explain: () => {
      const best = strongest(patch);
      return best ? say("patchExplain")({ answer, wrong, where: cellName(patch, best.map, best.row, best.column), corrupt: signed(corrupt), clean: signed(clean), patched: signed(corrupt + best.value * (clean - corrupt)), r: num(best.value, 3) }) : [];
    },
    numbers: () => ({ columns: [say("patchSite"), say("layer"), "#", say("patchBack")],
      rows: patch.maps.flatMap((map) => map.rows.flatMap((name, i) => map.restored[i].flatMap((value, j) => (known(value) ? [[titleOf(patch, map), name, `${j} ${columnName(patch, map, j)}`, value]] : [])))) }),
  };
}
