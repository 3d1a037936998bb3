// Watch training: a model learns while one looks. The movie is that of qkv movie, growing.
import { live, mayWork } from "../core/api";
import { el, type Child } from "../core/dom";
import { failureNote } from "../core/failure";
import { millions } from "../core/format";
import { command, cutOff, failure, followJobs, isOver, jobs, liveMovie, recipes, type Knobs, type Training } from "../core/jobs";
import { section } from "../core/section";
import { computed, effect, signal } from "../core/signal";
import * as store from "../core/store";
import { words } from "../core/words";
import { movieOf } from "../parts/movie";
import { MovieView } from "../parts/movie_view";
import type { Door } from "./door";

const say = words({
  en: {
    name: "Watch training", title: "Watch a model learn from zero", lead: "Random weights, a few hundred steps, and it can do something. Choose a model, start, and look: every picture grows as it learns.",
    recipe: "Recipe", layers: "Layers", heads: "Heads", width: "Width", language: "Language", seed: "Seed", steps: "Steps", start: "Start training", startAgain: "Start a new training",
    pause: "Pause", resume: "Go on", stop: "Stop and save", languages: { en: "English", zh: "Chinese", both: "English and Chinese" } as Record<string, string>,
    about: { demo: "Rows of words, each said twice: the model must learn to copy. A minute or two on two cores." } as Record<string, string>,
    states: { starting: "Starting …", running: "Training", paused: "Paused", stopping: "Stopping, and saving a checkpoint …", stopped: "Stopped, and saved", finished: "Done", failed: "The training failed" },
    preparing: "Preparing text and tokenizer …", progress: (step: number, of: number) => `step ${step} of ${of}`, left: (time: string) => `about ${time} left`, seconds: (n: number) => (n < 90 ? `${n} s` : `${Math.round(n / 60)} min`),
    model: (d: { layers?: number; heads?: number; width?: number; parameters?: string; language: string; seed?: number }) => `${d.layers} layers × ${d.heads} heads, width ${d.width}${d.parameters ? `, ${d.parameters} parameters` : ""}, ${d.language}, seed ${d.seed}.`,
    kept: (run: string) => `It is kept as ${run} in the server’s folder of runs.`, notKept: "It is removed when the server ends (qkv serve --runs DIR keeps it).",
    failedHint: "Nothing else is affected. Change a value and start again.", other: "A lab is running. One piece of work at a time: wait for it, or stop it in Labs.", movieTitle: "How it learns",
    movieLead: "Drag the slider to look back; at its end it follows the training.", waiting: "The first picture comes with the first step.", explainNone: "Nothing has been trained here yet.", inTerminal: "It runs in the terminal that opened this page; Ctrl-C there stops it.",
  },
  zh: {
    name: "看训练", title: "看一个模型从零学起", lead: "随机的权重，几百步之后就学会一件事。选一个模型，开始，然后看：每张图都随着它学习而生长。",
    recipe: "配方", layers: "层数", heads: "头数", width: "宽度", language: "语言", seed: "种子", steps: "步数", start: "开始训练", startAgain: "开始新的训练",
    pause: "暂停", resume: "继续", stop: "停止并保存", languages: { en: "英文", zh: "中文", both: "英文和中文" } as Record<string, string>,
    about: { demo: "每串词都会再出现一遍：模型必须学会照搬。两个核心上一两分钟。", world: "中英文小故事，440 万参数；适合用 GPU。", "world-2l": "只有两层注意力，用来研究回路。", experts: "八个专家，每个词元用两个。", "experts-dense": "experts 的稠密对照，计算量相同。" } as Record<string, string>,
    states: { starting: "正在启动……", running: "正在训练", paused: "已暂停", stopping: "正在停止，并保存检查点……", stopped: "已停止，已保存", finished: "训练完成", failed: "训练失败" },
    preparing: "正在准备文本和分词器……", progress: (step: number, of: number) => `第 ${step} 步，共 ${of} 步`, left: (time: string) => `大约还要 ${time}`, seconds: (n: number) => (n < 90 ? `${n} 秒` : `${Math.round(n / 60)} 分钟`),
    model: (d: { layers?: number; heads?: number; width?: number; parameters?: string; language: string; seed?: number }) => `${d.layers} 层 × ${d.heads} 个头，宽度 ${d.width}${d.parameters ? `，${d.parameters} 个参数` : ""}，${d.language}，种子 ${d.seed}。`,
    kept: (run: string) => `保存在服务器的训练文件夹里，名为 ${run}。`, notKept: "服务器结束时会删除它（用 qkv serve --runs DIR 可以保留）。",
    failedHint: "其他部分不受影响。改一个值，再开始一次。", other: "一个实验正在进行。一次只做一件事：等它结束，或者在“实验”里停止它。", movieTitle: "它怎样学会",
    movieLead: "拖动滑块可以回看；拖到末端就跟着训练走。", waiting: "走完第一步就有第一张图。", explainNone: "这里还没有训练过模型。", inTerminal: "它在打开本页的终端里运行，在那里按 Ctrl-C 停止。",
  },
});

