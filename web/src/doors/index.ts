// All doors, in the order of the menu. The first one that can be shown is the page's start.
import type { Door } from "./door";
import { labsDoor } from "./labs";
import { lookDoor } from "./look";
import { storyDoor } from "./story";
import { trainingDoor } from "./training";

export const doors: Door[] = [lookDoor, storyDoor, trainingDoor, labsDoor];
