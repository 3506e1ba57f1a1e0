// An in-memory relay. Its agent does what the prompt (`actsPrompt`) or a script says. It is for tests of subagents on
// relays, and is an example of a relay that passes the suite in `test/suites/relays`.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { messageOf } from '../../values/errors.ts';
import type {
  Relay,
  RelayAnswer,
  RelayCapabilities,
  RelayEvent,
  RelayRelease,
  RelaySession,
  RelayStart,
  RelayTool,
} from '../../actors/ports/relay.ts';
import { relayLoop } from '../../actors/subagent/relay-loop.ts';
import { actsIn, perform, type RelayAct, type RelayActor } from './relay-acts.ts';

/** The options of `scriptedRelay`. */
export interface ScriptedRelayOptions {
  /** @defaultValue all except `openQuestionSurvives` */
  readonly capabilities?: Partial<RelayCapabilities>;
  /** Returns the acts that the agent performs in a turn. @defaultValue the acts in the prompt */
  readonly script?: (prompt: string) => readonly RelayAct[];
  /** How long the agent needs to stop, in milliseconds. @defaultValue 1000 */
  readonly graceMs?: number;
}

/** A message that the agent has received. */
export type ToldRelay =
  | { readonly type: 'start'; readonly session: string; readonly resumed: boolean }
  | {
      readonly type: 'prompt';
      readonly session: string;
      readonly key: string;
      readonly text: string;
    }
  | { readonly type: 'steer'; readonly session: string; readonly text: string }
  | {
      readonly type: 'answer';
      readonly session: string;
      readonly requestId: string;
      readonly answer: RelayAnswer;
    }
  | { readonly type: 'interrupt'; readonly session: string }
  | { readonly type: 'release'; readonly session: string; readonly how: RelayRelease };

/** A test relay whose agents do what the prompt or a script says. */
export interface ScriptedRelay extends Relay {
  /** All messages to the agents so far, in order. */
  readonly told: readonly ToldRelay[];
  /** The number of open connections. */
  readonly running: number;
  /** Ends all agents, as if their processes had been killed. */
  kill(): void;
}

const optionsSchema = z.strictObject({
  capabilities: z.record(z.string(), z.boolean()).optional(),
  script: aFunction.optional(),
  graceMs: z.number().min(0).optional(),
} satisfies ChecksOf<ScriptedRelayOptions>);

/** Creates an in-memory relay. */
export function scriptedRelay(options: ScriptedRelayOptions = {}): ScriptedRelay {
  check('scriptedRelay(options)', optionsSchema, options);
  return new MemoryRelay(options);
}

class MemoryRelay implements ScriptedRelay {
  readonly name = 'a scripted agent';
  readonly loop = relayLoop;
  readonly capabilities: RelayCapabilities;
  readonly told: ToldRelay[] = [];
  readonly script: (prompt: string) => readonly RelayAct[];
  readonly graceMs: number;
  readonly #agents = new Map<string, Agent>();

  constructor({ capabilities = {}, script = actsIn, graceMs = 1_000 }: ScriptedRelayOptions) {
    const usual = { openQuestionSurvives: false, resumes: true, steers: true, reportsTools: true };
    this.capabilities = { ...usual, ...capabilities };
    this.script = script;
    this.graceMs = graceMs;
  }

  get running(): number {
    return [...this.#agents.values()].filter(({ isConnected }) => isConnected).length;
  }

  kill(): void {
    for (const agent of this.#agents.values()) agent.die('killed');
  }

  start(options: RelayStart): Promise<RelaySession> {
    const { resume, signal } = options;
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const id = resume ?? `session-${this.#agents.size + 1}`;
      const known = this.#agents.get(id);
      if (resume !== undefined && !known) {
        reject(new Error(`There is no session "${resume}"`));
        return;
      }
      const agent = known ?? new Agent(id, this);
      this.#agents.set(id, agent);
      this.told.push({ type: 'start', session: id, resumed: resume !== undefined });
      resolve(agent.connect(options));
    });
  }
}

/** An agent and its conversation. The agent outlives its connections. */
class Agent {
  readonly #id: string;
  readonly #relay: MemoryRelay;
  #connection: RelayStart | null = null;
  #turn: AbortController | null = null;
  #isDeaf = false;
  #requests = 0;
  #unheard: RelayEvent[] = [];
  readonly #open = new Map<
    string,
    { readonly event: RelayEvent; readonly resolve: (answer: RelayAnswer) => void }
  >();

  constructor(id: string, relay: MemoryRelay) {
    this.#id = id;
    this.#relay = relay;
  }

  get isConnected(): boolean {
    return this.#connection !== null;
  }

  die(message: string): void {
    const connection = this.#connection;
    this.#connection = null;
    this.#lose();
    connection?.receive({ type: 'closed', message });
  }

  /** Called when the connection is gone. The agent continues only if its questions survive. */
  #lose(): void {
    if (this.#relay.capabilities.openQuestionSurvives) return;
    this.#turn = null;
    this.#open.clear();
    this.#unheard = [];
  }

