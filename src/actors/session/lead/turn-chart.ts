// The turn machine of one session, hosted outside the session's unit. A lead agent sends it facts and executes its
// effects.
//
// A reopened session starts with a new turn.
//
// Does not: decide the state of the turn (machine), or execute its effects (lead agents).

import {
  turnMachine,
  type TurnEffects,
  type TurnFact,
  type TurnInput,
  type TurnSnapshot,
} from '../../../machines/index.ts';
import type { Host } from '../../runtime/host.ts';
import { TransientMachine, type TransientOptions } from '../../runtime/transient-machine.ts';

type Turn = typeof turnMachine;

export class TurnChart extends TransientMachine<Turn, TurnFact, TurnEffects> {
  /** @param isFree Returns whether the model is connected and idle, so that it can be called. */
  constructor(
    { id, host }: { readonly id: string; readonly host: Pick<Host, 'environment' | 'actors'> },
    input: TurnInput,
    isFree: () => boolean,
    handlers: TransientOptions<Turn, TurnFact, TurnEffects>['handlers'],
  ) {
    const now = () => ({ isFree: isFree() });
    super(turnMachine, `${id}/turn`, host, { input, isBackground: false, now, handlers });
  }

  get context(): TurnSnapshot['context'] {
    return this.snapshot.context;
  }
}
