// Labs: claims about Transformers as experiments. What was measured for the record, and the same here, on this machine; in a
// file, what qkv lab measured.
import { ask, Failure, live, mayWork } from "../core/api";
import { el, type Child } from "../core/dom";
import { failureNote } from "../core/failure";
import { known, list } from "../core/format";
import { command, cutOff, failure, followJobs, isOver, jobs } from "../core/jobs";
import { report } from "../core/report";
import { section } from "../core/section";
import { computed, effect, onCleanup, signal } from "../core/signal";
import { labCard, sayLabs, type Lab } from "../parts/lab_card";
import { labDoing } from "../words/labs";
import type { Door } from "./door";

const labs = signal<Lab[]>([]);
const inReport = (): readonly Lab[] => list(report().labs as Lab[] | undefined);

function progress(lab: Lab): Child {
  const run = jobs()?.lab;
  if (run?.name !== lab.name || run.state === "finished") return null;
  const { state } = run;
  return el("div", { class: `job ${state}`, "data-state": state },
    el("p", { class: "job-line", role: state === "failed" ? "alert" : "status" }, el("b", {}, sayLabs("states")[state]), isOver(state) ? "" : [el("span", {}, sayLabs("seedOf")(run.seed, run.seeds)), el("span", { class: "fine doing" }, labDoing(run.doing))]),
    state === "failed" ? [el("p", { class: "said" }, run.error ?? ""), el("p", { class: "fine" }, sayLabs("failedHint"))] : "",
    isOver(state) ? "" : el("progress", { max: "1", ...(known(run.share) ? { value: String(run.share) } : {}), "aria-label": sayLabs("states")[state] }));
}

function actions(lab: Lab): Child {
  const mine = computed(() => jobs()?.lab?.name === lab.name && !isOver(jobs()!.lab!.state)), free = computed(() => jobs() !== null && jobs()!.busy === null);
  return el("div", { class: "job-buttons" }, () => (mine()
    ? el("button", { type: "button", class: "small-button", "data-do": "stop", onclick: () => void command("/page/labs/stop") }, sayLabs("stop"))
    : el("button", { type: "button", class: "small-button", "data-do": "run", disabled: !free(), title: free() ? null : sayLabs("busy"), onclick: () => void command("/page/labs/run", { name: lab.name }) }, sayLabs(lab.here ? "again" : "run"))));
}

export const labsDoor: Door = {
  id: "labs",
  name: () => sayLabs("name"),
  here: () => (live() && mayWork()) || inReport().length > 0,
  show() {
    if (!live()) return [el("header", { class: "top" }, el("p", { class: "kicker" }, sayLabs("name")), el("h1", {}, sayLabs("title")), report().made_with ? el("p", { class: "made" }, el("code", {}, report().made_with)) : null),
      section({ id: "labs", title: sayLabs("name"), lead: sayLabs("fileLead"), figure: el("div", { class: "labs" }, inReport().map((lab) => labCard(lab))) })];
    followJobs();
    const abort = new AbortController();
    onCleanup(() => abort.abort());
    const over = computed(() => { const run = jobs()?.lab; return run && isOver(run.state) ? `${run.name} ${run.state}` : ""; });
    effect(() => {  // what was measured here is known when it is over
      over();
      ask<{ labs: Lab[] }>("/page/labs", undefined, abort.signal).then((all) => labs.set(all.labs), (why) => { if (why instanceof Failure) failure.set(why); });
    });
    return section({ id: "labs", title: sayLabs("title"), lead: sayLabs("lead"), figure: el("div", { class: "labs" },
      () => (failure() ? failureNote(failure()!, () => failure.set(null)) : ""), () => (cutOff() ? failureNote(cutOff()!, () => cutOff.set(null)) : ""),
      () => (labs().length ? labs().map((lab) => labCard(lab, [() => progress(lab), actions(lab)])) : el("p", { class: "card fine" }, sayLabs("loading")))) });
  },
};
