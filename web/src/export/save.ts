// Saving what is seen: PNG and SVG of a part of the page, CSV of its numbers.
import { svgOf, type SvgFile } from "./svg_of";

export function saveAs(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function saveSvg(name: string, node: HTMLElement): void {
  saveAs(`${name}.svg`, new Blob([svgOf(node).text], { type: "image/svg+xml" }));
}

const mostPixels = 16000;  // on a side: what browsers can draw
export async function savePng(name: string, node: HTMLElement): Promise<void> {
  saveAs(`${name}.png`, await pngOf(svgOf(node)));
}
async function pngOf({ text, width, height }: SvgFile): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(2, mostPixels / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture"))), "image/png"));
}
