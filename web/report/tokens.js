// The text as chips, and the ladder of guesses above it.

// onPick(i) makes chips buttons.
function chips(tokens, { sureness, right, onPick } = {}) {
  const nodes = tokens.map((token, i) => {
    const sure = sureness ? sureness[i] : null;
    const joinsNext = tokens[i + 1] && tokens[i + 1].continues;
    const text = String(token.text ?? "");
    const lone = token.continues && text === "";
    const names = ["chip", token.continues && "continues", joinsNext && "joins", lone && "lone", right && right[i] && "right"];
    const node = el(onPick ? "button" : "span", {
      class: names.filter(Boolean).join(" "), type: onPick ? "button" : null, "data-token": i,
      "aria-label": lone ? tokenName(tokens, i) : null,
      onclick: onPick ? () => onPick(i) : null,
    }, lone ? "" : visible(text));
    if (known(sure)) node.style.setProperty("--p", sure.toFixed(3));
    return node;
  });
  // Pieces of one character stay on one line.
  const glyphs = [];
  nodes.forEach((node, i) => (tokens[i].continues && glyphs.length ? glyphs.at(-1).push(node) : glyphs.push([node])));
  return el("div", { class: "chips" }, glyphs.map((glyph) => (glyph.length > 1 ? el("span", { class: "glyph" }, glyph) : glyph)));
}

const lastGuess = (t) => list(list(report.ladder && report.ladder.guesses).at(-1))[t];

function tokensPart() {
  const tokens = report.tokens;
  const ladder = report.ladder;
  const tops = tokens.map((_, t) => (ladder ? list(lastGuess(t))[0] : null));
  const right = tops.map((top, t) => Boolean(top && list(ladder.next)[t] && top.text === ladder.next[t]));
  const figure = el("div", { class: "card" },
    report.source ? [el("h3", {}, say("sourceTitle")), chips(report.source), el("h3", {}, say("targetTitle"))] : null,
    chips(tokens, { sureness: tops.map((top) => top && top.p), right, onPick: ladder ? (t) => ladderView.pick(t) : null }),
    ladder ? el("p", { class: "legend" }, say("unsure"), el("i", { class: "ramp-sure" }), say("sure"),
      right.some(Boolean) ? el("span", { class: "legend-right" }, say("right")) : null) : null);
  figure.addEventListener("pointermove", (event) => {
    const node = event.target.closest("button.chip");
    if (!node || event.pointerType === "touch") return tip.hide();
    const t = Number(node.dataset.token);
    tip.show(event.clientX, event.clientY, el("b", {}, say("after")(tokenName(tokens, t))), guessBars(lastGuess(t)));
  });
  figure.addEventListener("pointerleave", () => tip.hide());
  return { id: "tokens", title: say("tokensTitle"), lead: say(ladder ? "tokensLead" : "tokensLeadPlain"), figure };
}

// --- the ladder -------------------------------------------------------------------------------------------------------

const ladderView = { layer: -1, token: -1, pick() {} };

