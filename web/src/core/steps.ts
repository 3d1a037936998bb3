// What space does on the whole page: the view that is shown offers its next step.
import { onCleanup } from "./signal";

export const stepper: { step: (() => void) | null } = { step: null };
// Ends with the effect that surrounds it.
export function offerStep(step: () => void): void {
  stepper.step = step;
  onCleanup(() => { if (stepper.step === step) stepper.step = null; });
}
