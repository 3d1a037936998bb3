// Draws what a canvas draws, as SVG: the same code makes the picture on the page and the file that is saved.
export const xml = (text: unknown): string => String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
  .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
export const short = (x: number): string => String(Math.round(x * 100) / 100);

// "600 13px Inter, sans-serif" as attributes: a page's policy forbids styles in elements.
export function fontOf(font: string): string {
  const found = /^(italic |oblique )?(?:normal )*(\d+ |bold )?(?:normal )*([\d.]+)px(?:\/\S+)? (.+)$/.exec(font);
  if (!found) return "";
  const [, slant, weight, size, family] = found;
  return ` font-family="${xml(family)}" font-size="${size}"${weight ? ` font-weight="${weight.trim()}"` : ""}${slant ? ` font-style="${slant.trim()}"` : ""}`;
}

type Matrix = [number, number, number, number, number, number];
interface State { matrix: Matrix; groups: number; look: Record<string, unknown> }
const looks = ["fillStyle", "strokeStyle", "lineWidth", "lineJoin", "lineCap", "globalAlpha", "font", "textAlign", "textBaseline", "filter"] as const;
const baselines: Record<string, string> = { middle: "central", top: "text-before-edge", hanging: "hanging", bottom: "text-after-edge" };
const anchors: Record<string, string> = { center: "middle", right: "end", end: "end" };
const measuring = document.createElement("canvas").getContext("2d")!;
let clips = 0;

// The part of CanvasRenderingContext2D that the page's pictures use.
export class SvgContext {
  fillStyle = "#000"; strokeStyle = "#000"; lineWidth = 1; lineJoin = "miter"; lineCap = "butt"; globalAlpha = 1; font = "10px sans-serif"; textAlign = "left"; textBaseline = "alphabetic";
  filter = "none"; imageSmoothingEnabled = true;
  private parts: string[] = [];
  private path = "";
  private dash: number[] = [];
  private matrix: Matrix = [1, 0, 0, 1, 0, 0];
  private groups = 0;
  private states: State[] = [];

  constructor(x: number, y: number) {
    this.matrix = [1, 0, 0, 1, x, y];
  }
  text(): string {
    return this.parts.join("") + "</g>".repeat(this.groups);
  }