function ladderPart() {
  const { layers, guesses } = report.ladder;
  const tokens = report.tokens || guesses[0].map((_, i) => ({ text: String(i) }));
  const settled = list(report.ladder.settled);
  const following = list(report.ladder.next);
  const count = tokens.length;
  const rows = layers.length + 1 + (following.length ? 1 : 0);  // what was read below, what came next above
  const rowHeight = layers.length > 16 ? 24 : 30;
  const gutter = () => (innerWidth < 640 ? 76 : 92);
  const columnWidth = () => (innerWidth < 640 ? 74 : clamp((scroller.clientWidth - gutter()) / count, 68, 150));
  const at = (name, layer, token) => list(list(report.ladder[name])[layer])[token];
  const topRow = following.length ? 1 : 0;
  if (ladderView.token < 0 || ladderView.token >= count) {
    ladderView.token = known(report.story && report.story.token) ? clamp(report.story.token, 0, count - 1) : count - 1;
    ladderView.layer = layers.length - 1;
  }

  const picture = canvas(say("ladderTitle"), () => rows * rowHeight + 6, draw);
  const spacer = el("div", { class: "ladder-spacer" }, picture.holder);
  const scroller = el("div", { class: "ladder", tabindex: "0", role: "application", "aria-label": say("ladderTitle") + ". " + say("ladderHint") }, spacer);
  const detail = el("div", { class: "ladder-detail", "aria-live": "polite" });
  const resize = () => {
    spacer.style.width = `${gutter() + count * columnWidth() + 2}px`;
    picture.holder.style.width = `${scroller.clientWidth}px`;
  };
  new ResizeObserver(() => { resize(); picture.paint(); }).observe(scroller);
  scroller.addEventListener("scroll", picture.paint, { passive: true });

  function draw(context, width) {
    const left = gutter(), column = columnWidth(), scroll = scroller.scrollLeft;
    const first = Math.max(Math.floor(scroll / column), 0);
    const last = Math.min(Math.ceil((scroll + width - left) / column), count - 1);
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, rows * rowHeight + 6);
    context.clip();
    for (let t = first; t <= last; ++t) {
      const x = left + t * column - scroll;
      if (t === ladderView.token) {
        context.fillStyle = ink.sunk;
        box(context, x + 1, 0, column - 2, rows * rowHeight + 4, 8);
        context.fill();
      }
      for (let layer = 0; layer < layers.length; ++layer) cell(context, layer, t, x, column);
      context.textAlign = "center";
      if (topRow) nextCell(context, t, x, column);
    }
    readRow(context, first, last, left, column, scroll);
    context.restore();
    context.textAlign = "right";
    context.font = `${innerWidth < 640 ? 11 : 12}px ${ink.font}`;
    const label = (text, row, strong) => {
      context.fillStyle = strong ? ink.text : ink.soft;
      context.fillText(fitText(context, text, left - 12), left - 10, row * rowHeight + rowHeight / 2);
    };
    if (topRow) label(say("truth"), 0);
    layers.forEach((name, layer) => label(layerName(name), yRow(layer), layer === ladderView.layer));
    label(say("read"), rows - 1);
  }

  const yRow = (layer) => topRow + layers.length - 1 - layer;

  function cell(context, layer, t, x, column) {
    const guess = list(list(guesses[layer])[t])[0];
    const y = yRow(layer) * rowHeight;
    if (!guess) return;
    const isSettled = known(settled[t]) && layer >= settled[t];
    const chosen = layer === ladderView.layer && t === ladderView.token;
    box(context, x + 2, y + 2, column - 4, rowHeight - 4, 5);
    context.fillStyle = isSettled ? withAlpha(ink.sure, 0.1 + 0.55 * clamp(guess.p, 0, 1)) : withAlpha(ink.faint, 0.10);
    context.fill();
    if (chosen) {
      context.strokeStyle = ink.accent;
      context.lineWidth = 2;
      context.stroke();
    }
    if (layer === settled[t] && layer > 0) {  // the rung on which it settled
      context.fillStyle = ink.sure;
      context.fillRect(x + 8, y + rowHeight - 2.5, column - 16, 2);
    }
    context.font = `${isSettled ? "500 " : ""}13px ${ink.font}`;
    context.fillStyle = isSettled ? ink.text : ink.faint;
    context.textAlign = "center";
    context.fillText(fitText(context, visible(guess.text), column - 14), x + column / 2, y + rowHeight / 2 + 0.5);
  }

  function nextCell(context, t, x, column) {
    if (following[t] === null || following[t] === undefined) return;
    const top = list(list(guesses.at(-1))[t])[0];
    const right = top && top.text === following[t];
    context.font = `13px ${ink.font}`;
    context.fillStyle = right ? ink.sure : ink.soft;
    context.fillText(fitText(context, (right ? "✓ " : "") + visible(following[t]), column - 10), x + column / 2, rowHeight / 2);
  }

  function readRow(context, first, last, left, column, scroll) {
    const y = (rows - 1) * rowHeight;
    for (let t = first; t <= last;) {
      const whole = pieces(tokens, t);
      const x = left + whole.begin * column - scroll, width = (whole.end - whole.begin) * column;
      box(context, x + 2, y + 3, width - 4, rowHeight - 4, 6);
      context.strokeStyle = ink.line;
      context.lineWidth = 1;
      context.fillStyle = ink.card;
      context.fill();
      context.stroke();
      context.fillStyle = ink.text;
      context.font = `600 13px ${ink.font}`;
      context.textAlign = "center";
      context.fillText(fitText(context, whole.text, width - 12), x + width / 2, y + rowHeight / 2 + 1);
      t = whole.end;
    }
  }

  function hit(event) {
    const { x, y } = pointIn(picture.node, event);
    const token = Math.floor((x - gutter() + scroller.scrollLeft) / columnWidth());
    const layer = layers.length - 1 - (Math.floor(y / rowHeight) - topRow);
    if (x < gutter() || token < 0 || token >= count) return null;
    return { token, layer: clamp(layer, 0, layers.length - 1) };
  }

  const facts = (layer, t) => el("dl", {}, [["entropy", say("nats")], ["kl", say("nats")], ["rank", ""]].map(([name, unit]) =>
    known(at(name, layer, t)) ? [el("dt", {}, say(name)), el("dd", {}, name === "rank" ? String(at(name, layer, t)) : `${num(at(name, layer, t))} ${unit}`)] : null).flat());

  function describe(layer, t) {
    const isSettled = known(settled[t]) ? say(layer >= settled[t] ? "settled" : "stillChanging") : "";
    return [el("p", { class: "detail-head" }, el("b", {}, say("after")(tokenName(tokens, t))), layerName(layers[layer]),
      isSettled ? el("span", { class: "badge" }, isSettled) : ""), guessBars(list(guesses[layer])[t]), facts(layer, t)];
  }

  function choose(layer, t, follow) {
    ladderView.layer = clamp(layer, 0, layers.length - 1);
    ladderView.token = clamp(t, 0, count - 1);
    if (follow) {
      const x = ladderView.token * columnWidth(), room = scroller.clientWidth - gutter();
      if (x < scroller.scrollLeft || x + columnWidth() > scroller.scrollLeft + room) scroller.scrollLeft = x - room / 2;
    }
    detail.replaceChildren(...describe(ladderView.layer, ladderView.token));
    picture.paint();
    part.refresh && part.refresh();
  }

  scroller.addEventListener("pointermove", (event) => {
    const found = event.pointerType === "touch" ? null : hit(event);
    if (!found) return tip.hide();
    tip.show(event.clientX, event.clientY, ...describe(found.layer, found.token));
  });
  scroller.addEventListener("pointerleave", () => tip.hide());
  scroller.addEventListener("click", (event) => {
    const found = hit(event);
    if (found) choose(found.layer, found.token);
  });
  scroller.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    choose(ladderView.layer + move[0], ladderView.token + move[1], true);
  });
  ladderView.pick = (t) => {
    choose(layers.length - 1, t, true);
    document.getElementById("ladder").scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "nearest" });
  };

  const part = {
    id: "ladder", title: say("ladderTitle"), lead: say("ladderLead"),
    figure: el("div", { class: "card ladder-card" }, scroller, detail, el("p", { class: "hint" }, say("ladderHint"))),
    explain() {
      const t = ladderView.token, top = list(list(guesses.at(-1))[t])[0], bottom = list(list(guesses[0])[t])[0];
      if (!top || !bottom) return [];
      const way = settled.filter(known).map((s) => s / Math.max(layers.length - 1, 1));
      return [...say("ladderExplain")({
        token: tokenName(tokens, t), p: percent(top.p), final: visible(top.text), first: layerName(layers[0]),
        firstGuess: visible(bottom.text), firstP: percent(bottom.p), firstRank: at("rank", 0, t) ?? "–",
        settled: layerName(layers[settled[t] ?? layers.length - 1]), kl0: num(at("kl", 0, t)), kl1: num(at("kl", layers.length - 1, t)),
      }), way.length ? say("meanSettled")(percent(way.reduce((a, b) => a + b, 0) / way.length), way.length) : ""];
    },
    numbers() {
      const t = ladderView.token;
      const columns = [say("layer"), "1", "p₁", "2", "p₂", "3", "p₃", say("entropy"), say("kl"), say("rank")];
      return { columns, rows: layers.map((name, layer) => {
        const best = list(list(guesses[layer])[t]);
        return [layerName(name), ...[0, 1, 2].flatMap((i) => [best[i] ? best[i].text : "", best[i] ? best[i].p : null]),
          at("entropy", layer, t), at("kl", layer, t), at("rank", layer, t)];
      }).reverse() };
    },
  };
  queueMicrotask(() => { resize(); choose(ladderView.layer, ladderView.token, true); });
  return part;
}
