// The harness that replays checked paths on real actors with real deadlines.
//
// Times in a check are relative (see the key of each check), so the harness replays the length of each interval. An
// event arrives as long after the previous one as in the check, and a deadline fires when it is due.

import type { AnyStateMachine, EventObject } from 'xstate';
import type {
  CheckReport,
  ReplayHarness,
  ReplayRun,
  SnapshotLike,
  Step,
} from '../../../src/testing/check/index.ts';
import { Stage } from './stage.ts';

type TimedEvent = EventObject & { readonly at?: number; readonly [detail: string]: unknown };
type Translate = (event: TimedEvent, live: never, now: number) => TimedEvent;

export interface LiveOptions {
  /** Converts the fields of an event that are relative to the times of the check, using the live snapshot. */
  readonly translate?: Translate;
  /** Events whose `at` is also relative. They arrive at once with the converted time. */
  readonly relative?: readonly string[];
}

/** Creates real actors of the checked machine. */
export function live(
  report: Pick<CheckReport, 'checked'>,
  { translate = (event) => event, relative = [] }: LiveOptions = {},
): ReplayHarness {
  const [definition] = Object.values(report.checked.system.actors);
  if (definition === undefined) throw new Error('The report has no machine');
  const { machine, input } = definition;
  return { start: () => new LiveRun(new Stage(machine, input), translate, relative) };
}

class LiveRun implements ReplayRun {
  readonly #stage: Stage<AnyStateMachine>;
  readonly #translate: Translate;
  readonly #relative: readonly string[];
  /** The time of the last event in the check. */
  #checkedAt = 0;

  constructor(stage: Stage<AnyStateMachine>, translate: Translate, relative: readonly string[]) {
    this.#stage = stage;
    this.#translate = translate;
    this.#relative = relative;
  }

  async take({ event }: Step): Promise<void | 'impossible'> {
    const { at = this.#checkedAt } = event as TimedEvent;
    if (this.#relative.includes(event.type)) {
      const { now, actor } = this.#stage;
      const translated = this.#translate(event, actor.getSnapshot() as never, now);
      this.#stage.send(translated as never, translated.at);
      return;
    }
    const elapsed = Math.max(0, at - this.#checkedAt);
    this.#checkedAt = at;
    return event.type.startsWith('deadline.')
      ? this.#letFire(event.type)
      : this.#send(event, elapsed);
  }

  snapshot(): SnapshotLike {
    return this.#stage.actor.getSnapshot() as SnapshotLike;
  }

  stop(): void {
    this.#stage.stop();
  }

  /** Lets time pass until this deadline is due. No other deadline may be due earlier. */
  async #letFire(type: string): Promise<void | 'impossible'> {
    const { armed, now } = this.#stage;
    const due = [...armed].find(({ event }) => event === type);
    if (due === undefined) throw new Error(`the live actor has armed no ${type}`);
    if ([...armed].some((other) => other !== due && other.dueAt <= due.dueAt)) return 'impossible';
    const { fired } = this.#stage;
    await this.#stage.wait(due.dueAt - now);
    if (armed.has(due)) throw new Error(`${type} was due and did not fire`);
    // The deadline armed another one that was due at once, so no observer sees the state between them.
    return this.#stage.fired > fired + 1 ? 'impossible' : undefined;
  }

  async #send(event: TimedEvent, elapsed: number): Promise<void | 'impossible'> {
    const { armed, now, actor } = this.#stage;
    if ([...armed].some(({ dueAt }) => dueAt <= now + elapsed)) return 'impossible';
    if (elapsed > 0) await this.#stage.wait(elapsed);
    const translated = this.#translate(event, actor.getSnapshot() as never, this.#stage.now);
    this.#stage.send(translated as never);
  }
}
