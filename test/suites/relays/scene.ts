// One case: a session with the agent of a stage, and the session's events and errors.

import type {
  RelayAnswer,
  RelayCapabilities,
  RelayEvent,
  RelaySession,
} from '../../../src/actors/ports/relay.ts';
import { messageOf } from '../../../src/values/errors.ts';
import { ConformanceError } from '../../../src/testing/conformance/conformance-error.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import { actsPrompt, type RelayAct } from '../../../src/testing/doubles/relay-acts.ts';
import type { RelayConformanceSetup, RelayFault, RelayStage } from './stage.ts';

export interface RelayScene {
  readonly name: string;
  readonly needs?: readonly (RelayFault | keyof RelayCapabilities)[];
  readonly play: (bench: RelayBench) => Promise<void>;
}

type EventOf<Type extends RelayEvent['type']> = Extract<RelayEvent, { readonly type: Type }>;

/** The maximum number of event loop turns until an event arrives over a wire. */
const PATIENCE = 20_000;
/** The number of turns in which an answer arrives before a relay polls its agent again. */
const TURNS_PER_POLL = 16;

/** The helpers for all cases. */
export class RelayBench {
  readonly setup: RelayConformanceSetup;
  readonly stage: RelayStage;
  readonly environment = simulatedEnvironment();
  readonly events: RelayEvent[] = [];
  readonly errors: unknown[] = [];
  #sessions: RelaySession[] = [];
  #turns = 0;
  /** The number of event loop turns so far. */
  #waited = 0;
  /** The positions of the events that `next` has returned. */
  readonly #taken = new Set<number>();

  constructor(setup: RelayConformanceSetup, stage: RelayStage) {
    this.setup = setup;
    this.stage = stage;
  }

  get capabilities(): RelayCapabilities {
    return this.stage.relay.capabilities;
  }

  /** Starts a session, or resumes one. */
  async start(
    resume?: string,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<RelaySession> {
    const session = await this.stage.relay.start({
      subagentId: 'sub_1',
      ...(resume === undefined ? {} : { resume }),
      signal,
      scheduler: this.environment.scheduler,
      ids: this.environment.ids,
      receive: (event) => {
        this.events.push(event);
      },
      report: (error) => this.errors.push(error),
    });
    this.#sessions.push(session);
    return session;
  }

  perform(session: RelaySession, ...acts: readonly RelayAct[]): void {
    this.#turns += 1;
    session.prompt({ key: `turn-${this.#turns}`, text: actsPrompt(...acts) });
  }

  /** Waits for an event of this type that no call has returned before. */
  async next<Type extends RelayEvent['type']>(type: Type, more?: () => unknown) {
    const given = await this.until(`an event \`${type}\``, () => this.#take(type), more);
    return given as EventOf<Type>;
  }

  /** Waits for activity. An agent that speaks only at the end of its turn reports progress. */
  atWork(): Promise<unknown> {
    return this.until('words or progress', () => this.#take('words') ?? this.#take('progress'));
  }

  #take(type: RelayEvent['type']): RelayEvent | undefined {
    const at = this.events.findIndex((one, index) => one.type === type && !this.#taken.has(index));
    if (at >= 0) this.#taken.add(at);
    return this.events[at];
  }

  /** Waits until `seen` returns something. No simulated time passes unless the relay polls. */
  async until<T>(
    what: string,
    seen: () => T | undefined | Promise<T | undefined>,
    more?: () => unknown,
  ): Promise<T> {
    for (let turn = 0; turn < (this.setup.patience ?? PATIENCE); turn += 1) {
      const found = await seen();
      if (found !== undefined) return found;
      await this.#turn();
    }
    throw new ConformanceError(
      `${this.setup.name}: expected ${what}; ${JSON.stringify(more?.() ?? this.#story())}`,
    );
  }

  /** Advances the time beyond the agent's grace period. */
  async passGrace(): Promise<void> {
    await this.environment.advance(this.setup.graceMs + 1);
  }

  /** Waits for the end of a turn and returns it with the text of that turn. */
  async ended(): Promise<{ readonly reason: string; readonly words: string }> {
    const from = this.events.findLastIndex(
      ({ type }, at) => type === 'turn_ended' && this.#taken.has(at),
    );
    const { reason } = await this.next('turn_ended');
    const words = this.events
      .slice(from + 1)
      .flatMap((event) => (event.type === 'words' ? [event.text] : []))
      .join('');
    return { reason, words };
  }

  async release(session: RelaySession, why: 'ended' | 'suspended' = 'ended'): Promise<string> {
    this.#sessions = this.#sessions.filter((one) => one !== session);
    let how: string | null = null;
    const released = session.release(why).then((given) => {
      how = given;
    });
    const { patience = PATIENCE } = this.setup;
    for (let turn = 0; turn < patience / 100 && how === null; turn += 1) await this.#turn();
    if (how === null) await this.passGrace();
    await released;
    return how ?? '';
  }

  answer(session: RelaySession, requestId: string, answer: RelayAnswer): void {
    session.answer(requestId, answer);
  }

  expect(isSo: boolean, what: string): void {
    if (!isSo)
      throw new ConformanceError(
        `${this.setup.name}: expected ${what}; ${JSON.stringify(this.#story())}`,
      );
  }

  /** Releases the open sessions and checks that no agent is still running. */
  async end(): Promise<void> {
    for (const session of this.#sessions) await this.release(session);
    await this.until('no agent to be left running', async () =>
      (await this.stage.running()) === 0 ? true : undefined,
    );
    const before = this.events.length;
    await this.environment.advance(this.setup.graceMs + 1);
    this.expect(this.events.length === before, 'no event after a release');
    const { pendingTimers } = this.environment;
    this.expect(pendingTimers === 0, `no timer to be left, there are ${pendingTimers}`);
  }

  #story(): unknown {
    return { events: this.events.slice(-20), errors: this.errors.slice(-5).map(messageOf) };
  }

  async #turn(): Promise<void> {
    const { pollMs } = this.setup;
    this.#waited += 1;
    if (pollMs === undefined || this.#waited % TURNS_PER_POLL !== 0)
      await this.environment.settle();
    else await this.environment.advance(pollMs);
  }
}
