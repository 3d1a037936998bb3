// What went wrong, in plain words, and the way back.
import { apiKey, type Failure } from "./api";
import { el } from "./dom";
import { words } from "./words";

const say = words({
  en: {
    gone: "The server does not answer. It may have been stopped.", key: "This server wants an API key.", stale: "The server was restarted since this page was opened.",
    loading: "The models are being loaded. This page goes on by itself.", busy: "The server is busy with another job.", refused: "That cannot be done:",
    again: "Try again", reload: "Reload the page", use: "Use this key", apiKey: "API key",
  },
  zh: {
    gone: "服务器没有回应，可能已经停止。", key: "这个服务器需要 API 密钥。", stale: "打开本页之后，服务器重新启动过。",
    loading: "正在加载模型，加载完会自动继续。", busy: "服务器正忙着另一项工作。", refused: "无法完成：",
    again: "再试一次", reload: "重新加载本页", use: "使用这个密钥", apiKey: "API 密钥",
  },
});

export function failureNote(failure: Failure, retry: () => void): HTMLElement {
  const key = el("input", { type: "password", autocomplete: "off", "aria-label": say("apiKey") });
  const use = (event: Event) => { event.preventDefault(); apiKey.set(key.value.trim()); retry(); };
  return el("div", { class: `failure ${failure.kind}`, role: failure.kind === "loading" ? "status" : "alert" },
    el("p", {}, say(failure.kind), failure.kind === "refused" || failure.kind === "busy" ? el("span", { class: "said" }, ` ${failure.message}`) : ""),
    failure.kind === "key" ? el("form", { onsubmit: use }, key, el("button", { class: "small-button" }, say("use")))
      : failure.kind === "stale" ? el("button", { type: "button", class: "small-button", onclick: () => location.reload() }, say("reload"))
        : failure.kind === "loading" ? null : el("button", { type: "button", class: "small-button", onclick: retry }, say("again")));
}