  save(): void {
    this.states.push({ matrix: [...this.matrix], groups: this.groups, look: Object.fromEntries(looks.map((name) => [name, this[name]])) });
  }
  restore(): void {
    const before = this.states.pop();
    if (!before) return;
    this.parts.push("</g>".repeat(this.groups - before.groups));
    Object.assign(this, before.look, { matrix: before.matrix, groups: before.groups });
  }
  setTransform(): void {}  // of the canvas's own pixels: a file has none
  transform(a: number, b: number, c: number, d: number, e: number, f: number): void {
    const [A, B, C, D, E, F] = this.matrix;
    this.matrix = [A * a + C * b, B * a + D * b, A * c + C * d, B * c + D * d, A * e + C * f + E, B * e + D * f + F];
  }
  translate(x: number, y: number): void { this.transform(1, 0, 0, 1, x, y); }
  scale(x: number, y: number): void { this.transform(x, 0, 0, y, 0, 0); }
  rotate(angle: number): void { this.transform(Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle), 0, 0); }

  beginPath(): void { this.path = ""; }
  moveTo(x: number, y: number): void { this.path += `M${short(x)} ${short(y)}`; }
  lineTo(x: number, y: number): void { this.path += `${this.path ? "L" : "M"}${short(x)} ${short(y)}`; }
  closePath(): void { this.path += "Z"; }
  quadraticCurveTo(a: number, b: number, x: number, y: number): void { this.path += `Q${[a, b, x, y].map(short).join(" ")}`; }
  bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void { this.path += `C${[a, b, c, d, x, y].map(short).join(" ")}`; }
  rect(x: number, y: number, w: number, h: number): void { this.path += `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}Z`; }
  roundRect(x: number, y: number, w: number, h: number, radius: number | number[]): void {
    const r = Math.max(Math.min(Array.isArray(radius) ? radius[0] : radius, Math.abs(w) / 2, Math.abs(h) / 2), 0);
    const arc = (dx: number, dy: number) => `a${short(r)} ${short(r)} 0 0 1 ${short(dx)} ${short(dy)}`;
    this.path += `M${short(x + r)} ${short(y)}h${short(w - 2 * r)}${arc(r, r)}v${short(h - 2 * r)}${arc(-r, r)}h${short(2 * r - w)}${arc(-r, -r)}v${short(2 * r - h)}${arc(r, -r)}Z`;
  }
  arc(x: number, y: number, r: number, from: number, to: number, back = false): void {
    const turn = back ? from - to : to - from, at = (angle: number) => `${short(x + r * Math.cos(angle))} ${short(y + r * Math.sin(angle))}`;
    const start = `${this.path ? "L" : "M"}${at(from)}`, piece = (large: number, end: number) => `A${short(r)} ${short(r)} 0 ${large} ${back ? 0 : 1} ${at(end)}`;
    if (Math.abs(turn) >= 2 * Math.PI - 1e-6) this.path += `M${at(from)}${piece(0, from + Math.PI)}${piece(0, from)}Z`;
    else this.path += start + piece(Math.abs(turn) > Math.PI ? 1 : 0, to);
  }
  setLineDash(dash: number[]): void { this.dash = dash; }

  private where(): string {
    return ` transform="matrix(${this.matrix.map(short).join(" ")})"${this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : ""}`;
  }
  private line(): string {
    return ` fill="none" stroke="${xml(this.strokeStyle)}" stroke-width="${short(this.lineWidth)}" stroke-linejoin="${this.lineJoin}" stroke-linecap="${this.lineCap}"${this.dash.length ? ` stroke-dasharray="${this.dash.map(short).join(" ")}"` : ""}`;
  }
  fill(): void { if (this.path) this.parts.push(`<path d="${this.path}" fill="${xml(this.fillStyle)}"${this.where()}/>`); }
  stroke(): void { if (this.path) this.parts.push(`<path d="${this.path}"${this.line()}${this.where()}/>`); }
  clip(): void {
    const id = `clip${++clips}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}" transform="matrix(${this.matrix.map(short).join(" ")})"/></clipPath><g clip-path="url(#${id})">`);
    ++this.groups;
  }
  clearRect(): void {}
  fillRect(x: number, y: number, w: number, h: number): void { this.parts.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${xml(this.fillStyle)}"${this.where()}/>`); }
  strokeRect(x: number, y: number, w: number, h: number): void { this.parts.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}"${this.line()}${this.where()}/>`); }

  measureText(text: string): TextMetrics {
    measuring.font = this.font;
    return measuring.measureText(text);
  }
  fillText(text: string, x: number, y: number): void {
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" fill="${xml(this.fillStyle)}"${fontOf(this.font)} text-anchor="${anchors[this.textAlign] ?? "start"}" dominant-baseline="${baselines[this.textBaseline] ?? "auto"}" xml:space="preserve"${this.where()}>${xml(text)}</text>`);
  }
  strokeText(): void {}
  drawImage(image: CanvasImageSource, ...at: number[]): void {
    const [x, y, w, h] = at.length > 4 ? at.slice(4) : at;
    const source = image as HTMLCanvasElement;
    const part = document.createElement("canvas");
    const [sx, sy, sw, sh] = at.length > 4 ? at : [0, 0, source.width, source.height];
    part.width = Math.max(sw, 1);
    part.height = Math.max(sh, 1);
    part.getContext("2d")!.drawImage(source, sx, sy, sw, sh, 0, 0, sw, sh);
    this.parts.push(`<image href="${part.toDataURL()}" x="${short(x)}" y="${short(y)}" width="${short(w ?? sw)}" height="${short(h ?? sh)}" preserveAspectRatio="none"${this.imageSmoothingEnabled ? "" : ` image-rendering="pixelated"`}${this.where()}/>`);
  }
  createLinearGradient(): { addColorStop(at: number, colour: string): void; toString(): string } {
    let last = "#888";
    return { addColorStop: (_at, colour) => { last = colour; }, toString: () => last };
  }
}
