// What went wrong, in plain words, and the way back.
import { apiKey, type Failure } from "./api";
import { el, type Child } from "./dom";
import { words } from "./words";

const say = words({
  en: {
    gone: "The server does not answer. It may have been stopped. What you see is its last answer; this page goes on by itself when it is back.", key: "This server wants an API key.",
    stale: "The server was restarted since this page was opened.", loading: "The models are being loaded. This page goes on by itself.", stopping: "The server is being stopped. What you see is its last answer.",
    busy: "The server is busy with another job.", model: "This model is not here, or not any more.", refused: "That cannot be done:",
    long: (tokens: unknown, max: unknown) => (tokens ? `This text has ${tokens} tokens; this model takes at most ${max}.` : "This text is too long for this page: at most 256 KiB are read."),
    surrogate: "This text holds half of a character (a lone surrogate), which no UTF-8 text can hold.",
    again: "Try again", reload: "Reload the page", use: "Use this key", apiKey: "API key", others: "Show the models that are here", back: "Back to the last text", mend: "Replace it",
  },
  zh: {
    gone: "服务器没有回应，可能已经停止。眼前是它最后一次的回答；它恢复之后，本页会自动继续。", key: "这个服务器需要 API 密钥。",
    stale: "打开本页之后，服务器重新启动过。", loading: "正在加载模型，加载完会自动继续。", stopping: "服务器正在停止。眼前是它最后一次的回答。",
    busy: "服务器正忙着另一项工作。", model: "这个模型不在这里，或者已经不在了。", refused: "无法完成：",
    long: (tokens: unknown, max: unknown) => (tokens ? `这段文字有 ${tokens} 个词元，这个模型最多读 ${max} 个。` : "这段文字太长：本页最多读 256 KiB。"),
    surrogate: "这段文字里有半个字符（落单的代理码），UTF-8 无法表示。",
    again: "再试一次", reload: "重新加载本页", use: "使用这个密钥", apiKey: "API 密钥", others: "显示这里有的模型", back: "回到上一段文字", mend: "替换它",
  },
});

// Ways back that only the first page knows.
export interface WaysBack { back?: () => void; models?: () => void; mend?: () => void }

export function failureNote(failure: Failure, retry: () => void, ways: WaysBack = {}): HTMLElement {
  const { kind } = failure, calm = kind === "loading" || kind === "stopping";
  const button = (text: string, go: () => void) => el("button", { type: "button", class: "small-button", onclick: go }, text);
  const text: Child = kind === "long" ? say("long")(failure.more.tokens, failure.more.max) : say(kind);
  return el("div", { class: `failure ${kind}`, role: calm ? "status" : "alert" },
    el("p", {}, text, kind === "refused" || kind === "busy" ? el("span", { class: "said" }, ` ${failure.message}`) : ""), way(failure, retry, ways, button));
}

function way({ kind }: Failure, retry: () => void, ways: WaysBack, button: (text: string, go: () => void) => Child): Child {
  if (kind === "key") {
    const key = el("input", { type: "password", autocomplete: "off", "aria-label": say("apiKey") });
    return el("form", { onsubmit: (event: Event) => { event.preventDefault(); apiKey.set(key.value.trim()); retry(); } }, key, el("button", { class: "small-button" }, say("use")));
  }
  if (kind === "loading") return null;
  if (kind === "stale") return button(say("reload"), () => location.reload());
  if (kind === "model" && ways.models) return button(say("others"), ways.models);
  if (kind === "surrogate" && ways.mend) return button(say("mend"), ways.mend);
  if ((kind === "long" || kind === "refused") && ways.back) return button(say("back"), ways.back);
  return button(say("again"), retry);
}
