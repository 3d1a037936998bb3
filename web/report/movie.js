// The training movie: a slider over the snapshots moves every picture at once.

const movieView = { at: null, role: "strongest", playing: false };
const notRoles = new Set(["entropy", "distance"]);

function moviePart() {
  const movie = report.movie, steps = list(movie.steps), last = steps.length - 1;
  if (movieView.at === null) movieView.at = last;
  const index = () => clamp(Math.round(movieView.at), 0, last);
  // A value between two snapshots.
  const between = (values) => {
    const low = clamp(Math.floor(movieView.at), 0, last), high = Math.min(low + 1, last), part = movieView.at - low;
    const a = list(values)[low], b = list(values)[high];
    return known(a) && known(b) ? mix(a, b, part) : known(a) ? a : null;
  };
  const stepNow = () => between(steps);
  const panels = [];
  const add = (title, picture, ...more) => {
    panels.push(picture);
    return el("figure", { class: "panel" }, el("figcaption", {}, title), picture.holder, ...more);
  };

  // --- the slider ---
  const slider = el("input", { type: "range", min: "0", max: String(last), step: "any", value: String(movieView.at), "aria-label": say("step"),
    oninput: () => { stop(); set(Number(slider.value)); },
    onkeydown(event) {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (by) { event.preventDefault(); stop(); set(clamp(index() + by, 0, last)); }
      if (event.key === " ") { event.preventDefault(); toggle(); }
    } });
  const playButton = el("button", { type: "button", class: "play", onclick: toggle });
  const readout = el("output", { class: "readout" });
  const playIcon = (playing) => playButton.replaceChildren(el("i", { class: playing ? "icon-pause" : "icon-play" }), say(playing ? "pause" : "play"));

  function set(at) {
    movieView.at = at;
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", say("stepN")(Math.round(stepNow())));
    const now = lossAt(stepNow());
    readout.replaceChildren(el("b", {}, say("stepN")(Math.round(stepNow()))), el("span", {}, say("snapshot")(index() + 1, steps.length)),
      known(now) ? el("span", {}, `${say("lossTitle")} ${num(now)}`) : "");
    panels.forEach((panel) => panel.paint());
    showSample();
    markPhases();
    if (!movieView.playing) part.refresh && part.refresh();
  }

  let clock = null;
  function toggle() { movieView.playing ? stop() : play(); }
  function stop() {
    movieView.playing = false;
    clock = null;
    playIcon(false);
    part.refresh && part.refresh();
  }
  function play() {
    if (movieView.at >= last) set(0);
    movieView.playing = true;
    playIcon(true);
    const perSecond = Math.max(last / 14, 1.6);
    let before = performance.now(), at = movieView.at;
    const frame = (now) => {
      if (clock !== frame || !slider.isConnected) return;
      at = Math.min(at + ((now - before) / 1000) * perSecond, last);
      before = now;
      const shown = calm.matches ? Math.floor(at) : at;  // snapshots one by one, nothing glides
      if (shown !== movieView.at) set(shown);
      if (at >= last) return stop();
      requestAnimationFrame(frame);
    };
    clock = frame;
    requestAnimationFrame(frame);
  }

  // --- the loss ---
  const points = list(movie.loss).filter((p) => known(p.step) && known(p.loss));
  const vals = list(movie.loss).filter((p) => known(p.step) && known(p.val));
  const phases = list(movie.phases);
  function lossAt(step) {
    let best = null;
    for (const p of points) if (p.step <= step || best === null) best = p.loss;
    return best;
  }
  const axes = (context, g, yLow, yHigh, xHigh) => {
    context.font = `11px ${ink.font}`;
    context.fillStyle = ink.soft;
    context.strokeStyle = ink.line;
    context.lineWidth = 1;
    context.textAlign = "right";
    const tick = niceStep((yHigh - yLow) / 4);
    for (let y = Math.ceil(yLow / tick) * tick; y <= yHigh + 1e-9; y += tick) {
      const py = Math.round(g.y(y)) + 0.5;
      context.beginPath();
      context.moveTo(g.left, py);
      context.lineTo(g.right, py);
      context.stroke();
      context.fillText(String(Number(y.toPrecision(3))), g.left - 6, py);
    }
    if (!xHigh) return;
    context.textAlign = "center";
    const xTick = niceStep(xHigh / Math.max((g.right - g.left) / 90, 2));
    for (let x = 0; x <= xHigh; x += xTick) context.fillText(String(x), g.x(x), g.bottom + 13);
  };
  const niceStep = (raw) => {
    const base = 10 ** Math.floor(Math.log10(raw || 1));
    return base * ([1, 2, 5, 10].find((m) => m * base >= raw) || 10);
  };
  const curve = (context, g, data, colour, width) => {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.beginPath();
    let open = false;
    for (const [x, y] of data) {
      if (!known(y)) { open = false; continue; }
      open ? context.lineTo(g.x(x), g.y(y)) : context.moveTo(g.x(x), g.y(y));
      open = true;
    }
    context.stroke();
  };
  const playhead = (context, g) => {
    const x = g.x(stepNow());
    context.strokeStyle = ink.accent;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, g.top);
    context.lineTo(x, g.bottom);
    context.stroke();
  };
  const frameOf = (width, height, xHigh, yLow, yHigh, top) => {
    const g = { left: 40, right: width - 10, top, bottom: height - 22 };
    g.x = (x) => mix(g.left, g.right, x / (xHigh || 1));
    g.y = (y) => mix(g.bottom, g.top, (y - yLow) / (yHigh - yLow || 1));
    return g;
  };
  const xHigh = Math.max(steps[last] || 0, ...points.map((p) => p.step));
  const drags = (picture) => {
    const seek = (event) => {
      if (event.type === "pointermove" && !(event.buttons & 1)) return;
      const { x } = pointIn(picture.node, event), step = ((x - 40) / (picture.holder.clientWidth - 50)) * xHigh;
      let at = 0;
      while (at < last && steps[at + 1] <= step) ++at;
      stop();
      set(clamp(at + (at < last ? (step - steps[at]) / (steps[at + 1] - steps[at]) : 0), 0, last));
    };
    picture.node.addEventListener("pointerdown", seek);
    picture.node.addEventListener("pointermove", seek);
    picture.holder.classList.add("seek");
    return picture;
  };
  const lossPicture = () => drags(canvas(say("lossTitle"), (width) => clamp(width * 0.36, 200, 300), (context, width, height) => {
    const values = [...points.map((p) => p.loss), ...vals.map((p) => p.val)];
    const yHigh = Math.max(...values), yLow = Math.min(0, ...values);
    const seen = phases.filter((phase) => known(phase.step));
    const g = frameOf(width, height, xHigh, yLow, yHigh * 1.04, 12 + Math.min(seen.length, 4) * 15);
    axes(context, g, yLow, yHigh, xHigh);
    // Phases: one mark each, their names on steps of a stair so that they never overlap.
    seen.sort((a, b) => a.step - b.step).forEach((phase, i) => {
      const x = g.x(phase.step), y = 8 + (i % 4) * 15, name = say("phases")[phase.name] || phase.name;
      context.strokeStyle = withAlpha(ink.faint, 0.9);
      context.setLineDash([3, 3]);
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x, g.bottom);
      context.stroke();
      context.setLineDash([]);
      const past = phase.step <= stepNow();
      context.font = `${past ? "600 " : ""}11px ${ink.font}`;
      context.fillStyle = past ? ink.text : ink.faint;
      const wide = textWidth(context, name) + 8 > g.right - x;
      context.textAlign = wide ? "right" : "left";
      context.fillText(name, x + (wide ? -5 : 5), y);
    });
    curve(context, g, points.map((p) => [p.step, p.loss]), withAlpha(seriesColours[0], 0.3), 1.2);
    curve(context, g, points.filter((p) => p.step <= stepNow()).map((p) => [p.step, p.loss]), seriesColours[0], 1.8);
    for (const p of vals) {
      context.fillStyle = withAlpha(seriesColours[1], p.step <= stepNow() ? 1 : 0.3);
      context.beginPath();
      context.arc(g.x(p.step), g.y(p.val), 3, 0, 7);
      context.fill();
    }
    playhead(context, g);
  }));

  const reasonOf = ({ reason, numbers }) => {
    const text = say("reasons")[reason];
    return text ? text(Object.fromEntries(Object.entries(numbers || {}).map(([name, x]) => [name, Number.isInteger(x) ? String(x) : num(x)]))) : "";
  };
  const phaseList = el("ul", { class: "phases" }, phases.map((phase) => el("li", { "data-step": phase.step ?? "" },
    el("b", {}, say("phases")[phase.name] || phase.name), el("span", {}, known(phase.step) ? say("stepN")(phase.step) : say("notSeen")), el("small", {}, reasonOf(phase)))));
  const markPhases = () => [...phaseList.children].forEach((item) => item.classList.toggle("past", item.dataset.step !== "" && Number(item.dataset.step) <= stepNow()));

  // --- the heads ---
  const heads = list(movie.heads).map((head) => {
    const found = /^([EX]?)L?(\d+)H?(\d+)?/.exec(head.name) || [];
    return { ...head, stack: found[1] || "", layer: Number(found[2] || 0), seat: Number(found[3] || 0) };
  });
  const roleNames = [...new Set(heads.flatMap((head) => Object.keys(head.roles || {})))];
  // Roles are shares; what is no role may be larger (a distance in tokens) and is drawn as a share of its largest.
  const scales = Object.fromEntries(roleNames.map((name) => [name, Math.max(1, largest(heads.flatMap((head) => list((head.roles || {})[name]))))]));
  const strengths = (head) => Object.entries(head.roles || {}).filter(([name]) => !notRoles.has(name)).map(([name, values]) => [name, between(values)]).filter(([, x]) => known(x));
  // The program's own rule: the whole interval is at or above the threshold. Otherwise a head has no role and no colour.
  const counts = (head, name) => {
    const low = between(list(((head.intervals || {})[name] || {}).low));
    return known(low) && low >= ((movie.thresholds || {})[name] ?? Infinity);
  };
  const strongest = (head) => {
    const all = strengths(head), held = all.filter(([name]) => counts(head, name));
    return (held.length ? held : all).reduce((best, now) => (!best || now[1] > best[1] ? now : best), null);
  };
  const colourOf = (head, name) => (notRoles.has(name) || (movieView.role === "strongest" && !counts(head, name)) ? "#8a8594" : roleColour(name));
  const wallRows = [...new Set(heads.map((head) => `${head.stack}\n${head.layer}`))];
  const across = Math.max(1, ...heads.map((head) => head.seat + 1));
  const picker = el("div", { class: "role-legend", role: "group" }, ["strongest", ...roleNames].map((name) => el("button", {
    type: "button", class: "role", "data-role": name, "aria-pressed": String(movieView.role === name),
    style: { "--role": notRoles.has(name) ? "var(--soft)" : roleColour(name) },
    onclick() {
      movieView.role = name;
      picker.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.role === name)));
      panels.forEach((panel) => panel.paint());
    },
  }, name === "strongest" ? "" : el("i"), name === "strongest" ? say("strongest") : roleName(name))));
  const seatGap = 6;
  const seatSize = (width) => ({ w: (width - 30) / across, h: clamp(Math.min((width - 30) / across, 300 / wallRows.length), 22, 64) });
  const rolesPicture = () => {
    const picture = canvas(say("rolesTitle"), (width) => wallRows.length * seatSize(width).h + 22, (context, width) => {
      const { w, h } = seatSize(width);
      context.font = `11px ${ink.mono}`;
      context.fillStyle = ink.soft;
      wallRows.forEach((row, r) => {
        const [stack, layer] = row.split("\n");
        context.textAlign = "right";
        context.fillText(`${stack}${stack ? "" : "L"}${layer}`, 24, (wallRows.length - 1 - r) * h + h / 2);
      });
      context.textAlign = "center";
      if (w > 24) for (let s = 0; s < across; ++s) context.fillText(`H${s}`, 30 + (s + 0.5) * w, wallRows.length * h + 11);
      for (const head of heads) {
        const r = wallRows.indexOf(`${head.stack}\n${head.layer}`), x = 30 + head.seat * w, y = (wallRows.length - 1 - r) * h;
        const best = movieView.role === "strongest" ? strongest(head) : [movieView.role, between((head.roles || {})[movieView.role])];
        box(context, x + seatGap / 2, y + seatGap / 2, w - seatGap, h - seatGap, 6);
        context.fillStyle = ink.sunk;
        context.fill();
        if (!best || !known(best[1])) continue;
        context.fillStyle = withAlpha(colourOf(head, best[0]), best[1] / scales[best[0]]);
        context.fill();
        if (w > 44 && h > 28) {
          context.fillStyle = best[1] / scales[best[0]] > 0.6 ? "#fff" : ink.soft;
          context.font = `${best[1] > 0.5 ? "600 " : ""}12px ${ink.font}`;
          context.fillText(best[1].toFixed(2), x + w / 2, y + h / 2);
        }
      }
    });
    picture.node.addEventListener("pointermove", (event) => {
      const { x, y } = pointIn(picture.node, event), { w, h } = seatSize(picture.holder.clientWidth);
      const row = wallRows[wallRows.length - 1 - Math.floor(y / h)];
      const head = heads.find((one) => `${one.stack}\n${one.layer}` === row && one.seat === Math.floor((x - 30) / w));
      if (!head) return tip.hide();
      tip.show(event.clientX, event.clientY, el("b", {}, head.name), el("div", { class: "bars" }, Object.entries(head.roles || {}).map(([name, values]) =>
        el("div", { class: "bar" }, el("span", { class: "bar-name" }, roleName(name)), el("span", { class: "bar-track" },
          el("i", { style: { width: `${clamp(between(values) / scales[name], 0, 1) * 100}%`, background: notRoles.has(name) ? "var(--soft)" : roleColour(name) } })), el("span", { class: "bar-value" }, score(between(values)))))));
    });
    picture.node.addEventListener("pointerleave", () => tip.hide());
    return picture;
  };

  const weighed = heads.filter((head) => list(head.importance).some(known));
  const importanceTop = largest(weighed.flatMap((head) => head.importance)) || 1;
  const importancePicture = () => canvas(say("importanceTitle"), () => 190, (context, width, height) => {
    const g = frameOf(width, height, 1, 0, importanceTop, 8), w = (g.right - g.left) / weighed.length;
    axes(context, g, 0, importanceTop, 0);
    weighed.forEach((head, i) => {
      const value = between(head.importance), best = strongest(head);
      if (!known(value)) return;
      context.fillStyle = best && counts(head, best[0]) ? roleColour(best[0]) : ink.faint;
      const x = g.left + i * w, pad = Math.min(w * 0.15, 4);
      box(context, x + pad, g.y(value), w - 2 * pad, Math.max(g.bottom - g.y(value), 0.5), [3, 3, 0, 0]);
      context.fill();
      if (w > 30) {
        context.fillStyle = ink.soft;
        context.font = `10px ${ink.mono}`;
        context.textAlign = "center";
        context.fillText(head.name, x + w / 2, g.bottom + 12);
      }
    });
  });

  // --- words that move ---
  const embedding = movie.embedding;
  const embeddingPicture = () => {
    const xs = embedding.x.flat().filter(known), ys = embedding.y.flat().filter(known);
    const range = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    const [xl, xh] = range(xs), [yl, yh] = range(ys);
    return canvas(say("embeddingTitle"), (width) => clamp(width * 0.68, 260, 440), (context, width, height) => {
      const low = clamp(Math.floor(movieView.at), 0, last), high = Math.min(low + 1, last), part = movieView.at - low;
      const px = (x) => mix(26, width - 34, (x - xl) / (xh - xl || 1)), py = (y) => mix(height - 16, 16, (y - yl) / (yh - yl || 1));
      const taken = [];
      context.fillStyle = withAlpha(ink.sunk, 0.5);
      box(context, 0, 0, width, height, 12);
      context.fill();
      const place = (t, at) => [px(list(embedding.x[at])[t]), py(list(embedding.y[at])[t])];
      embedding.tokens.forEach((token, t) => {
        const [ax, ay] = place(t, low), [bx, by] = place(t, high);
        const x = mix(ax, bx, part), y = mix(ay, by, part);
        if (!known(x) || !known(y)) return;
        context.strokeStyle = withAlpha(seriesColours[0], 0.28);  // where it came from
        context.lineWidth = 1.5;
        context.beginPath();
        for (let back = Math.max(low - 5, 0); back <= low; ++back) {
          const [tx, ty] = place(t, back);
          back === Math.max(low - 5, 0) ? context.moveTo(tx, ty) : context.lineTo(tx, ty);
        }
        context.lineTo(x, y);
        context.stroke();
        context.fillStyle = seriesColours[0];
        context.beginPath();
        context.arc(x, y, 3.5, 0, 7);
        context.fill();
        if (!token) return;  // a part of a character has no text
        context.font = `12px ${ink.font}`;
        const label = visible(token), w = textWidth(context, label);
        const right = x + 8 + w < width;
        const spot = { x: right ? x + 6 : x - 6 - w, y: y - 7, w, h: 14 };
        if (taken.some((o) => spot.x < o.x + o.w && o.x < spot.x + spot.w && spot.y < o.y + o.h && o.y < spot.y + spot.h)) return;
        taken.push(spot);
        context.textAlign = "left";
        context.fillStyle = ink.text;
        context.fillText(label, spot.x, y);
      });
    });
  };

  // --- weights ---
  const weights = list(movie.weights).filter((w) => list(w.moved).some(known));
  const kindOf = (name) => (/W_?([QKVO])/i.exec(name) || [])[0] || String(name).split(" ").at(-1);
  const kinds = [...new Set(weights.map((w) => kindOf(w.name)))];
  const kindColour = (name) => seriesColours[kinds.indexOf(kindOf(name)) % seriesColours.length];
  const weightsPicture = () => {
    const yHigh = largest(weights.flatMap((w) => w.moved)) || 1;
    const picture = drags(canvas(say("weightsTitle"), () => 220, (context, width, height) => {
      const g = frameOf(width, height, xHigh, 0, yHigh, 10);
      axes(context, g, 0, yHigh, xHigh);
      for (const w of weights) {
        const points = list(w.moved).map((y, i) => [steps[i], y]);
        curve(context, g, points, withAlpha(kindColour(w.name), 0.22), 1);
        curve(context, g, [...points.filter(([x]) => x <= stepNow()), [stepNow(), between(w.moved)]], kindColour(w.name), 1.6);
      }
      playhead(context, g);
    }));
    picture.node.addEventListener("pointermove", (event) => {
      tip.show(event.clientX, event.clientY, el("div", { class: "tip-list" }, [...weights].sort((a, b) => between(b.moved) - between(a.moved)).slice(0, 8).map((w) =>
        el("div", {}, el("i", { style: { background: kindColour(w.name) } }), `${w.name}: ${num(between(w.moved))}`, known(between(w.cosine)) ? el("small", {}, ` ${say("cosine")} ${num(between(w.cosine))}`) : ""))));
    });
    picture.node.addEventListener("pointerleave", () => tip.hide());
    return picture;
  };

  // --- samples ---
  const samples = list(movie.samples);
  const sampleText = el("p", { class: "sample" });
  const sampleStep = el("small", { class: "fine" });
  function showSample() {
    let now = null;
    for (const sample of samples) if (sample.step <= stepNow() + 0.5) now = sample;
    sampleText.textContent = now ? now.text || say("emptySample") : say("noSample");
    sampleStep.textContent = now ? say("stepN")(now.step) : "";
  }

  const legendOf = (entries) => el("p", { class: "legend dots" }, entries.map(([name, colour]) => el("span", {}, el("i", { style: { background: colour } }), name)));
  const panelsNode = el("div", { class: "panels" },
    points.length ? el("div", { class: "panel-wide" }, add(say("lossTitle"), lossPicture(), vals.length ? legendOf([[say("loss"), seriesColours[0]], [say("val"), seriesColours[1]]]) : ""), phases.length ? phaseList : "") : null,
    samples.length ? el("figure", { class: "panel sample-panel" }, el("figcaption", {}, say("samplesTitle"), " ", sampleStep), sampleText) : null,
    heads.length && roleNames.length ? add(say("rolesTitle"), rolesPicture(), picker) : null,
    embedding && list(embedding.x).length ? add(say("embeddingTitle"), embeddingPicture()) : null,
    weighed.length ? add(say("importanceTitle"), importancePicture()) : null,
    weights.length ? add(say("weightsTitle"), weightsPicture(), kinds.length > 1 ? legendOf(kinds.map((name) => [name, seriesColours[kinds.indexOf(name) % seriesColours.length]])) : "") : null);

  const part = {
    id: "movie", title: say("movieTitle"), lead: say("movieLead"),
    figure: el("div", { class: "card movie" }, el("div", { class: "transport" }, playButton, slider, readout), panelsNode),
    explain() {
      const loss = lossAt(stepNow()), best = heads.map((head) => [head, strongest(head)]).filter(([head, s]) => s && counts(head, s[0])).sort((a, b) => b[1][1] - a[1][1])[0];
      return say("movieExplain")({ step: Math.round(stepNow()), loss: num(loss), perplexity: num(Math.exp(loss), 1), perplexity0: num(Math.exp(points[0] ? points[0].loss : NaN), 0),
        head: best && best[0].name, role: best && roleName(best[1][0]), score: best && score(best[1][1]), score0: best && score(list(best[0].roles[best[1][0]])[0]) });
    },
    numbers: () => ({ columns: [say("step"), say("head"), ...roleNames.map(roleName), say("importanceTitle")],
      rows: steps.flatMap((step, i) => heads.map((head) => [step, head.name, ...roleNames.map((name) => list(head.roles[name])[i]), list(head.importance)[i]])).reverse() }),
  };
  playIcon(false);
  movieView.playing = false;
  queueMicrotask(() => set(movieView.at));
  return part;
}
