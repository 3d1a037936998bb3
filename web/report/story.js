// One token's path through the layers; what the model wrote; what it writes without a head.

const storyView = { layer: 0, stop: 0 };
const storyStops = ["in", "q", "k", "v", "o", "mid", "mlp", "out"];

function storyPart() {
  const story = report.story, layers = story.layers;
  const shown = list(report.tokens)[story.token] ? tokenName(report.tokens, story.token) : visible(story.shown);
  // A layer has only the stops its numbers allow.
  const hasStop = (layer, stop) => ({
    in: known(layer.norm_in), q: list(layer.heads).some((head) => list(head.q).length), k: list(layer.heads).some((head) => list(head.matches).length),
    v: list(layer.heads).some((head) => known(head.z_norm)), o: known(layer.attn_out_norm), mid: known(layer.resid_mid_norm),
    mlp: known(layer.mlp_out_norm), out: list(layer.guess).length > 0,
  })[stop];
  const stopsOf = (layer) => storyStops.filter((stop) => hasStop(layer, stop));
  storyView.layer = clamp(storyView.layer, 0, layers.length - 1);

  const rail = el("div", { class: "rail", role: "group", "aria-label": say("layer") });
  const track = el("ol", { class: "track" });
  const body = el("div", { class: "story-body", "aria-live": "polite" });
  const back = el("button", { type: "button", class: "step-button", onclick: () => move(-1) }, `← ${say("previous")}`);
  const forward = el("button", { type: "button", class: "step-button main", onclick: () => move(1) }, `${say("next")} →`);

  function move(by) {
    let { layer, stop } = storyView;
    stop += by;
    if (stop < 0 && layer > 0) stop = stopsOf(layers[--layer]).length - 1;
    else if (stop >= stopsOf(layers[layer]).length && layer + 1 < layers.length) { ++layer; stop = 0; }
    go(layer, stop);
  }

  function go(layer, stop) {
    storyView.layer = clamp(layer, 0, layers.length - 1);
    storyView.stop = clamp(stop, 0, stopsOf(layers[storyView.layer]).length - 1);
    draw();
    part.refresh && part.refresh();
  }

  function draw() {
    const layer = layers[storyView.layer], stops = stopsOf(layer), stop = stops[storyView.stop];
    const longest = largest(layers.map((l) => l.resid_norm));
    rail.replaceChildren(...layers.map((l, i) => {
      const best = list(l.guess)[0];
      return el("button", { type: "button", class: "rung", "aria-pressed": String(i === storyView.layer), onclick: () => go(i, 0) },
        el("span", { class: "rung-name" }, layerName(String(l.layer ?? i))),
        known(l.resid_norm) ? el("span", { class: "rung-norm" }, el("i", { style: { width: `${(100 * l.resid_norm) / (longest || 1)}%` } })) : "",
        best ? el("span", { class: "rung-guess" }, visible(best.text), el("small", {}, percent(best.p))) : "");
    }).reverse());
    track.replaceChildren(...stops.map((name, i) => el("li", { class: i === storyView.stop ? "now" : i < storyView.stop ? "done" : "" },
      el("button", { type: "button", "aria-current": i === storyView.stop ? "step" : null, "data-stop": name, onclick: () => go(storyView.layer, i) }, say("stops")[name]))));
    body.replaceChildren(...show(layer, stop));
    back.disabled = storyView.layer === 0 && storyView.stop === 0;
    forward.disabled = storyView.layer === layers.length - 1 && storyView.stop === stops.length - 1;
  }

  const line = (label, value, share, text) => el("div", { class: "bar" }, el("span", { class: "bar-name" }, label),
    el("span", { class: "bar-track" }, el("i", { style: { width: `${clamp(share, 0, 1) * 100}%` } })), el("span", { class: "bar-value" }, text ?? num(value)));
  const matchName = (m) => [visible(m.text) || "·", el("small", {}, ` ${m.key}`)];  // with its place: a word may stand there twice
  const headCards = (heads, content) => el("div", { class: "head-cards" }, heads.map((head) => el("div", { class: "head-card" }, el("h4", {}, head.name), content(head))));

  // At most five characters: a cell has room for no more.
  const short = (x) => x.toFixed(Math.abs(x) < 9.995 ? 2 : Math.abs(x) < 99.95 ? 1 : 0).replace("-", "−");
  function numbersRow(values) {
    const most = largest(values.map(Math.abs)) || 1;
    return el("div", { class: "vector" }, values.map((value) => {
      const share = Math.abs(value) / most;
      return el("span", { style: { background: withAlpha(value < 0 ? "#2f8fe0" : "#e4572e", 0.12 + 0.6 * share) } }, short(value));
    }));
  }

  const lengths = (entries) => {
    const most = largest(entries.map(([, value]) => value)) || 1;
    return el("div", { class: "bars wide" }, entries.filter(([, value]) => known(value)).map(([label, value, reached]) => {
      const made = line(label, value, value / most);
      made.classList.toggle("ahead", reached === false);
      return made;
    }));
  };

  function show(layer, stop) {
    const heads = list(layer.heads), text = (...parts) => el("p", { class: "story-text" }, ...parts);
    switch (stop) {
      case "in":
        return [text(say("stopIn")(layer.layer, num(layer.norm_in))),
          el("h3", {}, say("streamLength")), lengths(layers.map((l, i) => [layerName(String(l.layer ?? i)), l.resid_norm, i <= storyView.layer]))];
      case "q":
        return [text(say("stopQ")(heads.length)), headCards(heads, (head) => [numbersRow(list(head.q)),
          known(head.q_norm) ? el("small", {}, `${say("qNorm")} ${num(head.q_norm)}`) : ""])];
      case "k":
        return [text(say("stopK")), headCards(heads, (head) => el("div", { class: "bars" }, list(head.matches).slice(0, 5).map((m) =>
          el("div", { class: "match" }, line(matchName(m), m.share, m.share, percent(m.share)),
            known(m.qk) ? el("small", {}, `q·k ${num(m.qk)} → ${num(m.score)}`) : "")),
          head.others > 0.0005 ? el("small", { class: "total" }, `${say("rest")} ${percent(head.others)}`) : ""))];
      case "v": {
        const most = largest(heads.flatMap((head) => list(head.matches).map((m) => m.share * m.v_norm))) || 1;
        return [text(say("stopV")), headCards(heads, (head) => [el("div", { class: "bars" }, list(head.matches).slice(0, 4).filter((m) => known(m.v_norm)).map((m) =>
          el("div", { class: "match" }, line(matchName(m), 0, (m.share * m.v_norm) / most, num(m.share * m.v_norm)),
            el("small", {}, `${percent(m.share)} × ‖v‖ ${num(m.v_norm)}`)))),
          el("small", { class: "total" }, `${say("zNorm")} ${num(head.z_norm)}`)])];
      }
      case "o":
        return [text(say("stopO")(num(layer.attn_out_norm))), lengths(heads.map((head) => [head.name, head.out_norm]))];
      case "mid":
        return [text(say("stopMid")(num(layer.norm_in), num(layer.attn_out_norm), num(layer.resid_mid_norm))),
          lengths([["x", layer.norm_in], [say("plusAttention"), layer.attn_out_norm], [say("plusCross"), layer.cross_out_norm], ["=", layer.resid_mid_norm]])];
      case "mlp":
        return [text(say("stopMlp")(num(layer.mlp_out_norm), num(layer.resid_norm))),
          lengths([["x", layer.resid_mid_norm], [say("plusMlp"), layer.mlp_out_norm], ["=", layer.resid_norm]])];
      default:
        return [text(say("stopOut")), el("div", { class: "big-guess" }, guessBars(layer.guess))];
    }
  }

  // The token among its neighbours.
  const near = 14, at = story.token, tokens = list(report.tokens);
  let context = null;
  if (known(at) && tokens[at]) {
    const first = Math.max(at - near, 0);
    context = chips(tokens.slice(first, at + near + 1));
    context.classList.add("strip", "context");
    context.querySelectorAll(".chip")[at - first].classList.add("asking");
  }

  const figure = el("div", { class: "card story", tabindex: "0", role: "group", "aria-label": say("storyTitle")(shown) + ". " + say("storyHint") },
    rail,
    el("div", { class: "story-main" }, context, track,
      el("div", { class: "story-foot" }, back, forward, el("p", { class: "hint" }, say("storyHint"))), body));
  figure.addEventListener("keydown", (event) => {
    const onButton = event.target.tagName === "BUTTON";
    if (event.key === "ArrowRight" || (event.key === " " && !onButton)) move(event.shiftKey ? -1 : 1);
    else if (event.key === "ArrowLeft") move(-1);
    else if (event.key === "ArrowUp") go(storyView.layer + 1, storyView.stop);
    else if (event.key === "ArrowDown") go(storyView.layer - 1, storyView.stop);
    else return;
    event.preventDefault();
    // The pressed button may be gone with the step it stood on.
    if (!figure.contains(document.activeElement)) figure.focus({ preventScroll: true });
  });

  const part = {
    id: "story", title: say("storyTitle")(shown), lead: say("storyLead"), figure,
    explain() {
      return list(layers[storyView.layer].heads).map((head) => {
        const m = list(head.matches)[0];
        return m && known(m.qk) ? say("matchExplain")({ head: head.name, key: visible(m.text), qk: num(m.qk), score: num(m.score), share: percent(m.share) }) : "";
      });
    },
    numbers() {
      return { columns: [say("layer"), say("head"), say("key"), "q·k", say("scaled"), say("shareOf"), say("vNorm"), say("qNorm"), say("zNorm"), say("outNorm")],
        rows: layers.flatMap((l, i) => list(l.heads).flatMap((head) => list(head.matches).map((m) =>
          [layerName(String(l.layer ?? i)), head.name, m.text, m.qk, m.score, m.share, m.v_norm, head.q_norm, head.z_norm, head.out_norm]))) };
    },
  };
  draw();
  return part;
}