  connect(connection: RelayStart): RelaySession {
    this.#connection = connection;
    const isRunning = this.#turn !== null || this.#unheard.length > 0;
    const unheard = [...this.#unheard, ...[...this.#open.values()].map(({ event }) => event)];
    this.#unheard = [];
    connection.scheduler.yieldThen(() => {
      for (const event of unheard) this.#send(event, connection);
    });
    return this.#session(connection, isRunning);
  }

  #session(connection: RelayStart, isRunning: boolean): RelaySession {
    const session = this.#id;
    const { told, graceMs } = this.#relay;
    const isOpen = (): boolean => this.#connection === connection;
    return {
      id: session,
      isRunning,
      prompt: ({ key, text }) => {
        told.push({ type: 'prompt', session, key, text });
        if (isOpen()) void this.#begin(text);
      },
      steer: (text) => {
        told.push({ type: 'steer', session, text });
        if (isOpen()) this.#send({ type: 'words', text: `steered: ${text}. ` });
      },
      answer: (requestId, answer) => {
        told.push({ type: 'answer', session, requestId, answer });
        if (isOpen()) this.#settle(requestId, answer);
      },
      interrupt: () => {
        if (!isOpen() || !this.#turn) return;
        told.push({ type: 'interrupt', session });
        this.#cancel();
        connection.scheduler.schedule(() => {
          if (isOpen() && this.#turn) this.die('it did not stop, and was killed');
        }, graceMs);
      },
      release: (why) => this.#release(connection, why),
    };
  }

  async #release(connection: RelayStart, why: 'ended' | 'suspended'): Promise<RelayRelease> {
    const end = (how: RelayRelease): RelayRelease => {
      this.#relay.told.push({ type: 'release', session: this.#id, how });
      if (this.#connection === connection) this.#connection = null;
      return how;
    };
    if (this.#connection !== connection) return end('idle');
    const { openQuestionSurvives } = this.#relay.capabilities;
    if (!this.#turn || (why === 'suspended' && openQuestionSurvives)) return end('idle');
    this.#connection = { ...connection, receive() {} };
    const silent = this.#connection;
    this.#cancel();
    if (!this.#isDeaf) {
      this.#turn = null;
      this.#connection = null;
      return end('cancelled');
    }
    await new Promise<void>((resolve) => {
      connection.scheduler.schedule(resolve, this.#relay.graceMs);
    });
    this.#turn = null;
    this.#isDeaf = false;
    if (this.#connection === silent) this.#connection = null;
    return end('killed');
  }

  #cancel(): void {
    if (this.#isDeaf) return;
    for (const requestId of this.#open.keys()) this.#settle(requestId, { type: 'cancelled' });
    this.#turn?.abort();
  }

  #settle(requestId: string, answer: RelayAnswer): void {
    const request = this.#open.get(requestId);
    this.#open.delete(requestId);
    request?.resolve(answer);
  }

  #send(event: RelayEvent, to = this.#connection): void {
    if (to && to === this.#connection) to.receive(event);
    else if (this.#relay.capabilities.openQuestionSurvives) this.#unheard.push(event);
  }

  async #begin(text: string): Promise<void> {
    const turn = new AbortController();
    this.#turn = turn;
    const isOurs = (): boolean => this.#turn === turn;
    try {
      const reason = await perform(this.#relay.script(text), this.#actor(turn, isOurs));
      if (!isOurs()) return;
      this.#turn = null;
      this.#send({ type: 'turn_ended', reason });
    } catch (error) {
      if (!isOurs()) return;
      this.#turn = null;
      this.#send({ type: 'turn_ended', reason: 'failed', message: messageOf(error) });
    }
  }

  #actor(turn: AbortController, isOurs: () => boolean): RelayActor {
    const send = (event: RelayEvent): void => {
      if (isOurs()) this.#send(event);
    };
    const ask = (event: RelayEvent & { readonly requestId: string }): Promise<RelayAnswer> =>
      new Promise((resolve) => {
        this.#open.set(event.requestId, { event, resolve });
        send(event);
      });
    const nextId = (): string => `request-${(this.#requests += 1)}`;
    return {
      cancelled: turn.signal,
      say: (text) => send({ type: 'words', text }),
      progress: (text) => send({ type: 'progress', text }),
      toolStarted: (toolId: string, tool: RelayTool) =>
        send({ type: 'tool_started', toolId, ...tool }),
      toolEnded: (toolId, ok, output) => send({ type: 'tool_ended', toolId, ok, output }),
      permission: async (toolId, tool, lasting) => {
        const offer = lasting === undefined ? {} : { lasting };
        const request = {
          type: 'permission',
          requestId: nextId(),
          toolId,
          ...tool,
          ...offer,
        } as const;
        const { type } = await ask(request);
        return type;
      },
      question: async (text, options) => {
        const answer = await ask({ type: 'question', requestId: nextId(), text, options });
        return answer.type === 'answered' ? answer : null;
      },
      deaf: () => {
        this.#isDeaf = true;
      },
      die: () => {
        this.die('it ended with code 3');
        return new Promise<never>(() => {});
      },
      garbage: () => send(JSON.parse('{"type":"nonsense"}') as RelayEvent),
    };
  }
}