type KnobName = keyof Knobs;
const choices: Partial<Record<KnobName, (number | string)[]>> = { layers: [1, 2, 3, 4, 6, 8], heads: [1, 2, 4, 8], width: [16, 32, 64, 96, 128, 192, 256], language: ["en", "zh", "both"] };
const chosenRecipe = store.keep("recipe", signal(""));
const turned = store.keep("knobs", signal(""));  // "layers:3,seed:2": what differs from the recipe

const turnedNow = (): Record<string, string> => Object.fromEntries(turned().split(",").filter(Boolean).map((one) => one.split(":") as [string, string]));
const recipeNow = () => recipes().find((one) => one.name === chosenRecipe()) ?? recipes()[0];
// The recipe's; of one language, the page's.
function ownValue(name: KnobName): number | string {
  const own = recipeNow()?.knobs[name] ?? "";
  return name === "language" && own === "en" ? store.lang() : own;
}
function knobNow(name: KnobName): number | string {
  const own = ownValue(name), given = turnedNow()[name];
  return given === undefined ? own : typeof own === "number" ? Number(given) : given;
}
function turn(name: KnobName, value: string): void {
  const all = { ...turnedNow(), [name]: value };
  if (value === "" || value === String(ownValue(name))) delete all[name];
  turned.set(Object.entries(all).map(([key, one]) => `${key}:${one}`).join(","));
}

function knob(name: KnobName): HTMLElement {
  const listed = choices[name];
  const input = listed
    ? el("select", { onchange: (event: Event) => turn(name, (event.target as HTMLSelectElement).value) }, () => [...new Set([...listed, knobNow(name)])].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : 0))
      .map((value) => el("option", { value: String(value), selected: value === knobNow(name) }, name === "language" ? say("languages")[String(value)] ?? String(value) : String(value))))
    : el("input", { type: "number", min: name === "steps" ? "4" : "0", step: "1", value: () => String(knobNow(name)), onchange: (event: Event) => turn(name, (event.target as HTMLInputElement).value) });
  return el("label", { class: "knob", "data-knob": name }, el("span", {}, say(name)), input);
}

const start = (): void => {
  store.step.set(null);
  const knobs = Object.fromEntries((Object.keys(recipeNow()?.knobs ?? {}) as KnobName[]).map((name) => [name, knobNow(name)]));
  void command("/page/training/start", { recipe: recipeNow()?.name, ...knobs });
};

function chooser(again: boolean): Child {
  return el("form", { class: "chooser", onsubmit: (event: Event) => { event.preventDefault(); start(); } },
    el("label", { class: "knob" }, el("span", {}, say("recipe")), el("select", { onchange: (event: Event) => { chosenRecipe.set((event.target as HTMLSelectElement).value); turned.set(""); } },
      () => recipes().map((one) => el("option", { value: one.name, selected: one === recipeNow() }, one.name)))),
    (["layers", "heads", "width", "language", "seed", "steps"] as const).map(knob),
    el("button", { class: "play", "data-do": "start", disabled: () => !recipes().length || jobs()?.busy != null }, el("i", { class: "icon-play" }), say(again ? "startAgain" : "start")),
    el("p", { class: "fine about" }, () => say("about")[recipeNow()?.name ?? ""] ?? recipeNow()?.about ?? ""));
}

