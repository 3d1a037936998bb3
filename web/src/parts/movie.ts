// The training movie: a slider over the snapshots moves every picture at once.
import type { Picture } from "../core/canvas";
import { roleColour, series } from "../core/colour";
import { el, type Child } from "../core/dom";
import { clamp, known, list, num, roleName, score } from "../core/format";
import { report, type Movie, type Phase } from "../core/report";
import type { Part } from "../core/section";
import { computed, effect, onCleanup, signal } from "../core/signal";
import * as store from "../core/store";
import { say } from "../core/words";
import { calm } from "./ladder";
import { embeddingPicture, rolesPicture } from "./movie_pictures";
import { importancePicture, lossPicture, phaseName, weightsPicture } from "./movie_plots";
import { isRole, MovieView, shownRole } from "./movie_view";

export const playing = signal(false);

// Whatever the movie has; what it gets later, while it grows, is added then.
function panelsOf(view: MovieView): HTMLElement {
  const panel = (title: string, picture: Picture, ...more: Child[]) => {
    effect(() => {
      view.at();
      shownRole();
      picture.paint();
    });
    return el("figure", { class: "panel" }, el("figcaption", {}, title), picture.holder, ...more);
  };
  const where = (has: (movie: Movie) => boolean, make: () => Child): Child => {
    const there = computed(() => has(view.now()));
    return () => (there() ? make() : null);
  };
  const dots = (entries: [string, string][]) => el("p", { class: "legend dots" }, entries.map(([name, colour]) => el("span", {}, el("i", { style: { background: colour } }), name)));
  return el("div", { class: "panels" },
    where(() => view.points.length > 0, () => el("div", { class: "panel-wide" },
      panel(say("lossTitle"), lossPicture(view), where(() => view.vals.length > 0, () => dots([[say("loss"), series.training], [say("val"), series.heldOut]]))),
      where((movie) => list(movie.phases).length > 0, () => phaseList(view)))),
    where((movie) => list(movie.samples).length > 0, () => sample(view)),
    where(() => view.heads.length > 0 && view.roleNames.length > 0, () => panel(say("rolesTitle"), rolesPicture(view), picker(view.roleNames))),
    where((movie) => list(movie.embedding?.x).length > 0, () => panel(say("embeddingTitle"), embeddingPicture(view), el("p", { class: "legend" }, () => say("axesOf")(view.now().embedding?.basis ?? view.steps[view.last])))),
    where(() => view.heads.some((head) => list(head.importance).some(known)), () => panel(say("importanceTitle"), importancePicture(view))),
    where((movie) => list(movie.weights).some((w) => list(w.moved).some(known)), () => {
      const weights = weightsPicture(view);
      return panel(say("weightsTitle"), weights.picture, weights.kinds.length > 1 ? dots(weights.kinds) : "");
    }));
}

export function moviePart(movie: Movie = report().movie!): Part {
  return movieOf(new MovieView(movie));
}

export function movieOf(view: MovieView, more: Partial<Part> = {}): Part {
  return {
    id: "movie", title: say("movieTitle"), lead: say("movieLead"),
    figure: el("div", { class: "card movie" }, transport(view), panelsOf(view)),
    explain() {
      view.now();
      const { heads } = view, loss = view.lossNow(), best = heads.map((head) => [head, view.strongest(head)] as const).filter(([head, s]) => s && view.counts(head, s[0])).sort((a, b) => b[1]![1] - a[1]![1])[0];
      const [head, role] = best ?? [];
      return say("movieExplain")({ step: Math.round(view.stepNow()), loss: num(loss), perplexity: num(Math.exp(loss ?? NaN), 1), perplexity0: num(Math.exp(view.points[0]?.loss ?? NaN), 0),
        head: head?.name, role: role && roleName(role[0]), score: role && score(role[1]), score0: role && score(list(head?.roles?.[role[0]])[0]), basis: view.movie.embedding?.basis ?? view.steps[view.last] });
    },
    numbers() {
      view.now();
      return { columns: [say("step"), say("head"), ...view.roleNames.map(roleName), say("importanceTitle")],
        rows: view.steps.flatMap((step, i) => view.heads.map((head) => [step, head.name, ...view.roleNames.map((name) => list(head.roles?.[name])[i]), list(head.importance)[i]])).reverse() };
    },
    ...more,
  };
}

