// The wall of heads: a thumbnail of every head, the large map of one, and where one token looks.

const thumb = 64;  // cells of a thumbnail; larger maps show the largest weight of each patch
const wallView = { head: null, locked: false, row: -1, column: -1, hideFirst: true, filter: null, ready: new Set() };

const queriesOf = (head) => (head.queries === "source" ? report.source : report.tokens) || [];
const keysOf = (head) => (head.keys === "source" ? report.source : report.tokens) || [];

// A report lists the roles that were found, none other; no list at all: nobody looked for them.
const hasRoles = (head) => Array.isArray(head.roles);
// The one that explains most of a head's attention stands first.
const strongestRole = (head) => list(head.roles).find((role) => known(role.score)) || null;

// [queries][keys] of 255 * sqrt(weight). A long text has no map: there the largest weights of each row stand alone.
const maps = new Map();
function mapOf(head) {
  if (maps.has(head.name)) return maps.get(head.name);
  const rows = queriesOf(head).length, columns = keysOf(head).length;
  let values = null;
  if (head.map) {
    const text = atob(head.map);
    if (text.length === rows * columns) {
      values = new Uint8Array(text.length);
      for (let i = 0; i < text.length; ++i) values[i] = text.charCodeAt(i);
    }
  }
  const top = list(head.top);
  const made = { values, top, rows, columns, causal: false };
  made.causal = head.queries === head.keys && !looksRight(made);
  maps.set(head.name, made);
  return made;
}
function looksRight({ values, top, rows, columns }) {
  if (!values) return top.some((row, i) => list(row).some(([key, weight]) => key > i && weight > 0));
  for (let i = 0; i < rows; ++i) for (let j = i + 1; j < columns; ++j) if (values[i * columns + j]) return true;
  return false;
}
function weightAt(map, i, j) {
  if (map.values) return (map.values[i * map.columns + j] / 255) ** 2;
  const found = list(map.top[i]).find(([key]) => key === j);
  return found ? found[1] : 0;
}
// The mean entropy in nats of a head that looks at all it may see alike.
function mostEntropy({ rows, columns, causal }) {
  if (!causal) return Math.log(columns);
  let sum = 0;
  for (let i = 1; i <= rows; ++i) sum += Math.log(Math.min(i, columns));
  return sum / rows;
}
const hidesFirst = (head) => wallView.hideFirst && head.stack !== "cross";

// Pixels of a map, pooled to at most size x size cells. What may not be seen stays clear.
function drawPixels(head, size) {
  const map = mapOf(head), skip = hidesFirst(head);
  const height = Math.min(map.rows, size) || 1, width = Math.min(map.columns, size) || 1;
  const pooled = new Uint8Array(width * height);
  const columnOf = Uint16Array.from({ length: map.columns }, (_, j) => Math.floor((j * width) / map.columns));
  for (let i = 0; i < map.rows; ++i) {
    const to = Math.floor((i * height) / map.rows) * width, from = i * map.columns;
    if (!map.values) {
      for (const [j, weight] of list(map.top[i])) {
        const value = Math.round(255 * Math.sqrt(clamp(weight, 0, 1))), place = to + columnOf[j];
        if (!(skip && j === 0) && value > pooled[place]) pooled[place] = value;
      }
      continue;
    }
    const end = map.causal ? Math.min(i + 1, map.columns) : map.columns;
    for (let j = skip ? 1 : 0; j < end; ++j) {
      const value = map.values[from + j], place = to + columnOf[j];
      if (value > pooled[place]) pooled[place] = value;
    }
  }
  const made = el("canvas", { width, height });
  const context = made.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < height; ++i) {
    const lastRow = Math.ceil(((i + 1) * map.rows) / height);
    for (let j = skip && width === map.columns ? 1 : 0; j < width; ++j) {
      if (map.causal && Math.floor((j * map.columns) / width) >= lastRow) break;
      pixels[i * width + j] = heatPixels[pooled[i * width + j]];
    }
  }
  context.putImageData(image, 0, 0);
  return made;
}

