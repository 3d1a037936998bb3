// Binary frames of attention maps, as /page/tile and /page/overview send them: eight u32, then f32 row by row.
import { heatPixels } from "./colour";
import { el } from "./dom";

export interface Frame { rows: number; columns: number; firstRow: number; firstColumn: number; pooled: number; keys: number; cells: Float32Array }
const magic = 0x54564b51;

export function readFrame(bytes: ArrayBuffer): Frame {
  const [sign, version, rows, columns, firstRow, firstColumn, pooled, keys] = new Uint32Array(bytes, 0, 8);
  if (sign !== magic || version !== 1 || bytes.byteLength !== 32 + 4 * rows * columns) throw new Error("this is no frame of a map");
  return { rows, columns, firstRow, firstColumn, pooled, keys, cells: new Float32Array(bytes, 32) };
}

// Its pixels. Cells to the right of the diagonal stay clear where nothing may be seen there, and so does the first key's
// column if it is hidden. A pooled cell holds the mass of several keys, so its scale is the same.
export function framePixels(frame: Frame, causal: boolean, hideFirst: boolean): HTMLCanvasElement {
  const { rows, columns, firstRow, firstColumn, pooled, cells } = frame;
  const made = el("canvas", { width: Math.max(columns, 1), height: Math.max(rows, 1) }), context = made.getContext("2d")!;
  const image = context.createImageData(made.width, made.height), pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < rows; ++i) {
    const last = causal ? firstRow + i - firstColumn : columns;  // in cells: queries and keys are pooled alike
    for (let j = 0; j < Math.min(columns, last + 1); ++j) {
      if (hideFirst && pooled === 1 && firstColumn + j === 0) continue;
      pixels[i * columns + j] = heatPixels[Math.min(255 * Math.sqrt(cells[i * columns + j]) + 0.5, 255) | 0];  // weights are never negative
    }
  }
  context.putImageData(image, 0, 0);
  return made;
}
