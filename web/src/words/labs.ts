// What labs call their numbers, in Chinese. The program names them in English; one that is not here is shown as it is.
import { lang } from "../core/store";

const chinese: Record<string, string> = {
  step: "步数",
};

export const labWord = (english: string): string => (lang() === "zh" ? chinese[english] ?? english : english);
