// What all parts share: the report, elements, numbers, colours, canvases, the tip, and the three depths.

const report = JSON.parse(document.getElementById("report").textContent);
const state = { lang: report.lang === "zh" ? "zh" : "en", depth: {} };
const say = (key) => words[state.lang][key];
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// --- elements ---------------------------------------------------------------------------------------------------------

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) key.startsWith("--") ? made.style.setProperty(key, to) : (made.style[key] = to);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// --- numbers and texts ------------------------------------------------------------------------------------------------

const known = (x) => typeof x === "number" && Number.isFinite(x);
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const list = (x) => (Array.isArray(x) ? x : []);
const mix = (a, b, part) => a + (b - a) * part;
const largest = (values) => values.reduce((most, x) => (known(x) && x > most ? x : most), 0);

function num(x, digits = 2) {
  if (!known(x)) return "–";
  const size = Math.abs(x);
  if (size !== 0 && (size < 0.5 * 10 ** -digits || size >= 1e6)) return x.toExponential(1);
  return x.toFixed(size >= 100 ? Math.min(digits, 1) : digits).replace("-", "−");
}

const score = (x) => (known(x) ? x.toFixed(2).replace("-", "−") : "–");  // on a scale from 0 to 1
const signed = (x, digits = 3) => (known(x) && x > 0 ? "+" : "") + num(x, digits);

function percent(p) {
  if (!known(p)) return "–";
  if (p > 0 && p < 0.001) return "<0.1 %";
  return (p < 0.0995 ? (p * 100).toFixed(1) : Math.round(p * 100)) + " %";
}

// White space made visible; the space that begins most English tokens is shown only where it is all there is. The
// program writes bytes that are no whole character as \xE6\xB3: one sign stands for them.
const loneBytes = /(?:\\x[89A-F][0-9A-F])+/g;
function visible(text) {
  const marked = String(text ?? "").replace(loneBytes, "◌").replace(/\r/g, "").replace(/\n/g, "⏎").replace(/\t/g, "⇥");
  return marked.trim() === "" ? marked.replace(/ /g, "␣") : marked.trim();
}

// Pieces of one character (Chinese, emoji) belong to the token that shows it.
function pieces(tokens, i) {
  let begin = i;
  while (begin > 0 && tokens[begin].continues) --begin;
  let end = begin + 1;
  while (end < tokens.length && tokens[end].continues) ++end;
  return { begin, end, text: visible(tokens.slice(begin, end).map((t) => t.text || "").join("")) };
}

const axisName = (tokens, i) => (tokens[i].continues && !tokens[i].text ? "·" : visible(tokens[i].text));

function tokenName(tokens, i) {
  if (!tokens[i]) return "?";
  const whole = pieces(tokens, i);
  if (whole.end - whole.begin === 1) return whole.text;
  return `${whole.text} (${say("piece")(i - whole.begin + 1, whole.end - whole.begin)})`;
}

const layerName = (name) => say("layers")[name] || (/^\d+$/.test(name) ? say("layerN")(name) : String(name));
// Snapshots have short names for the roles that reports name in full.
const fullRole = (name) => ({ previous: "previous token", duplicate: "duplicate token", first: "first token" })[name] || name;
const roleName = (name) => say("roles")[fullRole(name)] || String(name);

// --- colours ----------------------------------------------------------------------------------------------------------

// The stops of the program's own heat maps.
const heatStops = [[12, 8, 38], [66, 15, 100], [135, 36, 102], [205, 66, 71], [246, 128, 23], [252, 228, 120]];
const heatTable = Array.from({ length: 256 }, (_, i) => {
  const at = (i / 255) * (heatStops.length - 1);
  const low = Math.min(Math.floor(at), heatStops.length - 2);
  return heatStops[low].map((value, c) => Math.round(mix(value, heatStops[low + 1][c], at - low)));
});
const heatPixels = Uint32Array.from(heatTable, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);

// Told apart by the colour-blind, on white and on black; a role that has no colour of its own takes a free one.
const roleColours = {
  "previous token": "#2f8fe0", "always previous token": "#1d6fb8", induction: "#e4572e", "induction on random tokens": "#d6418c",
  "duplicate token": "#e0a008", "duplicate of random tokens": "#b5853d", "first token": "#8a7fa8", "learned sink": "#6d6390",
  punctuation: "#17a398", separators: "#2a9d5c", "rare word": "#7a9e2f", "current token": "#9b5de5", "next token": "#5fb4ef",
};
const freeColours = ["#c0655e", "#4f9d8f", "#7f6fd0", "#5b8c5a", "#b45fa0"];
function roleColour(short) {
  const name = fullRole(short);
  if (!roleColours[name]) roleColours[name] = freeColours[Object.keys(roleColours).length % freeColours.length];
  return roleColours[name];
}
const seriesColours = ["#2f8fe0", "#e4572e", "#17a398", "#e0a008", "#9b5de5", "#d6418c", "#7a9e2f", "#8a7fa8"];

