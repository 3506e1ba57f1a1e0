// The session of one task with its agent, under a manager's rules. It counts the usage of the task, stops the task at
// its caps, repeats the prompt after an empty answer, and passes the agent's questions to the user.
//
// Invariants
//   MANAGED-1. A cap ends the turn once as `limit`, whatever the agent answers to the request to stop.
//   MANAGED-2. A repeated prompt says why it is repeated.

import type { Clock } from '../actors/ports/environment.ts';
import type {
  Relay,
  RelayAnswer,
  RelayEvent,
  RelayPrompt,
  RelayRelease,
  RelaySession,
  RelayStart,
} from '../actors/ports/relay.ts';
import { OffstageError } from '../values/errors.ts';
import type { TaskCaps, TaskManagerOptions } from './task-options.ts';

/** The usage of a task across all its connections. */
export interface Used {
  timeMs: number;
  tokens: number;
  cost: number;
  /** The relay, and the id under which it stores the folder. */
  relay: Relay;
  owner: string;
}

/** The options for opening a session. */
export interface Target {
  /** The id under which the relay stores the folder. */
  readonly owner: string;
  readonly resume: string | undefined;
  /** The owner of the new session that is opened if `resume` fails; null if the failure is an error. */
  readonly fresh: string | null;
}

interface ManagedSessionOptions extends Pick<
  TaskManagerOptions,
  'emptyRetries' | 'questionIn' | 'price'
> {
  readonly caps: TaskCaps;
  readonly clock: Clock;
  readonly start: RelayStart;
  readonly used: Used;
  release(
    inner: RelaySession,
    how: {
      readonly why: 'ended' | 'suspended';
      readonly completed: boolean;
    },
  ): Promise<RelayRelease>;
}

type Ended = Extract<RelayEvent, { readonly type: 'turn_ended' }>;

const EMPTY =
  'Your answer was empty. Do not repeat what you have done: say what you did, what you found, and what is left.';
const MAX_WORDS = 64 * 1024;

export class ManagedSession implements RelaySession {
  id = '';
  isRunning = false;
  readonly #options: ManagedSessionOptions;
  #inner: RelaySession | null = null;
  #turn: RelayPrompt | null = null;
  /** The text since the last tool call or question; `#hasWords`: whether the turn had any text. */
  #words = '';
  #hasWords = false;
  #retries = 0;
  #questions = 0;
  /** The open question that the agent asked in its text. */
  #asked: string | null = null;
  readonly #open = new Set<string>();
  #since: number | null = null;
  #cancelTimer: (() => void) | null = null;
  #limit: string | null = null;
  #completed = false;
  #isClosed = false;
  #isOver = false;
  #stopped: (() => void) | null = null;

  constructor(options: ManagedSessionOptions) {
    this.#options = options;
  }

