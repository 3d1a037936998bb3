// The page of qkv serve: lists the models and streams a completion of a text.
"use strict";

const words = {
  en: { key: "API key", use: "Use", model: "Model", tokens: "Most tokens", temperature: "Temperature", prompt: "Text to continue",
        go: "Continue", stop: "Stop", loading: "The models are being loaded.", wrong: "An API key is needed.",
        none: "No model here continues texts.", failed: "The server said: " },
  zh: { key: "API 密钥", use: "使用", model: "模型", tokens: "最多词元数", temperature: "温度", prompt: "要续写的文字",
        go: "续写", stop: "停止", loading: "模型正在加载。", wrong: "需要 API 密钥。",
        none: "这里没有能续写文字的模型。", failed: "服务器返回：" },
};
const at = (id) => document.getElementById(id);
let language = navigator.language.startsWith("zh") ? "zh" : "en";
let key = "", running = null, status = "", detail = "";

function say(word, more = "") {
  status = word;
  detail = more;
  at("status").textContent = word ? words[language][word] + more : "";
}

function show() {
  document.documentElement.lang = language;
  for (const place of document.querySelectorAll("[data-word]")) place.textContent = words[language][place.dataset.word];
  at("language").textContent = language === "en" ? "中文" : "English";
  at("language").lang = language === "en" ? "zh" : "en";
  say(status, detail);
}

function headers() {
  const all = { "Content-Type": "application/json" };
  if (key) all.Authorization = "Bearer " + key;
  return all;
}

async function models() {
  const answer = await fetch("/v1/models", { headers: headers() });
  at("keys").hidden = answer.status !== 401;
  if (answer.status === 401) return say("wrong");
  if (answer.status === 503) {
    say("loading");
    return void setTimeout(models, 1000);
  }
  const able = (await answer.json()).data.filter((model) => model.capabilities.includes("completions"));
  at("model").replaceChildren(...able.map((model) => new Option(model.id, model.id)));
  at("go").disabled = able.length === 0;
  say(able.length ? "" : "none");
}

// Calls `event` with the JSON of every event of the stream.
async function events(body, event) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      if (part.startsWith("data: {")) event(JSON.parse(part.slice(6)));
    }
  }
}

async function complete() {
  const text = at("text");
  text.textContent = "";
  say("");
  running = new AbortController();
  at("stop").disabled = false;
  at("go").disabled = true;
  try {
    const answer = await fetch("/v1/completions", {
      method: "POST",
      headers: headers(),
      signal: running.signal,
      body: JSON.stringify({ model: at("model").value, prompt: at("prompt").value, max_tokens: Number(at("tokens").value),
                             temperature: Number(at("temperature").value), stream: true }),
    });
    if (!answer.ok) return say("failed", (await answer.json()).error.message);
    await events(answer.body, (event) => {
      if (event.error) say("failed", event.error.message);
      for (const choice of event.choices || []) text.textContent += choice.text;
    });
  } catch (failure) {
    if (failure.name !== "AbortError") say("failed", String(failure.message));
  } finally {
    at("stop").disabled = true;
    at("go").disabled = false;
  }
}

at("language").addEventListener("click", () => { language = language === "en" ? "zh" : "en"; show(); });
at("keys").addEventListener("submit", (event) => { event.preventDefault(); key = at("key").value.trim(); models(); });
at("ask").addEventListener("submit", (event) => { event.preventDefault(); complete(); });
at("stop").addEventListener("click", () => running && running.abort());
show();
models();
