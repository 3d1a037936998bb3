// All doors, in the order of the menu. The first one that can be shown is the page's start.
import type { Door } from "./door";
import { lookDoor } from "./look";

export const doors: Door[] = [lookDoor];