function writtenPart() {
  const { prompt, text } = report.written;
  return { id: "written", title: say("writtenTitle"), figure: el("div", { class: "card written" },
    el("p", {}, el("span", { class: "prompt" }, prompt || ""), el("span", { class: "answer" }, text || ""))) };
}

// --- cuts -------------------------------------------------------------------------------------------------------------

// What both begin with, without cutting a character in two.
function common(a, b) {
  const left = Array.from(a), right = Array.from(b);
  let same = 0;
  while (same < left.length && same < right.length && left[same] === right[same]) ++same;
  while (same > 0 && same < left.length && /[\p{L}\p{N}]/u.test(left[same - 1]) && /[A-Za-z]/.test(left[same - 1])) --same;  // whole words
  return [left.slice(0, same).join(""), left.slice(same).join(""), right.slice(same).join("")];
}

function cutsPart() {
  const cuts = report.cuts;
  const kindName = (kind) => (kind === "least" || kind === "most" ? say(kind) : kind || "");
  const ends = cuts.flatMap((cut) => [cut.low, cut.high, cut.delta]).filter(known);
  const low = Math.min(0, ...ends), high = Math.max(0, ...ends), span = high - low || 1;
  const at = (x) => `${(((x - low) / span) * 92 + 4).toFixed(2)}%`;
  const whisker = (cut) => el("div", { class: "whisker", role: "img", "aria-label": `${say("delta")} ${signed(cut.delta)}` },
    el("i", { class: "zero", style: { left: at(0) } }),
    known(cut.low) ? el("i", { class: "range", style: { left: at(cut.low), width: `calc(${at(cut.high)} - ${at(cut.low)})` } }) : null,
    el("i", { class: "dot", style: { left: at(cut.delta) } }));
  const cards = cuts.map((cut) => {
    const [start, before, after] = common(String(cut.before ?? ""), String(cut.after ?? ""));
    return el("article", { class: `card cut ${cut.kind === "least" ? "least" : "most"}` },
      el("header", {}, el("h3", {}, cut.head), el("span", { class: "badge" }, kindName(cut.kind))),
      el("p", { class: "delta" }, el("b", {}, signed(cut.delta)), ` ${say("nats2")}`),
      whisker(cut),
      el("p", { class: "fine" }, known(cut.low) ? `95 %: ${signed(cut.low)} … ${signed(cut.high)} · ` : "", known(cut.n) ? `n = ${cut.n}` : ""),
      cut.before || cut.after ? el("p", { class: "texts" }, start, before ? el("del", {}, before) : "", after ? el("ins", {}, after) : "",
        before === after ? el("span", { class: "same" }, say("same")) : "") : null);
  });
  return {
    id: "cuts", title: say("cutsTitle"), lead: say("cutsLead"), figure: el("div", { class: "cuts" }, cards),
    explain: () => cuts.flatMap((cut) => say("cutsExplain")({ head: cut.head, delta: num(cut.delta, 3), low: signed(cut.low), high: signed(cut.high), n: cut.n ?? "–",
      clear: cut.low > 0 || cut.high < 0, times: num(Math.exp(cut.delta)) })),
    numbers: () => ({ columns: [say("head"), say("kind"), say("delta"), "2.5 %", "97.5 %", "n", say("before"), say("afterCut")],
      rows: cuts.map((cut) => [cut.head, kindName(cut.kind), cut.delta, cut.low, cut.high, cut.n, cut.before, cut.after]) }),
  };
}
