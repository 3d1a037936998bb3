// What the pictures of a training share: its snapshots, and the moment that is shown (store.step, between two snapshots
// too; null is the newest). While a training goes on, show() puts a longer movie in the place of the last: every effect that
// read the moment runs again.
import { noRole, roleColour } from "../core/colour";
import { clamp, known, largest, list, mix } from "../core/format";
import type { Movie, MovieHead } from "../core/report";
import { signal } from "../core/signal";
import * as store from "../core/store";

type Values = readonly (number | null | undefined)[] | null | undefined;
export interface SeatedHead extends MovieHead { stack: string; layer: number; seat: number }
export const shownRole = signal("strongest");
const notRoles = new Set(["entropy", "distance"]);
export const isRole = (name: string): boolean => !notRoles.has(name);

export class MovieView {
  movie!: Movie;
  steps!: readonly number[];
  last!: number;
  points!: { step: number; loss: number }[];
  vals!: { step: number; val: number }[];
  xHigh!: number;
  heads!: SeatedHead[];
  roleNames!: string[];
  private scales!: Record<string, number>;
  private readonly version = signal(0);

  constructor(movie: Movie) {
    this.show(movie);
  }

  show(movie: Movie): void {
    this.movie = movie;
    this.steps = list(movie.steps);
    this.last = Math.max(this.steps.length - 1, 0);
    this.points = list(movie.loss).flatMap((p) => (known(p.step) && known(p.loss) ? [{ step: p.step, loss: p.loss }] : []));
    this.vals = list(movie.loss).flatMap((p) => (known(p.step) && known(p.val) ? [{ step: p.step, val: p.val }] : []));
    this.xHigh = Math.max(this.steps[this.last] ?? 0, this.points.at(-1)?.step ?? 0, movie.total ?? 0);
    this.heads = list(movie.heads).map((head) => {
      const found = /^([EX]?)L?(\d+)H?(\d+)?/.exec(head.name) ?? [];
      return { ...head, stack: found[1] || "", layer: Number(found[2] || 0), seat: Number(found[3] || 0) };
    });
    this.roleNames = [...new Set(this.heads.flatMap((head) => Object.keys(head.roles ?? {})))];
    // Roles are shares; what is no role may be larger (a distance in tokens) and is drawn as a share of its largest.
    this.scales = Object.fromEntries(this.roleNames.map((name) => [name, Math.max(1, largest(this.heads.flatMap((head) => list(head.roles?.[name]))))]));
    this.version.set(this.version.peek() + 1);
  }

  // For what does not depend on the moment, but on the movie.
  now(): Movie {
    this.version();
    return this.movie;
  }
  at(): number {
    this.version();
    return clamp(store.step() ?? this.last, 0, this.last);
  }
  index(): number {
    return clamp(Math.round(this.at()), 0, this.last);
  }
  // A value between two snapshots.
  between(values: Values): number | null {
    const low = Math.floor(this.at()), high = Math.min(low + 1, this.last), a = list(values)[low], b = list(values)[high];
    return known(a) && known(b) ? mix(a, b, this.at() - low) : known(a) ? a : null;
  }
  // Of the snapshots; the log of a training that goes on is ahead of them.
  snapshotStep(): number {
    return this.between(this.steps) ?? 0;
  }
  stepNow(): number {
    return Math.max(this.snapshotStep(), store.step() === null ? this.points.at(-1)?.step ?? 0 : 0);
  }
  goesOn(): boolean {
    return (this.steps[this.last] ?? 0) < (this.movie.total ?? 0);
  }
  // The end is the newest moment, also when it moves on.
  seek(at: number): void {
    store.step.set(at >= this.last ? null : at);
  }
  lossNow(): number | null {
    let best: number | null = null;
    for (const p of this.points) if (p.step <= this.stepNow() || best === null) best = p.loss;
    return best;
  }
  // The moment of a step of the training.
  atStep(step: number): number {
    let at = 0;
    while (at < this.last && this.steps[at + 1] <= step) ++at;
    return clamp(at + (at < this.last ? (step - this.steps[at]) / (this.steps[at + 1] - this.steps[at]) : 0), 0, this.last);
  }

  // The program's own rule: the whole interval is at or above the threshold. Otherwise a head has no role and no colour.
  counts(head: SeatedHead, name: string): boolean {
    const low = this.between(head.intervals?.[name]?.low);
    return known(low) && low >= (this.movie.thresholds?.[name] ?? Infinity);
  }
  strongest(head: SeatedHead): [string, number] | null {
    const all = Object.entries(head.roles ?? {}).filter(([name]) => isRole(name)).map(([name, values]) => [name, this.between(values)] as [string, number]).filter(([, x]) => known(x));
    const held = all.filter(([name]) => this.counts(head, name));
    return (held.length ? held : all).reduce<[string, number] | null>((best, now) => (!best || now[1] > best[1] ? now : best), null);
  }
  colourOf(head: SeatedHead, name: string): string {
    return !isRole(name) || (shownRole() === "strongest" && !this.counts(head, name)) ? noRole : roleColour(name);
  }
  share(name: string, value: number): number {
    return value / (this.scales[name] ?? 1);
  }
}
