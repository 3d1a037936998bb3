// Elements. A function as a child or an attribute is an effect: it is drawn again when a signal it read changes.
import { effect } from "./signal";

export type Child = Node | string | number | null | undefined | false | Child[] | (() => Child);
type Style = Record<string, string | number>;
type Attribute = string | number | boolean | null | undefined | Style | ((event: never) => void) | (() => unknown);

function setAttribute(node: Element, name: string, value: unknown): void {
  if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

function setStyle(node: HTMLElement | SVGElement, style: Style): void {
  for (const [key, value] of Object.entries(style)) {
    if (key.startsWith("--")) node.style.setProperty(key, String(value));
    else node.style.setProperty(key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), String(value));
  }
}

function fill(node: Element, attributes: Record<string, Attribute> | null, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) {
      if (typeof value === "function") node.addEventListener(name.slice(2), value as (event: Event) => void);
    } else if (typeof value === "function") {
      effect(() => setAttribute(node, name, (value as () => unknown)()));
    } else if (name === "style" && value && typeof value === "object") {
      setStyle(node as HTMLElement, value);
    } else {
      setAttribute(node, name, value);
    }
  }
  node.append(...nodesOf(children));
}

function nodesOf(child: Child): Node[] {
  if (child === null || child === undefined || child === false || child === "") return [];
  if (Array.isArray(child)) return child.flatMap(nodesOf);
  if (child instanceof Node) return [child];
  if (typeof child !== "function") return [document.createTextNode(String(child))];
  // Two comments hold the place of what comes and goes.
  const begin = document.createComment(""), end = document.createComment("");
  let first: Node[] | null = null;
  effect(() => {
    const made = nodesOf(child());
    if (!begin.parentNode) {
      first = made;
      return;
    }
    while (begin.nextSibling && begin.nextSibling !== end) begin.nextSibling.remove();
    begin.after(...made);
  });
  return [begin, ...(first ?? []), end];
}

export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes?: Record<string, Attribute> | null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  fill(made, attributes ?? null, children);
  return made;
}

const svgSpace = "http://www.w3.org/2000/svg", mathSpace = "http://www.w3.org/1998/Math/MathML";

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes?: Record<string, Attribute> | null, ...children: Child[]): SVGElementTagNameMap[K] {
  const made = document.createElementNS(svgSpace, tag);
  fill(made, attributes ?? null, children);
  return made;
}

// MathML; mrow, mi, mn, mo, msub, msup, mfrac, msqrt, mtext ...
export function math(tag: string, ...children: Child[]): Element {
  const made = document.createElementNS(mathSpace, tag);
  fill(made, null, children);
  return made;
}

export function fragment(...children: Child[]): DocumentFragment {
  const made = document.createDocumentFragment();
  made.append(...nodesOf(children));
  return made;
}
