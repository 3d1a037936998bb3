// What cut heads change: the old answer struck through, the new one, and the change of the loss over many texts.
import { el, type Child } from "../core/dom";
import { known, signed } from "../core/format";
import { cutAnswer, cutList } from "../core/looking";
import * as store from "../core/store";
import { words } from "../core/words";
import { intervalText, struckTexts, whisker } from "./written";

const say = words({
  en: { without: (heads: string) => `Without ${heads} the model goes on`, delta: "change of loss on other texts, nats per token", measuring: "measuring the loss over many texts …", asking: "asking the model …", putBack: "Put all heads back" },
  zh: { without: (heads: string) => `去掉 ${heads} 之后，模型接着写`, delta: "在其他文本上损失的变化，纳特／词元", measuring: "正在许多文本上测量损失……", asking: "正在问模型……", putBack: "恢复所有的头" },
});

export function cutResult(): Child {
  const cut = cutAnswer(), heads = cutList();
  if (!heads.length) return null;
  return [el("p", { class: "kicker cut-kicker" }, say("without")(heads.join(", ")), " ", el("button", { type: "button", class: "small-button", onclick: () => store.cut.set("") }, say("putBack"))),
    !cut ? el("p", { class: "fine" }, say("asking")) : [typeof cut.before === "string" ? struckTexts(cut.before, cut.after ?? "") : "",
      known(cut.delta) ? el("div", { class: "cut-cost" }, el("b", {}, signed(cut.delta)), el("span", {}, say("delta")),
        whisker({ head: "", ...cut }, [cut.low ?? 0, cut.high ?? 0, cut.delta]), el("span", { class: "fine" }, intervalText({ head: "", ...cut }))) : el("p", { class: "fine cut-cost" }, say("measuring"))]];
}
