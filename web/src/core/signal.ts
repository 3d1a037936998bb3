// Signals: values that know who read them. An effect runs again when a signal it read changes; effects made inside
// it end first, so a view that is built anew leaves nothing behind.

class Effect {
  sources = new Set<Set<Effect>>();
  cleanups: (() => void)[] = [];
  dead = false;
  constructor(readonly work: () => void) {}

  run(): void {
    if (this.dead) return;
    this.clear();
    const before = current;
    current = this;
    try {
      this.work();
    } finally {
      current = before;
    }
  }
  clear(): void {
    for (const readers of this.sources) readers.delete(this);
    this.sources.clear();
    for (const cleanup of this.cleanups.splice(0)) cleanup();
  }
  end(): void {
    this.dead = true;
    this.clear();
  }
}

let current: Effect | null = null;
const waiting = new Set<Effect>();

function flush(): void {
  for (const effect of waiting) {  // what is added meanwhile runs too
    waiting.delete(effect);
    effect.run();
  }
}
function schedule(effect: Effect): void {
  if (!waiting.size) queueMicrotask(flush);
  waiting.add(effect);
}

export interface Signal<T> {
  (): T;             // reads, and is remembered
  peek(): T;         // reads only
  set(next: T): void;
}

export function signal<T>(value: T): Signal<T> {
  const readers = new Set<Effect>();
  const read = (() => {
    if (current) {
      readers.add(current);
      current.sources.add(readers);
    }
    return value;
  }) as Signal<T>;
  read.peek = () => value;
  read.set = (next) => {
    if (Object.is(next, value)) return;
    value = next;
    for (const reader of [...readers]) schedule(reader);
  };
  return read;
}

// Runs now and after every change of what it read. Returns what ends it.
export function effect(work: () => void): () => void {
  const made = new Effect(work);
  onCleanup(() => made.end());
  made.run();
  return () => made.end();
}

export function computed<T>(work: () => T): () => T {
  const value = signal(undefined as T);
  effect(() => value.set(work()));
  return value;
}

// Runs before the surrounding effect runs again or ends.
export function onCleanup(work: () => void): void {
  if (current) current.cleanups.push(work);
}

export function untracked<T>(work: () => T): T {
  const before = current;
  current = null;
  try {
    return work();
  } finally {
    current = before;
  }
}