function wallPart() {
  const heads = report.heads.filter((head) => known(head.layer) && known(head.head) && queriesOf(head).length && keysOf(head).length);
  const stacks = ["encoder", "decoder", "cross"].map((name) => ({ name, heads: heads.filter((head) => (head.stack || "decoder") === name) }))
    .filter((stack) => stack.heads.length);
  // The head to begin with: who aligns best in a translation, else the clearest role that is more than resting on the first token.
  const interest = (head) => {
    const role = strongestRole(head);
    if (head.stack === "cross") return 100 - (head.entropy || 0);
    return role ? role.score - (["first token", "learned sink"].includes(role.name) ? 1 : 0) : -1;
  };
  const start = () => heads.reduce((best, head) => (interest(head) > interest(best) ? head : best));
  wallView.head = heads.find((head) => location.hash === "#" + encodeURIComponent(head.name)) || wallView.head || start();
  const thumbs = new Map();
  const walls = stacks.map(makeWall);

  // Thumbnails are made a few at a time, so that a large wall never holds the page.
  let queue = [];
  function fill() {
    thumbs.clear();
    queue = stacks.flatMap((stack) => stack.heads);
    requestAnimationFrame(work);
  }
  function work() {
    const until = performance.now() + 8;
    while (queue.length && performance.now() < until) {
      const head = queue.shift();
      thumbs.set(head, drawPixels(head, thumb));
    }
    walls.forEach((wall) => wall.paint());
    if (queue.length && walls[0].holder.isConnected) requestAnimationFrame(work);
    else wallView.ready.add("thumbs");
  }

  function makeWall(stack) {
    const layers = Math.max(...stack.heads.map((head) => head.layer)) + 1;
    const across = Math.max(...stack.heads.map((head) => head.head)) + 1;
    const seats = new Map(stack.heads.map((head) => [head.layer * across + head.head, head]));
    const gap = 8, left = 30, letter = (/^[A-Za-z]+/.exec(stack.heads[0].name) || ["L"])[0];
    const size = (width) => clamp(Math.floor((width - left) / across) - gap, 26, 124);
    const place = (head, s) => ({ x: left + head.head * (s + gap) + 2, y: (layers - 1 - head.layer) * (s + gap) + 4 });
    let inner = 0;
    const picture = canvas(say("wallTitle"), (width) => layers * (size(width) + gap) + 26, (context, width) => {
      const s = size(width);
      inner = s;
      context.imageSmoothingEnabled = false;
      context.font = `11px ${ink.mono}`;
      context.textAlign = "right";
      context.fillStyle = ink.soft;
      for (let layer = 0; layer < layers; ++layer) context.fillText(`${letter}${layer}`, left - 8, (layers - 1 - layer) * (s + gap) + 4 + s / 2);
      context.textAlign = "center";
      const every = s < 30 && across > 16 ? 2 : 1;
      for (let h = 0; h < across; h += every) context.fillText(`H${h}`, left + h * (s + gap) + 2 + s / 2, layers * (s + gap) + 12);
      for (const head of stack.heads) drawThumb(context, head, place(head, s), s);
    });
    const minimum = left + across * (26 + gap) + 6;
    picture.holder.style.minWidth = `${minimum}px`;
    const scroller = el("div", { class: "wall", tabindex: "0", role: "application", "aria-label": say("stacks")[stack.name] + ". " + say("wallHint"), "data-stack": stack.name }, picture.holder);
    const hit = (event) => {
      const { x, y } = pointIn(picture.node, event), pitch = inner + gap;
      return seats.get((layers - 1 - Math.floor((y - 2) / pitch)) * across + Math.floor((x - left) / pitch));
    };
    scroller.addEventListener("pointermove", (event) => {
      const head = hit(event);
      scroller.style.cursor = head ? "pointer" : "";
      if (head && !wallView.locked && event.pointerType !== "touch") show(head);
    });
    scroller.addEventListener("click", (event) => {
      const head = hit(event);
      if (!head) return;
      wallView.locked = !(wallView.locked && wallView.head === head);
      show(head);
    });
    scroller.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      const from = stack.heads.includes(wallView.head) ? wallView.head : stack.heads[0];
      if (event.key === "Escape") wallView.locked = false;
      else if (event.key === "Enter" || event.key === " ") wallView.locked = !wallView.locked;
      else if (move) wallView.locked = true;
      else return;
      event.preventDefault();
      const seat = move ? clamp(from.layer + move[0], 0, layers - 1) * across + clamp(from.head + move[1], 0, across - 1) : 0;
      show((move && seats.get(seat)) || from);
    });
    return { ...picture, scroller, stack, top: (head) => place(head, inner).y };
  }

  function drawThumb(context, head, { x, y }, s) {
    const role = strongestRole(head);
    const dim = wallView.filter && (role ? role.name : "none") !== wallView.filter;
    context.globalAlpha = dim ? 0.14 : 1;
    context.fillStyle = ink.sunk;
    box(context, x - 1, y - 1, s + 2, s + 2, 4);
    context.fill();
    context.save();
    context.clip();
    const image = thumbs.get(head);
    if (image) context.drawImage(image, x, y, s, s);
    context.restore();
    context.lineWidth = role ? 2.5 : 1;
    context.strokeStyle = role ? roleColour(role.name) : ink.line;
    box(context, x - 1, y - 1, s + 2, s + 2, 4);
    context.stroke();
    context.globalAlpha = 1;
    if (head === wallView.head) {
      context.lineWidth = 2;
      context.strokeStyle = ink.text;
      box(context, x - 4, y - 4, s + 8, s + 8, 6);
      context.stroke();
    }
  }

  // --- the legend, which also filters ---
  const counts = new Map();
  for (const head of heads) {
    const role = strongestRole(head);
    counts.set(role ? role.name : "none", (counts.get(role ? role.name : "none") || 0) + 1);
  }
  const order = [...counts.keys()].sort((a, b) => (a === "none") - (b === "none") || counts.get(b) - counts.get(a));
  const legend = el("div", { class: "role-legend", role: "group" }, order.map((name) => el("button", {
    type: "button", class: "role", "data-role": name, "aria-pressed": String(wallView.filter === name),
    style: { "--role": name === "none" ? "var(--line)" : roleColour(name) },
    onclick(event) {
      wallView.filter = wallView.filter === name ? null : name;
      legend.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.role === wallView.filter)));
      walls.forEach((wall) => wall.paint());
      event.stopPropagation();
    },
  }, el("i"), name === "none" ? say("noRole") : roleName(name), el("small", {}, String(counts.get(name))))));

  const hideBox = el("input", { type: "checkbox", checked: wallView.hideFirst, onchange() {
    wallView.hideFirst = hideBox.checked;
    fill();
    show(wallView.head);
  } });

  // --- the large map ---
  const name = el("h3", { class: "map-name" });
  const big = canvas(say("wallTitle"), (width) => {
    const g = geometry(width);
    return g.top + g.cell * g.map.rows + 4;
  }, drawBig);
  big.holder.classList.add("bigmap");
  big.holder.tabIndex = 0;
  const reading = el("p", { class: "reading", "aria-live": "polite" });
  const strip = el("div", { class: "strip" });
  const roles = el("div", { class: "roles" });
  let pixels = null;

  function geometry(width) {
    const map = mapOf(wallView.head);
    const left = clamp(width * 0.17, 48, 84), top = 64;
    const cell = Math.min((width - left - 6) / map.columns, Math.max(440, width * 0.6) / map.rows, 40);
    return { map, left, top, cell, width: cell * map.columns };
  }

  function drawBig(context, width) {
    const head = wallView.head, { map, left, top, cell } = geometry(width);
    if (!pixels || pixels.head !== head || pixels.hide !== wallView.hideFirst) {
      pixels = { head, hide: wallView.hideFirst, image: drawPixels(head, 1024) };
    }
    const w = cell * map.columns, h = cell * map.rows;
    context.fillStyle = ink.sunk;
    context.fillRect(left, top, w, h);
    context.imageSmoothingEnabled = false;
    context.drawImage(pixels.image, left, top, w, h);
    const queries = queriesOf(head), keys = keysOf(head);
    const row = wallView.row, column = wallView.column;
    if (row >= 0) {
      context.strokeStyle = "rgba(255,255,255,0.85)";
      context.lineWidth = 1;
      context.strokeRect(left + 0.5, top + row * cell + 0.5, w - 1, Math.max(cell - 1, 1));
      if (column >= 0) context.strokeRect(left + column * cell + 0.5, top + 0.5, Math.max(cell - 1, 1), h - 1);
    }
    const size = clamp(cell * 0.72, 9, 13);
    const every = Math.max(Math.ceil(11 / cell), 1);
    context.textAlign = "right";
    for (let i = 0; i < map.rows; ++i) {
      const lit = i === row;
      if (!lit && (every > 1 ? i % every || Math.abs(i - row) < every : false)) continue;
      context.font = `${lit ? "600 " : ""}${lit ? Math.max(size, 12) : size}px ${ink.font}`;
      context.fillStyle = lit ? ink.accent : ink.soft;
      context.fillText(fitText(context, axisName(queries, i), left - 10), left - 6, top + (i + 0.5) * cell);
    }
    context.textAlign = "left";
    for (let j = 0; j < map.columns; ++j) {
      const lit = j === column;
      if (!lit && (every > 1 ? j % every || (column >= 0 && Math.abs(j - column) < every) : false)) continue;
      context.save();
      context.translate(left + (j + 0.5) * cell, top - 6);
      context.rotate(-Math.PI / 3);
      context.font = `${lit ? "600 " : ""}${lit ? Math.max(size, 12) : size}px ${ink.font}`;
      context.fillStyle = lit ? ink.accent : ink.soft;
      context.fillText(fitText(context, axisName(keys, j), 62), 0, 0);
      context.restore();
    }
  }

  function bigHit(event) {
    const { x, y } = pointIn(big.node, event), g = geometry(big.holder.clientWidth);
    const row = Math.floor((y - g.top) / g.cell), column = Math.floor((x - g.left) / g.cell);
    return row >= 0 && row < g.map.rows && x > 0 ? { row, column: column >= 0 && column < g.map.columns ? column : -1 } : null;
  }
  big.holder.addEventListener("pointermove", (event) => {
    const found = bigHit(event);
    if (found) point(found.row, found.column);
  });
  big.holder.addEventListener("click", (event) => {
    const found = bigHit(event);
    if (found) point(found.row, found.column);
  });
  big.holder.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const map = mapOf(wallView.head);
    point(clamp(wallView.row + move[0], 0, map.rows - 1), clamp(Math.max(wallView.column, 0) + move[1], 0, map.columns - 1));
  });

  // The keys of one row, largest first: exact where the report has them, from the map otherwise.
  function topKeys(head, row) {
    const exact = list(list(head.top)[row]);
    if (exact.length) return exact;
    const map = mapOf(head);
    return Array.from({ length: map.columns }, (_, j) => [j, weightAt(map, row, j)]).sort((a, b) => b[1] - a[1]).slice(0, 8);
  }
  function exactWeight(head, row, column) {
    const found = list(list(head.top)[row]).find(([key]) => key === column);
    return found ? found[1] : weightAt(mapOf(head), row, column);
  }

  function point(row, column) {
    const head = wallView.head, keys = keysOf(head), queries = queriesOf(head), map = mapOf(head);
    const newRow = row !== wallView.row || strip.dataset.head !== head.name + state.lang + wallView.hideFirst;
    wallView.row = row;
    wallView.column = column;
    if (newRow) {
      strip.dataset.head = head.name + state.lang + wallView.hideFirst;
      if (strip.dataset.keys !== head.keys) strip.replaceChildren(...chips(keys).childNodes);
      strip.dataset.keys = head.keys;
      strip.querySelectorAll(".chip").forEach((node, j) => {
        node.style.setProperty("--p", (hidesFirst(head) && j === 0 ? 0 : Math.sqrt(weightAt(map, row, j))).toFixed(3));
        node.classList.toggle("unseen", map.causal && j > row);
        node.classList.toggle("asking", head.queries === head.keys && j === row);
      });
    }
    strip.querySelectorAll(".chip").forEach((node, j) => node.classList.toggle("answering", j === column));
    reading.textContent = column >= 0 ? say("looksAt")(tokenName(queries, row), tokenName(keys, column), percent(exactWeight(head, row, column)))
      : say("rowOf")(tokenName(queries, row));
    big.paint();
    part.refresh && part.refresh();
  }

  function meanFirst(head) {
    const map = mapOf(head);
    let sum = 0;
    for (let i = 1; i < map.rows; ++i) sum += weightAt(map, i, 0);
    return map.rows > 1 ? sum / (map.rows - 1) : null;
  }

  function show(head) {
    const same = wallView.head === head;
    wallView.head = head;
    const role = strongestRole(head);
    name.replaceChildren(el("b", {}, head.name), !hasRoles(head) ? "" : el("span", { class: "role-tag", style: { "--role": role ? roleColour(role.name) : "var(--line)" } }, role ? roleName(role.name) : say("noRole")),
      wallView.locked ? el("button", { type: "button", class: "lock", onclick() { wallView.locked = false; show(wallView.head); } }, `${say("locked")} · ${say("unlock")}`) : "");
    panel.classList.toggle("is-locked", wallView.locked);
    const meter = (label, value, colour, note, text) => el("div", { class: "meter" }, el("span", {}, label),
      el("span", { class: "bar-track" }, el("i", { style: { width: `${clamp(value, 0, 1) * 100}%`, background: colour || "" } }),
        note && known(note.low) ? el("em", { style: { left: `${clamp(note.low, 0, 1) * 100}%`, width: `${clamp(note.high - note.low, 0, 1) * 100}%` } }) : null),
      el("span", { class: "bar-value" }, text ?? score(value)), el("small", {}, note && known(note.n) ? `n ${note.n}` : text ? say("nats") : ""));
    roles.replaceChildren(...[...list(head.roles)].sort((a, b) => b.score - a.score).slice(0, 6).map((r) => meter(roleName(r.name), r.score, roleColour(r.name), r)),
      known(head.entropy) ? meter(say("entropy"), head.entropy / (mostEntropy(mapOf(head)) || 1), "var(--soft)", null, score(head.entropy)) : "",
      head.stack !== "cross" && known(meanFirst(head)) ? meter(say("firstMass"), meanFirst(head), "var(--faint)") : "");
    walls.forEach((wall) => wall.paint());
    const rows = queriesOf(head).length, columns = keysOf(head).length;
    point(wallView.row >= 0 && wallView.row < rows ? wallView.row : rows - 1, same && wallView.column < columns ? wallView.column : -1);
    if (wallView.locked) history.replaceState(null, "", "#" + encodeURIComponent(head.name));  // an address for this head
  }

  const panel = el("div", { class: "map-panel" }, name, big.holder, reading, strip, roles);
  const part = {
    id: "wall", title: say("wallTitle"), lead: say(heads.some(hasRoles) ? "wallLead" : "wallLeadPlain"),
    figure: el("div", { class: "card wall-grid" },
      el("div", { class: "walls" },
        el("div", { class: "wall-tools" }, counts.size > 1 || !counts.has("none") ? legend : null, el("label", { class: "check" }, hideBox, say("hideFirst"))),
        walls.map((wall) => [stacks.length > 1 ? el("h3", {}, say("stacks")[wall.stack.name]) : null, wall.scroller]),
        el("p", { class: "legend" }, "0 %", el("i", { class: "ramp-heat" }), "100 %"), el("p", { class: "hint" }, say("wallHint"))),
      panel),
    explain() {
      const head = wallView.head, row = Math.max(wallView.row, 0), top = topKeys(head, row).filter(([, w]) => w > 0).slice(0, 4), role = strongestRole(head);
      const rest = 1 - top.reduce((sum, [, weight]) => sum + weight, 0);
      return say("wallExplain")({
        head: head.name, q: tokenName(queriesOf(head), row), entropy: score(head.entropy), most: score(mostEntropy(mapOf(head))),
        parts: [...top.map(([key, weight]) => `${percent(weight)} “${tokenName(keysOf(head), key)}”`), rest > 0.0005 ? `${percent(rest)} ${say("rest")}` : ""].filter(Boolean).join(" + "),
        role: !hasRoles(head) ? "" : !role ? say("roleNone") : known(role.low) ? say("roleLine")(roleName(role.name), score(role.score), score(role.low), score(role.high), role.n) : say("roleLinePlain")(roleName(role.name), score(role.score)),
      });
    },
    numbers() {
      const head = wallView.head;
      return { columns: [say("head"), say("query"), "1", "A₁", "2", "A₂", "3", "A₃"], rows: queriesOf(head).map((_, i) => {
        const top = topKeys(head, i);
        return [head.name, tokenName(queriesOf(head), i), ...[0, 1, 2].flatMap((k) => (top[k] ? [tokenName(keysOf(head), top[k][0]), top[k][1]] : ["", null]))];
      }) };
    },
  };
  queueMicrotask(() => { fill(); show(wallView.head); });
  return part;
}
