// What a part of the page shows, as one SVG: boxes, texts line by line, canvases drawn anew as vectors.
import { drawnAgain } from "../core/canvas";
import { fontOf, short, SvgContext, xml } from "./svg_context";

export interface SvgFile { text: string; width: number; height: number }

const measuring = document.createElement("canvas").getContext("2d")!;
const graphemes = new Intl.Segmenter();
let ids = 0;

export function svgOf(node: HTMLElement): SvgFile {
  const box = node.getBoundingClientRect(), margin = 16;
  const width = Math.ceil(box.width + 2 * margin), height = Math.ceil(box.height + 2 * margin);
  const paper = getComputedStyle(document.body).backgroundColor;
  const drawn = drawElement(node, { x: box.left - margin, y: box.top - margin });
  return { width, height, text: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><rect width="${width}" height="${height}" fill="${paper}"/>${drawn}</svg>` };
}

interface Origin { x: number; y: number }
const clear = (colour: string): boolean => colour === "transparent" || /, 0\)$|\/ 0\)$/.test(colour);

function drawElement(node: Element, origin: Origin): string {
  const style = getComputedStyle(node), box = node.getBoundingClientRect();
  if (style.display === "none" || style.visibility === "hidden" || node.matches("[data-unsaved], .skip, option")) return "";
  if (!box.width || !box.height) return style.display === "contents" ? children(node, origin) : "";
  const at = { x: box.left - origin.x, y: box.top - origin.y, w: box.width, h: box.height };
  const boxes = style.display === "inline" ? [...node.getClientRects()].map((one) => ({ x: one.left - origin.x, y: one.top - origin.y, w: one.width, h: one.height })) : [at];  // a line each
  let made = boxes.map((one) => drawBox(style, one)).join("");
  if (node instanceof HTMLCanvasElement) made += drawCanvas(node, at);
  else if (node instanceof SVGSVGElement) made += drawSvg(node, at);
  else if (node instanceof HTMLInputElement) made += node.type === "checkbox" ? `<rect x="${short(at.x)}" y="${short(at.y)}" width="${short(at.w)}" height="${short(at.h)}" rx="2" fill="${node.checked ? style.accentColor : "none"}" stroke="${style.color}"/>` : "";
  else if (node instanceof HTMLSelectElement) made += line(node.selectedOptions[0]?.text ?? "", at.x + 10, at.y, at.h, style);
  else made += children(node, origin);
  if (/auto|scroll|hidden|clip/.test(style.overflowX + style.overflowY)) {
    const id = `box${++ids}`;
    made = `<clipPath id="${id}"><rect x="${short(at.x)}" y="${short(at.y)}" width="${short(at.w)}" height="${short(at.h)}"/></clipPath><g clip-path="url(#${id})">${made}</g>`;
  }
  return Number(style.opacity) < 1 ? `<g opacity="${style.opacity}">${made}</g>` : made;
}

function children(node: Element, origin: Origin): string {
  let made = "";
  for (const child of node.childNodes) {
    if (child instanceof Element) made += drawElement(child, origin);
    else if (child instanceof Text && child.data.trim()) made += drawText(child, origin);
  }
  return made;
}

function drawBox(style: CSSStyleDeclaration, { x, y, w, h }: { x: number; y: number; w: number; h: number }): string {
  const sides = (["Top", "Right", "Bottom", "Left"] as const).map((side) => ({ wide: style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]), colour: style[`border${side}Color`] }));
  const even = sides.every((side) => side.wide === sides[0].wide && side.colour === sides[0].colour);
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, w / 2, h / 2);
  let fill = clear(style.backgroundColor) ? "none" : style.backgroundColor, definition = "";
  const ramp = /^linear-gradient\(90deg, (.*)\)$/.exec(style.backgroundImage);
  if (ramp) {
    const stops = ramp[1].match(/(?:rgb|color|oklab)[a-z]*\([^)]*\)/g) ?? [], id = `ramp${++ids}`;
    definition = `<linearGradient id="${id}">${stops.map((colour, i) => `<stop offset="${short(i / Math.max(stops.length - 1, 1))}" stop-color="${colour}"/>`).join("")}</linearGradient>`;
    if (stops.length) fill = `url(#${id})`;
  }
  const stroke = even && sides[0].wide && !clear(sides[0].colour) ? ` stroke="${sides[0].colour}" stroke-width="${sides[0].wide}"` : "";
  const inset = stroke ? sides[0].wide / 2 : 0;
  let made = fill !== "none" || stroke ? `${definition}<rect x="${short(x + inset)}" y="${short(y + inset)}" width="${short(Math.max(w - 2 * inset, 0))}" height="${short(Math.max(h - 2 * inset, 0))}" rx="${short(radius)}" fill="${fill}"${stroke}/>` : "";
  if (!even) {
    const lines = [[x, y, w, 0], [x + w, y, 0, h], [x, y + h, w, 0], [x, y, 0, h]];
    sides.forEach(({ wide, colour }, i) => { if (wide && !clear(colour)) made += `<path d="M${short(lines[i][0])} ${short(lines[i][1])}l${short(lines[i][2])} ${short(lines[i][3])}" stroke="${colour}" stroke-width="${wide}"/>`; });
  }
  const outline = parseFloat(style.outlineWidth);
  if (style.outlineStyle !== "none" && outline) made += `<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" rx="${short(radius)}" fill="none" stroke="${style.outlineColor}" stroke-width="${outline}"/>`;
  return made;
}

// A text node: one <text> for each line it stands on.
function drawText(node: Text, origin: Origin): string {
  const style = getComputedStyle(node.parentElement!), range = document.createRange();
  range.selectNodeContents(node);
  const draw = (text: string, box: DOMRect) => (text.trim() ? line(text, box.left - origin.x, box.top - origin.y, box.height, style) : "");
  const boxes = range.getClientRects();
  if (boxes.length <= 1) return boxes[0] ? draw(node.data, boxes[0]) : "";
  let made = "", text = "", first: DOMRect | null = null;
  for (const { segment, index } of graphemes.segment(node.data)) {
    range.setStart(node, index);
    range.setEnd(node, index + segment.length);
    const box = range.getClientRects()[0];
    if (!box) continue;
    if (first && Math.abs(box.top - first.top) > 2) {
      made += draw(text, first);
      text = "";
      first = null;
    }
    first ??= box;
    text += segment;
  }
  return made + (first ? draw(text, first) : "");
}

function line(text: string, x: number, top: number, high: number, style: CSSStyleDeclaration): string {
  measuring.font = style.font;
  const size = measuring.measureText(text), whole = size.fontBoundingBoxAscent + size.fontBoundingBoxDescent;
  const y = top + (high - whole) / 2 + size.fontBoundingBoxAscent, spaces = style.whiteSpace.startsWith("pre") ? text : text.replace(/\s+/g, " ");
  const struck = style.textDecorationLine === "none" || !style.textDecorationLine ? "" : ` text-decoration="${style.textDecorationLine}"`;
  return `<text x="${short(x)}" y="${short(y)}" fill="${style.color}"${fontOf(style.font)} xml:space="preserve"${struck}>${xml(spaces)}</text>`;
}

function drawCanvas(node: HTMLCanvasElement, { x, y, w, h }: { x: number; y: number; w: number; h: number }): string {
  const again = drawnAgain(node);
  if (!again) return node.width && node.height ? `<image href="${node.toDataURL()}" x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}"/>` : "";
  const context = new SvgContext(x, y);
  context.textBaseline = "middle";
  again(context as unknown as CanvasRenderingContext2D, w, h);
  return context.text();
}

// A copy that needs no style sheet.
function drawSvg(node: SVGSVGElement, { x, y, w, h }: { x: number; y: number; w: number; h: number }): string {
  const copy = node.cloneNode(true) as SVGSVGElement, from = [node, ...node.querySelectorAll<SVGElement>("*")], to = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  from.forEach((one, i) => {
    const style = getComputedStyle(one);
    to[i].removeAttribute("style");
    to[i].removeAttribute("class");
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor"]) to[i].setAttribute(name, style.getPropertyValue(name));
  });
  for (const [name, value] of Object.entries({ x, y, width: w, height: h })) copy.setAttribute(name, short(value));
  return new XMLSerializer().serializeToString(copy);
}
