// All doors, in the order of the menu. The first one that can be shown is the page's start.
import type { Door } from "./door";
import { compareDoor } from "./compare";
import { decodeDoor } from "./decode";
import { expertsDoor } from "./experts";
import { headsDoor } from "./heads";
import { labsDoor } from "./labs";
import { lookDoor } from "./look";
import { storyDoor } from "./story";
import { sumsDoor } from "./sums";
import { trainingDoor } from "./training";
import { translateDoor } from "./translate";

export const doors: Door[] = [
  lookDoor, storyDoor, trainingDoor, headsDoor, translateDoor, decodeDoor, expertsDoor, compareDoor, sumsDoor, labsDoor,
];
