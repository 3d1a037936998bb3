// All doors, in the order of the menu. The first one that can be shown is the page's start.
import type { Door } from "./door";
import { compareDoor } from "./compare";
import { decodeDoor } from "./decode";
import { expertsDoor } from "./experts";
import { headsDoor } from "./heads";
import { lookDoor } from "./look";
import { storyDoor } from "./story";
import { sumsDoor } from "./sums";
import { translateDoor } from "./translate";

export const doors: Door[] = [lookDoor, storyDoor, headsDoor, translateDoor, decodeDoor, expertsDoor, compareDoor, sumsDoor];
