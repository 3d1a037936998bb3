// The page's words in the language that is chosen. Doors have words of their own: const say = words({ en: {...}, zh: {...} }).
import { en } from "../words/en";
import { zh } from "../words/zh";
import { lang, type Language } from "./store";

export type Words = typeof en;

// zh must have every word of en, with the same parameters: the compiler checks it.
export function words<W extends object>(all: { en: W; zh: W }): <K extends keyof W>(key: K) => W[K] {
  return (key) => all[lang() as Language][key];
}

export const allWords: { en: Words; zh: Words } = { en, zh };
export const say = words(allWords);