// When it will be done, from the steps since the page has looked; a pause begins anew.
let pace = { run: "", step: 0, at: 0 };
function leftOf(training: Training): number | null {
  if (training.state !== "running" || !training.step) return pace = { run: "", step: 0, at: 0 }, null;
  if (pace.run !== training.run || training.step < pace.step) pace = { run: training.run, step: training.step, at: performance.now() };
  const done = training.step - pace.step, seconds = (performance.now() - pace.at) / 1000;
  return done < 3 || seconds < 2 ? null : Math.ceil(((training.steps - training.step) * seconds) / done);
}

function status(): Child {
  const training = jobs()?.training;
  if (!training) return null;
  const { state, step, steps, knobs } = training, left = leftOf(training), preparing = state === "running" && !step;
  return el("div", { class: `job ${state}`, "data-state": state },
    el("p", { class: "job-line", role: state === "failed" ? "alert" : "status" }, el("b", {}, preparing ? say("preparing") : say("states")[state]),
      steps && step ? el("span", {}, say("progress")(step, steps)) : "", left !== null ? el("span", { class: "fine" }, say("left")(say("seconds")(left))) : ""),
    state === "failed" ? el("p", { class: "said" }, training.error ?? "") : "", state === "failed" ? el("p", { class: "fine" }, say("failedHint")) : "",
    el("progress", { max: String(steps || 1), ...(preparing || state === "starting" ? {} : { value: String(step) }), "aria-label": say("states")[state] }),
    knobs.layers ? el("p", { class: "fine" }, say("model")({ ...knobs, parameters: training.parameters ? millions(training.parameters) : undefined, language: say("languages")[knobs.language ?? ""] ?? knobs.language ?? "" }),
      " ", training.followed ? "" : training.kept ? say("kept")(training.run) : say("notKept")) : "");
}

function buttons(): Child {
  const state = () => jobs()?.training?.state ?? "finished";
  const button = (does: "pause" | "resume" | "stop", wanted: () => boolean, icon = "") => {
    const there = computed(wanted);  // made anew only when it comes back: a click that is under way must find it
    return () => (there() ? el("button", { type: "button", class: does === "stop" ? "small-button" : "play", "data-do": does, onclick: () => void command(`/page/training/${does}`) }, icon ? el("i", { class: icon }) : "", say(does)) : null);
  };
  const shown = computed(state), resumable = computed(() => jobs()?.training?.can_resume ?? false), free = computed(() => jobs()?.busy == null), ours = computed(() => !jobs()?.training?.followed);
  return el("div", { class: "job-buttons" },
    button("pause", () => shown() === "running" && ours(), "icon-pause"),
    button("resume", () => shown() === "paused" || ((shown() === "stopped" || shown() === "failed") && resumable() && free()), "icon-play"),
    button("stop", () => ["running", "paused", "starting"].includes(shown()) && ours()),
    () => (ours() || isOver(shown()) ? null : el("p", { class: "fine" }, say("inTerminal"))));
}

function body(): Child {
  const over = computed(() => !jobs()?.training || isOver(jobs()!.training!.state)), any = computed(() => Boolean(jobs()?.training));
  const other = computed(() => jobs()?.busy === "lab");
  return el("div", { class: "card training" },
    () => (failure() ? failureNote(failure()!, () => failure.set(null)) : ""),
    () => (cutOff() ? failureNote(cutOff()!, () => cutOff.set(null)) : ""),
    status, buttons(),
    () => (other() ? el("p", { class: "fine" }, say("other")) : ""),
    () => (over() ? chooser(any()) : null));
}

function grown(): Child {
  const there = computed(() => liveMovie() !== null), any = computed(() => { const state = jobs()?.training?.state; return state !== undefined && state !== "failed"; });
  return () => {
    if (!there()) return any() ? el("p", { class: "card fine" }, say("waiting")) : null;
    const view = new MovieView(liveMovie()!);
    effect(() => { const movie = liveMovie(); if (movie) view.show(movie); });
    return section(movieOf(view, { title: say("movieTitle"), lead: say("movieLead") }));
  };
}

export const trainingDoor: Door = {
  id: "training",
  name: () => say("name"),
  here: () => live() && mayWork(),
  show() {
    followJobs();
    return [section({ id: "training", title: say("title"), lead: say("lead"), figure: el("div", {}, body()) }), grown()];
  },
};