  async open(relay: Relay, { owner, resume, fresh }: Target): Promise<void> {
    const { start, used } = this.#options;
    const given = { ...start, receive: (event: RelayEvent) => this.#receive(event) };
    const begin = (as: string, known: string | undefined): Promise<RelaySession> => {
      const { resume: _own, ...rest } = given;
      return relay.start({
        ...rest,
        subagentId: as,
        ...(known === undefined ? {} : { resume: known }),
      });
    };
    const limit = this.#overLimit();
    if (limit !== null)
      throw new OffstageError('RELAY_LIMIT', `${relay.name} was stopped: ${limit}`);
    try {
      this.#inner = await begin(owner, resume);
    } catch (error) {
      // The thread is lost, so the task starts a new session.
      if (fresh === null || start.signal.aborted) throw error;
      used.owner = fresh;
      this.#inner = await begin(fresh, undefined);
    }
    this.#named(this.#inner.id);
    this.isRunning = this.#inner.isRunning;
    if (!this.isRunning) return;
    this.#turn = { key: `${start.subagentId}:again`, text: '' };
    this.#work();
  }

  prompt(prompt: RelayPrompt): void {
    this.#retries = 0;
    this.#turn = prompt;
    this.#completed = false;
    this.#begin(prompt);
  }

  steer(text: string): void {
    const asked = this.#asked;
    if (asked === null) {
      this.#inner?.steer(text);
      return;
    }
    this.#answered({ type: 'answered', text });
    this.#send({ type: 'withdrawn', requestId: asked });
  }

  answer(requestId: string, answer: RelayAnswer): void {
    if (requestId === this.#asked) {
      this.#answered(answer);
      return;
    }
    this.#settled(requestId);
    this.#inner?.answer(requestId, answer);
  }

  interrupt(): void {
    if (this.#asked === null) {
      this.#inner?.interrupt();
      return;
    }
    this.#asked = null;
    this.#end({ type: 'turn_ended', reason: 'cancelled' });
  }

  async release(why: 'ended' | 'suspended'): Promise<RelayRelease> {
    this.#isOver = true;
    const inner = this.#inner;
    if (!inner) return 'idle';
    const wasRunning = this.#turn !== null && this.#asked === null && !this.#isClosed;
    this.#rest();
    // The thread continues after this task, so the task must not leave it in the middle of a turn.
    const isStopped =
      wasRunning && why === 'ended' && this.#options.used.owner !== this.#options.start.subagentId;
    if (isStopped) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#stopped = resolve;
      inner.interrupt();
      await promise;
    }
    const how = await this.#options.release(inner, {
      why,
      completed: this.#completed,
    });
    if (!isStopped) return how;
    return this.#isClosed ? 'killed' : 'cancelled';
  }

  #named(sessionId: string): void {
    const { start, used } = this.#options;
    this.id = writeSessionId(used.owner, start.subagentId, sessionId);
  }

  #begin(prompt: RelayPrompt): void {
    this.#words = '';
    this.#hasWords = false;
    if (this.#limit !== null) {
      this.#end({ type: 'turn_ended', reason: 'limit', message: this.#limit });
      return;
    }
    this.#work();
    this.#inner?.prompt(prompt);
  }

  #answered(answer: RelayAnswer): void {
    this.#asked = null;
    const turn = this.#turn;
    if (!turn) return;
    if (answer.type !== 'answered') {
      this.#end({ type: 'turn_ended', reason: 'completed' });
      return;
    }
    this.#questions += 1;
    this.#begin({ key: `${turn.key}:answer-${this.#questions}`, text: answer.text });
  }

  #receive(event: RelayEvent): void {
    switch (event.type) {
      case 'session_id':
        this.#named(event.id);
        this.#send({ ...event, id: this.id });
        return;
      case 'words':
        if (event.text.trim() !== '') this.#hasWords = true;
        this.#words = (this.#words + event.text).slice(-MAX_WORDS);
        break;
      case 'artifact':
        this.#hasWords = true;
        break;
      case 'tool_started':
        this.#words = '';
        break;
      case 'permission':
      case 'question':
        this.#words = '';
        this.#open.add(event.requestId);
        this.#rest();
        break;
      case 'withdrawn':
        this.#settled(event.requestId);
        break;
      case 'usage':
        this.#send(event);
        this.#count(event);
        return;
      case 'turn_ended':
        this.#turnEnded(event);
        return;
      case 'closed':
        this.#isClosed = true;
        if (this.#limit !== null && this.#turn)
          this.#turnEnded({ type: 'turn_ended', reason: 'limit' });
        this.#rest();
        this.#stopped?.();
        break;
      case 'progress':
      case 'tool_ended':
        break;
    }
    this.#send(event);
  }

  #turnEnded(event: Ended): void {
    this.#open.clear();
    this.#rest();
    const turn = this.#turn;
    // MANAGED-1
    if (this.#limit !== null) {
      this.#end({ type: 'turn_ended', reason: 'limit', message: this.#limit });
      return;
    }
    if (event.reason !== 'completed' || this.#isOver || !turn) {
      this.#end(event);
      return;
    }
    const { emptyRetries = 1, questionIn } = this.#options;
    if (!this.#hasWords && this.#retries < emptyRetries) {
      this.#retries += 1;
      // MANAGED-2
      this.#begin({ key: `${turn.key}:empty-${this.#retries}`, text: EMPTY });
      return;
    }
    const question = this.#questionIn(questionIn);
    if (question === null) {
      this.#completed = true;
      this.#end(event);
      return;
    }
    this.#asked = `words-${this.#questions + 1}`;
    this.#send({ type: 'question', requestId: this.#asked, text: question });
  }

  #questionIn(read: TaskManagerOptions['questionIn']): string | null {
    if (!read || this.#words.trim() === '') return null;
    try {
      const question: unknown = read(this.#words);
      return typeof question === 'string' && question.trim() !== '' ? question : null;
    } catch (error) {
      this.#options.start.report(error);
      return null;
    }
  }

  #end(event: Ended): void {
    this.#turn = null;
    this.isRunning = false;
    this.#asked = null;
    this.#rest();
    this.#stopped?.();
    this.#send(event);
  }

  #send(event: RelayEvent): void {
    if (!this.#isOver) this.#options.start.receive(event);
  }

  #settled(requestId: string): void {
    if (this.#open.delete(requestId) && this.#open.size === 0 && this.#turn) this.#work();
  }

  #count({ inputTokens, outputTokens, cost = 0 }: Extract<RelayEvent, { type: 'usage' }>): void {
    const { used, price } = this.#options;
    // A value that is not a number would disable the cap.
    used.tokens += amountOf(inputTokens) + amountOf(outputTokens);
    try {
      used.cost += amountOf(price ? price({ inputTokens, outputTokens }) : cost);
    } catch (error) {
      this.#options.start.report(error);
    }
    const limit = this.#overLimit();
    if (limit !== null) this.#stop(limit);
  }

  #overLimit(): string | null {
    const { caps, used } = this.#options;
    if (caps.tokens !== undefined && used.tokens >= caps.tokens)
      return `it used ${used.tokens} of ${caps.tokens} tokens`;
    if (caps.cost !== undefined && used.cost >= caps.cost)
      return `it cost ${used.cost} of ${caps.cost}`;
    if (caps.timeMs !== undefined && used.timeMs >= caps.timeMs)
      return `it worked for ${caps.timeMs} ms, which is all that it may`;
    return null;
  }

  #stop(limit: string): void {
    if (this.#limit !== null) return;
    this.#limit = limit;
    if (this.#turn && !this.#isOver) this.interrupt();
  }

  /** Starts the clock of the task. */
  #work(): void {
    const { caps, clock, used, start } = this.#options;
    if (this.#since !== null) return;
    this.#since = clock.now();
    if (caps.timeMs === undefined) return;
    this.#cancelTimer = start.scheduler.schedule(
      () => {
        this.#rest();
        const limit = this.#overLimit();
        if (limit === null) this.#work();
        else this.#stop(limit);
      },
      Math.max(1, caps.timeMs - used.timeMs),
    );
  }

  /** Pauses the clock of the task, because the user is being asked or no turn is running. */
  #rest(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#since === null) return;
    this.#options.used.timeMs += this.#options.clock.now() - this.#since;
    this.#since = null;
  }
}

function amountOf(given: unknown): number {
  return typeof given === 'number' && given > 0 ? given : 0;
}

/** Returns a session's id for the journal. If another subagent owns the folder, the id contains that owner. */
function writeSessionId(owner: string, subagentId: string, sessionId: string): string {
  return `${owner === subagentId ? '' : encodeURIComponent(owner)}/${sessionId}`;
}

/** Parses an id from `writeSessionId`. `owner`: the folder's owner, or null if it is the subagent. */
export function readSessionId(written: string): {
  readonly owner: string | null;
  sessionId: string;
} {
  const at = written.indexOf('/');
  if (at < 0) return { owner: null, sessionId: written };
  try {
    const owner = decodeURIComponent(written.slice(0, at));
    return { owner: owner === '' ? null : owner, sessionId: written.slice(at + 1) };
  } catch (cause) {
    throw new OffstageError('RELAY_LOST', `Expected the id of a session, got "${written}"`, {
      cause,
    });
  }
}