// Play, the slider, and what moment it is.
function transport(view: MovieView): HTMLElement {
  const set = (at: number) => view.seek(at);
  const slider = el("input", { type: "range", min: "0", step: "any", "aria-label": say("step"),
    "aria-valuetext": () => say("stepN")(Math.round(view.stepNow())),
    oninput: () => { playing.set(false); set(Number(slider.value)); },
    onkeydown(event: KeyboardEvent) {
      const by = ({ ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 } as Record<string, number>)[event.key];
      if (by) { event.preventDefault(); playing.set(false); set(clamp(view.index() + by, 0, view.last)); }
      if (event.key === " ") { event.preventDefault(); playing.set(!playing.peek()); }
    } });
  effect(() => {
    const at = view.at();
    slider.max = String(view.last);
    slider.value = String(at);
  });
  effect(() => {
    if (!playing()) return;
    let at = clamp(store.step.peek() ?? view.last, 0, view.last), before = performance.now(), alive = true;
    if (at >= view.last) store.step.set((at = 0));
    const perSecond = Math.max(view.last / 14, 1.6);
    const frame = (now: number) => {
      if (!alive) return;
      at = Math.min(at + (Math.max(now - before, 0) / 1000) * perSecond, view.last);
      before = now;
      set(calm.matches ? Math.floor(at) : at);  // calm: snapshots one by one, nothing glides
      if (at >= view.last) return playing.set(false);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    onCleanup(() => { alive = false; });
  });
  return el("div", { class: "transport" },
    el("button", { type: "button", class: "play", onclick: () => playing.set(!playing.peek()) }, () => [el("i", { class: playing() ? "icon-pause" : "icon-play" }), say(playing() ? "pause" : "play")]),
    slider,
    el("output", { class: "readout" }, () => [el("b", {}, say("stepN")(Math.round(view.stepNow()))), el("span", {}, say("snapshot")(view.index() + 1, view.steps.length)),
      known(view.lossNow()) ? el("span", {}, `${say("lossTitle")} ${num(view.lossNow())}`) : ""]));
}

function phaseList(view: MovieView): HTMLElement {
  const reasonOf = ({ reason, numbers }: Phase) => {
    const text = (say("reasons") as Record<string, (facts: Record<string, string>) => string>)[reason ?? ""];
    return text ? text(Object.fromEntries(Object.entries(numbers ?? {}).map(([name, x]) => [name, Number.isInteger(x) ? String(x) : num(x)]))) : "";
  };
  return el("ul", { class: "phases" }, () => list(view.now().phases).map((phase) => el("li", { class: () => (known(phase.step) && phase.step <= view.stepNow() ? "past" : "") },
    el("b", {}, phaseName(phase.name)), el("span", {}, known(phase.step) ? say("stepN")(phase.step) : say(view.goesOn() ? "notYet" : "notSeen")), el("small", {}, reasonOf(phase)))));
}

function picker(roleNames: readonly string[]): HTMLElement {
  return el("div", { class: "role-legend", role: "group", "aria-label": say("rolesOverTime") }, ["strongest", ...roleNames].map((name) => el("button", {
    type: "button", class: "role", "data-role": name, "aria-pressed": () => String(shownRole() === name),
    style: { "--role": isRole(name) ? roleColour(name) : "var(--soft)" }, onclick: () => shownRole.set(name),
  }, name === "strongest" ? "" : el("i"), name === "strongest" ? say("strongest") : roleName(name))));
}

function sample(view: MovieView): HTMLElement {
  const now = () => list(view.now().samples).filter((one) => one.step <= view.stepNow() + 0.5).at(-1);
  return el("figure", { class: "panel sample-panel" },
    el("figcaption", {}, say("samplesTitle"), " ", el("small", { class: "fine" }, () => (now() ? say("stepN")(now()!.step) : ""))),
    el("p", { class: "sample" }, () => (now() ? now()!.text || say("emptySample") : say("noSample"))));
}
