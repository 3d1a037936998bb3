// Keys of the whole page, and the note that lists them. A view that has the focus has its own arrows and space.
import { live } from "./core/api";
import { el, type Child } from "./core/dom";
import { can, toggleCut } from "./core/looking";
import { signal, untracked } from "./core/signal";
import { stepper } from "./core/steps";
import * as store from "./core/store";
import { words } from "./core/words";
import { hasWall, moveHead, shownHead } from "./parts/wall";
import { tourKey } from "./tour/tour";

const say = words({
  en: { title: "Keys", close: "Close", rows: [["space", "next step of the story or the tour"], ["← →", "head to the left or right"], ["↑ ↓", "layer above or below"], ["c", "cut the head that is shown, or put it back"], ["/", "go to the text"], ["Esc", "let go of the head, end the tour"], ["?", "this list"]] },
  zh: { title: "按键", close: "关闭", rows: [["空格", "故事或导览的下一步"], ["← →", "左边或右边的头"], ["↑ ↓", "上一层或下一层"], ["c", "去掉或恢复当前的头"], ["/", "去写文字"], ["Esc", "放开这个头，结束导览"], ["?", "显示本表"]] },
});

const shown = signal(false);
export const toggleKeys = (): void => shown.set(!shown.peek());
export const keysNote = (): Child => (shown() ? el("aside", { class: "keys-note card", role: "dialog", "aria-label": say("title") }, el("h2", {}, say("title")),
  el("dl", {}, say("rows").map(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)])), el("button", { type: "button", class: "small-button", onclick: () => shown.set(false) }, say("close"))) : null);

const typing = (target: EventTarget | null): boolean => target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
// A view with keys of its own, or a button that space presses.
const busy = (target: EventTarget | null, key: string): boolean => target instanceof Element && (target.closest("[role=application], .story, .story-steps, .table") !== null || (key === " " && target.closest("button, a, summary, [role=button]") !== null));
const moves: Record<string, [number, number]> = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function wallInView(): boolean {
  const box = document.querySelector(".wall")?.getBoundingClientRect();
  return Boolean(box && box.top < innerHeight * 0.8 && box.bottom > innerHeight * 0.2);
}

function toText(): void {
  store.door.set("");
  requestAnimationFrame(() => {
    const box = document.getElementById("text");
    box?.focus();
    box?.scrollIntoView({ block: "center" });
  });
}

function pressed(key: string, target: EventTarget | null): boolean {
  if (!(key === " " && target instanceof HTMLButtonElement) && tourKey(key)) return true;
  if (key === "?") { toggleKeys(); return true; }
  if (key === "Escape" && shown.peek()) { shown.set(false); return true; }
  if (key === "/" && live()) { toText(); return true; }
  if (key === "c" && live()) { untracked(() => { if (hasWall() && can("cut")) toggleCut(shownHead().name); }); return true; }
  if (busy(target, key)) return false;
  if (key === " " && stepper.step) { stepper.step(); return true; }
  if (key === "Escape" && store.locked.peek()) { store.locked.set(false); return true; }
  const move = moves[key];
  if (!move || !wallInView()) return false;
  moveHead(...move);
  return true;
}

export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (pressed(event.key, event.target)) event.preventDefault();
  });
}
