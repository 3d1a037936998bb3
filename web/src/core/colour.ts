// Colours mean one thing on the whole page: heat is attention, teal is the model's certainty, orange-red is what is
// selected, grey-violet is a length, brick red is what is cut or worse, a role has its own, and of signed numbers blue is
// below zero and amber above.
import { clamp, fullRole, mix } from "./format";

// The stops of the program's own heat maps.
const heatStops = [[12, 8, 38], [66, 15, 100], [135, 36, 102], [205, 66, 71], [246, 128, 23], [252, 228, 120]];
export const heatTable = Array.from({ length: 256 }, (_, i) => {
  const at = (i / 255) * (heatStops.length - 1);
  const low = Math.min(Math.floor(at), heatStops.length - 2);
  return heatStops[low].map((value, c) => Math.round(mix(value, heatStops[low + 1][c], at - low)));
});
export const heatPixels = Uint32Array.from(heatTable, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
export const heatColour = (weight: number): string => `rgb(${heatTable[Math.round(255 * Math.sqrt(clamp(weight, 0, 1)))].join(",")})`;

// Told apart by the colour-blind, on white and on black; a role that has no colour of its own takes a free one.
const roleColours: Record<string, string> = {
  "previous token": "#2f8fe0", "always previous token": "#1d6fb8", induction: "#d6418c", "induction on random tokens": "#a8327a",
  "duplicate token": "#e0a008", "duplicate of random tokens": "#b5853d", "first token": "#8a7fa8", "learned sink": "#6d6390",
  punctuation: "#17a398", separators: "#2a9d5c", "rare word": "#7a9e2f", "current token": "#9b5de5", "next token": "#5fb4ef",
};
const freeColours = ["#c0655e", "#3aa0a8", "#7f6fd0", "#5b8c5a", "#c2589f", "#a5702f", "#4a78c8", "#93a11f", "#8d5a8f", "#d0743c", "#4fa06f"];
const ownColours = Object.keys(roleColours).length;
export function roleColour(short: string): string {
  const name = fullRole(short);
  return (roleColours[name] ??= freeColours[(Object.keys(roleColours).length - ownColours) % freeColours.length]);
}
export const noRole = "#8a8594";

// Series of a plot, by what they are and not by their place in a list.
export const series = { training: "#2f8fe0", heldOut: "#e4572e", Q: "#2f8fe0", K: "#e4572e", V: "#17a398", O: "#e0a008" };
export const seriesColours = ["#2f8fe0", "#e4572e", "#17a398", "#e0a008", "#9b5de5", "#d6418c", "#7a9e2f", "#8a7fa8"];

const below = "#3b7dd8", above = "#d08a00";
// A cell of a matrix: share is |value| over the largest of its matrix.
export const signedColour = (value: number, most: number): string => withAlpha(value < 0 ? below : above, value === 0 ? 0 : 0.1 + (0.6 * Math.abs(value)) / (most || 1));

export function withAlpha(hex: string, alpha: number): string {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r},${g},${b},${clamp(alpha, 0, 1).toFixed(3)})`;
}

// The page's own colours, as canvases need them; read again when day turns to night.
const inkNames = ["paper", "card", "sunk", "line", "text", "soft", "faint", "sure", "accent", "good", "bad"] as const;
export const ink = { font: "", mono: "" } as Record<(typeof inkNames)[number] | "font" | "mono", string>;
export function readInk(): void {
  const style = getComputedStyle(document.documentElement);
  ink.font = style.getPropertyValue("--sans").trim();
  ink.mono = style.getPropertyValue("--mono").trim();
  for (const name of inkNames) ink[name] = style.getPropertyValue(`--${name}`).trim();
}
