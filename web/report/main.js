// Puts the page together: whatever parts the report has, in the order a story is told.

const parts = [
  ["written", () => report.written && (report.written.text || report.written.prompt), writtenPart],
  ["tokens", () => list(report.tokens).length, tokensPart],
  ["ladder", () => report.ladder && list(report.ladder.layers).length && list(list(report.ladder.guesses)[0]).length, ladderPart],
  ["wall", () => list(report.heads).length && list(report.tokens).length + list(report.source).length, wallPart],
  ["cuts", () => list(report.cuts).length, cutsPart],
  ["story", () => report.story && list(report.story.layers).length, storyPart],
  ["movie", () => report.movie && list(report.movie.steps).length, moviePart],
];

function render() {
  painters = [];
  tip.hide();
  readInk();
  document.documentElement.lang = state.lang === "zh" ? "zh-Hans" : "en";
  const title = report.title || say("kinds")[report.report] || "qkv";
  document.title = `${title} · qkv`;
  const present = parts.filter(([, has]) => has());
  const other = state.lang === "zh" ? "en" : "zh";
  const switchLanguage = el("button", { type: "button", class: "lang", lang: other, title: say("otherHint"), onclick: () => { state.lang = other; render(); } }, say("other"));
  const nav = el("nav", { "aria-label": title }, el("a", { class: "mark", href: "#page" }, "q", el("b", {}, "k"), "v"),
    el("div", { class: "links" }, present.length > 1 ? present.map(([id]) => el("a", { href: `#${id}` }, say("nav")[id])) : ""), switchLanguage);
  const header = el("header", { class: "top" },
    el("p", { class: "kicker" }, [report.title ? say("kinds")[report.report] : "", report.model ? `${say("model")} ${report.model}` : ""].filter(Boolean).join(" · ")),
    el("h1", {}, title),
    report.made_with ? el("p", { class: "made" }, el("code", {}, report.made_with)) : null);
  const sections = present.map(([id, , make]) => {
    try {
      return section(make());
    } catch (error) {
      console.error(error);
      return el("section", { id }, el("p", { class: "card" }, say("broken")));
    }
  });
  const main = el("main", { id: "content", tabindex: "-1" }, header, sections.length ? sections : el("p", { class: "card" }, say("nothing")));
  const scroll = window.scrollY;
  document.getElementById("page").replaceChildren(el("a", { class: "skip", href: "#content" }, say("skip")), nav, main, el("footer", {}, say("footer")));
  window.scrollTo(0, scroll);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintAll);
addEventListener("resize", () => tip.hide());
addEventListener("scroll", () => tip.hide(), { passive: true });
render();
