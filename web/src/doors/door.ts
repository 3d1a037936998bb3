// A door: a view of its own with an address, #/id. How to add one: docs/page.md.
import type { Child } from "../core/dom";

export interface Door {
  id: string;
  name: () => string;    // in the page's language
  here: () => boolean;   // whether this page can show it: it has a server, or its report has the part
  show: () => Child;     // built when the door opens; effects made inside end when it closes
}
