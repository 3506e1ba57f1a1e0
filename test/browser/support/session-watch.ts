// Waits for events in a session. Tests never sleep; each waits for a fact.

import type { SessionEvent, SessionState } from '../../../src/index.ts';
import type { VoiceSession } from '../../../src/voice-session.ts';

/** Far longer than the slowest machine needs, so only a failing test waits this long. */
const PATIENCE_MS = 45_000;

type Of<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>;

export class SessionWatch {
  /** All events so far, in order. */
  readonly events: SessionEvent[] = [];
  readonly #session: VoiceSession;
  readonly #waiting = new Set<() => void>();

  constructor(session: VoiceSession) {
    this.#session = session;
    session.events.subscribe((event) => this.events.push(event));
    session.store.subscribe(() => {
      for (const check of this.#waiting) check();
    });
  }

  get state(): SessionState {
    return this.#session.store.getSnapshot().context;
  }

  of<T extends SessionEvent['type']>(type: T): Of<T>[] {
    return this.events.filter((event): event is Of<T> => event.type === type);
  }

  /** Resolves with the first value that `find` finds in the session. */
  until<T>(what: string, find: (state: SessionState) => T | null | undefined | false): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(check);
      };
      const check = (): void => {
        const found = find(this.state);
        if (found === null || found === undefined || found === false) return;
        end();
        resolve(found);
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error(`Waited in vain until ${what}. ${this.describe()}`));
      }, PATIENCE_MS);
      this.#waiting.add(check);
      check();
    });
  }

  /** Waits until no one is speaking, no work is running, and no delivery is waiting. */
  async untilQuiet(): Promise<void> {
    await this.until(
      'all is said',
      ({ floor, deliveries, connection }) =>
        connection === 'active' &&
        floor === 'nobody' &&
        !deliveries.some(({ state }) => ['pending', 'offered', 'playing'].includes(state)),
    );
  }

  describe(): string {
    const { connection, floor, transcript, subagents, questions, deliveries } = this.state;
    return [
      `The session is ${connection}, the floor is with ${floor}.`,
      ...transcript.map(
        ({ role, text, final, interrupted }) =>
          `  ${role}: ${text}${final ? '' : ' …'}${interrupted ? ' —' : ''}`,
      ),
      ...subagents.map(({ name, state, step }) => `  ${name}: ${state}, step ${step}`),
      ...questions.map(({ question, state }) => `  question "${question}": ${state}`),
      ...deliveries.map(
        ({ kind, state, attempts, text }) => `  ${kind} "${text}": ${state}, attempts ${attempts}`,
      ),
      ...this.of('error.reported').map(({ message }) => `  error: ${message}`),
    ].join('\n');
  }
}
