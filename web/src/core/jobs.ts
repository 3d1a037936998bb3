// Trainings and labs that the server runs: their state as it comes, and the movie of a training as it grows.
import { ask, Failure, listen, live } from "./api";
import { onCleanup, signal } from "./signal";
import type { Movie, Report } from "./report";

export type JobState = "starting" | "running" | "paused" | "stopping" | "stopped" | "finished" | "failed";
export interface Knobs { layers: number; heads: number; width: number; language: string; seed: number; steps: number }
export interface Training { state: JobState; error?: string; recipe: string; run: string; kept: boolean; step: number; steps: number; knobs: Partial<Knobs>; can_resume: boolean; parameters?: number; followed?: boolean }  // followed: started in a terminal
export interface LabRun { state: JobState; error?: string; name: string; seed: number; seeds: number; doing: string; share: number | null }
interface State { version?: number; busy: "training" | "lab" | null; training: Training | null; lab: LabRun | null; movie: number }
export interface Recipe { name: string; about: string; knobs: Knobs }

export const jobs = signal<State | null>(null);
export const recipes = signal<Recipe[]>([]);
export const failure = signal<Failure | null>(null);  // of the last thing that was asked
export const cutOff = signal<Failure | null>(null);   // the stream is, and is tried again
const snapshots = signal<Movie | null>(null);
const losses = signal<NonNullable<Movie["loss"]>>([]);

export const isOver = (state: JobState): boolean => state === "stopped" || state === "finished" || state === "failed";

// What there is of the training's movie, with every loss that was told.
export function liveMovie(): Movie | null {
  const training = jobs()?.training;
  if (!training || (!snapshots() && !losses().length)) return null;
  return { ...(snapshots() ?? { steps: [] }), loss: losses(), ...(training.steps ? { total: training.steps } : {}) };
}

let shownMovie = 0, asking = false;
async function fetchMovie(signal: AbortSignal): Promise<void> {
  const wanted = jobs.peek()?.movie ?? 0;
  if (wanted === 0) {
    shownMovie = 0;
    return snapshots.set(null);
  }
  if (asking || wanted === shownMovie) return;
  asking = true;
  try {
    snapshots.set((await ask<Report>("/page/jobs/movie", undefined, signal)).movie ?? null);
    shownMovie = wanted;
  } catch {
    return;  // the next event asks again
  } finally {
    asking = false;
  }
  void fetchMovie(signal);
}

// The answer to a command may come after events that are newer.
let newest = -1;
function take(state: State): void {
  if ((state.version ?? 0) < newest) return;
  newest = state.version ?? 0;
  jobs.set({ ...state });
}

function hear(name: string, data: unknown, signal: AbortSignal): void {
  cutOff.set(null);
  if (name === "jobs") {
    take(data as State);
    void fetchMovie(signal);
  } else if (name === "loss") {
    const { all, points } = data as { all: boolean; points: [number, number, 0 | 1][] };
    const more = points.map(([step, value, heldOut]) => (heldOut ? { step, val: value } : { step, loss: value }));
    losses.set(all ? more : [...losses.peek(), ...more]);
  }
}

// Listens as long as the surrounding view is open. A stream that breaks is taken up again: the server tells all there is.
export function followJobs(): void {
  if (!live()) return;
  const abort = new AbortController(), { signal } = abort;
  onCleanup(() => abort.abort());
  const run = async () => {
    shownMovie = -1;
    for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 8000)) {
      try {
        const { recipes: offered } = await ask<State & { recipes: Recipe[] }>("/page/jobs", undefined, signal);
        recipes.set(offered);
        newest = -1;  // another server counts anew
        await listen("/page/jobs/events", (name, data) => { wait = 500; hear(name, data, signal); }, signal);
        if (!signal.aborted) cutOff.set(new Failure("gone", ""));
      } catch (why) {
        if (!signal.aborted) cutOff.set(why instanceof Failure ? why : new Failure("gone", String(why)));
      }
      await new Promise((done) => setTimeout(done, wait));
    }
  };
  void run();
}

// Starts, pauses, ends. What the server refuses is said on the page.
export async function command(path: string, body: unknown = {}): Promise<boolean> {
  failure.set(null);
  try {
    const state = await ask<State>(path, body);
    take(state);
    return true;
  } catch (why) {
    if (!(why instanceof Failure)) throw why;
    failure.set(why);
    return false;
  }
}
