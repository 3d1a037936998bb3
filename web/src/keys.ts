// Keys of the whole page: / goes to the text box, c cuts the head that is shown. Views have their own arrows and space.
import { shownHead, hasWall } from "./parts/wall";
import { live } from "./core/api";
import { can, toggleCut } from "./core/looking";
import { untracked } from "./core/signal";

const typing = (target: EventTarget | null): boolean => target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);

export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = document.getElementById("text");
    if (event.key === "/" && box) {
      event.preventDefault();
      box.focus();
      box.scrollIntoView({ block: "center" });
    } else if (event.key === "c" && live()) {
      untracked(() => { if (hasWall() && can("cut")) toggleCut(shownHead().name); });
    }
  });
}
