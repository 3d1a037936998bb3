// node build.mjs [FILE]: bundles src into one page (web/dist/page.html, or FILE). The same sources give the same bytes.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const out = process.argv[2] ?? path.join(here, "dist/page.html");
// Chromium 110, Firefox 113, Safari 16.4: what color-mix and MathML need. ASCII, so that no reader can mistake the encoding.
const options = { absWorkingDir: here, bundle: true, minify: true, write: false, target: "es2022", charset: "ascii", legalComments: "none", logLevel: "warning" };
const bundle = async (entry) => (await build({ ...options, entryPoints: [entry] })).outputFiles[0].text.trim();

const style = await bundle("src/style/main.css");
const script = await bundle("src/main.ts");
if (/<\/(script|style)|<!--/i.test(script + style)) throw new Error("the bundle would end its own element");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
// Nothing but these two texts runs. The program fills in {{connect}}: 'self' for the server's page, 'none' for a file.
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data: blob:; connect-src {{connect}}; base-uri 'none'; form-action 'none'`;
const page = readFileSync(path.join(here, "src/page.html"), "utf8")
  .replace("%%policy%%", () => policy).replace("%%style%%", () => style).replace("%%script%%", () => script);
mkdirSync(path.dirname(out), { recursive: true });
writeFileSync(out, page);
console.log(`${out}: ${page.length} bytes`);