function withAlpha(hex, alpha) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r},${g},${b},${clamp(alpha, 0, 1).toFixed(3)})`;
}

// The page's own colours, as canvases need them; read again when day turns to night.
let ink = {};
function readInk() {
  const style = getComputedStyle(document.documentElement);
  ink = { font: style.getPropertyValue("--sans").trim(), mono: style.getPropertyValue("--mono").trim() };
  for (const name of ["paper", "card", "sunk", "line", "text", "soft", "faint", "sure", "accent"]) {
    ink[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

// --- canvases ---------------------------------------------------------------------------------------------------------

let painters = [];  // everything that must be drawn again when the size or the colours change
function repaintAll() {
  readInk();
  for (const painter of painters) painter();
}

// A canvas as wide as its parent lets it be. draw(context, width) is called with CSS pixels; height(width) says how high.
function canvas(label, height, draw) {
  const node = el("canvas", { role: "img", "aria-label": label });
  const holder = el("div", { class: "canvas" }, node);
  let waiting = false;
  const paint = () => {
    waiting = false;
    const width = holder.clientWidth;
    if (!width || !holder.isConnected) return;
    const high = Math.ceil(height(width));
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (node.width !== Math.round(width * ratio) || node.height !== Math.round(high * ratio)) {
      node.width = Math.round(width * ratio);
      node.height = Math.round(high * ratio);
      node.style.height = `${high}px`;
    }
    const context = node.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, high);
    context.textBaseline = "middle";
    draw(context, width, high);
  };
  const soon = () => {
    if (!waiting) requestAnimationFrame(paint);
    waiting = true;
  };
  new ResizeObserver(soon).observe(holder);
  painters.push(soon);
  return { holder, node, paint: soon };
}

function pointIn(node, event) {
  const box = node.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

// Cuts a text to a width, by characters as people count them.
const widths = new Map();
function textWidth(context, text) {
  const key = context.font + "\n" + text;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    widths.set(key, (width = context.measureText(text).width));
  }
  return width;
}
const graphemes = window.Intl && Intl.Segmenter ? new Intl.Segmenter() : null;
function fitText(context, text, width) {
  if (textWidth(context, text) <= width) return text;
  const parts = graphemes ? Array.from(graphemes.segment(text.slice(0, 80)), (s) => s.segment) : Array.from(text.slice(0, 80));
  while (parts.length > 1 && textWidth(context, parts.join("") + "…") > width) parts.pop();
  return parts.join("") + "…";
}

function box(context, x, y, w, h, radius) {
  context.beginPath();
  context.roundRect(x, y, w, h, radius);
}

// --- the tip ----------------------------------------------------------------------------------------------------------

const tip = {
  node: document.getElementById("tip"),
  show(x, y, ...content) {
    this.node.replaceChildren(...content);
    this.node.hidden = false;
    const { width, height } = this.node.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    this.node.style.left = `${clamp(x + 16 + width > room ? x - width - 16 : x + 16, 8, Math.max(room - width - 8, 8))}px`;
    this.node.style.top = `${y + 18 + height > innerHeight ? Math.max(y - height - 14, 8) : y + 18}px`;
  },
  hide() {
    this.node.hidden = true;
  },
};

// Guesses with bars, as tips and stories show them.
function guessBars(guesses) {
  return el("div", { class: "bars" }, list(guesses).map((guess, i) => el("div", { class: i ? "bar" : "bar first" },
    el("span", { class: "bar-name" }, visible(guess.text), visible(guess.text) === "◌" ? el("small", {}, ` ${say("partOfCharacter")}`) : ""),
    el("span", { class: "bar-track" }, el("i", { style: { width: `${clamp(guess.p, 0, 1) * 100}%` } })),
    el("span", { class: "bar-value" }, percent(guess.p)))));
}

// --- a part of the page, with its three depths ------------------------------------------------------------------------

// part: { id, title, lead, figure, explain: () => [texts], numbers: () => ({ columns, rows }) }
function section(part) {
  const extra = el("div", { class: "depth-extra" });
  const depths = ["see", part.explain && "explain", part.numbers && "numbers"].filter(Boolean);
  const buttons = depths.map((depth) => el("button", {
    type: "button", "data-depth": depth, onclick: () => { state.depth[part.id] = depth; refresh(); },
  }, say("depth")[depth]));
  function refresh() {
    const depth = state.depth[part.id] || "see";
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.depth === depth)));
    extra.replaceChildren();
    if (depth === "explain" && part.explain) {
      extra.append(el("div", { class: "explain" }, part.explain().filter(Boolean).map((text) => el("p", {}, text))));
    }
    if (depth === "numbers" && part.numbers) extra.append(table(part.id, part.numbers()));
  }
  part.refresh = () => { if ((state.depth[part.id] || "see") !== "see") refresh(); };
  refresh();
  return el("section", { id: part.id, "aria-labelledby": `${part.id}-title` },
    el("div", { class: "section-head" },
      el("div", {}, el("h2", { id: `${part.id}-title` }, part.title), part.lead ? el("p", { class: "lead" }, part.lead) : null),
      depths.length > 1 ? el("div", { class: "switch", role: "group", "aria-label": say("depthLabel") }, buttons) : null),
    part.figure, extra);
}

const shownRows = 200;  // the file saved has all of them
function table(name, { columns, rows }) {
  const quote = (cell) => (/[",\n]/.test(cell) ? `"${String(cell).replace(/"/g, '""')}"` : cell);
  const save = () => {
    const text = "\ufeff" + [columns, ...rows].map((row) => row.map((cell) => quote(cell ?? "")).join(",")).join("\r\n");
    const link = el("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `qkv-${name}.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return el("div", {},
    el("div", { class: "table", tabindex: "0" }, el("table", {},
      el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col" }, column)))),
      el("tbody", {}, rows.slice(0, shownRows).map((row) => el("tr", {}, row.map((cell) =>
        el("td", { class: typeof cell === "number" ? "number" : null }, typeof cell === "number" ? (Number.isInteger(cell) ? String(cell) : num(cell, 4)) : visible(cell ?? "–")))))))),
    el("p", { class: "table-foot" }, rows.length > shownRows ? `${say("shown")(shownRows, rows.length)} ` : "",
      el("button", { type: "button", class: "plain", onclick: save }, say("save"))));
}
