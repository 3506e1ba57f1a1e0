// A relay: an interface to a third-party agent (a coding agent behind ACP, a hosted agent) that does a subagent's work
// instead of a model. An adapter implements `Relay`; `test/suites/relays` tests an implementation.
//
// A session has at most one turn at a time. `prompt` starts it, and the event `turn_ended` ends it. During a turn, the
// agent speaks, reports its tools, and asks: each `permission` and `question` is either answered once, with `answer`,
// or withdrawn by the agent, with `withdrawn`. The relay reports all of this as events, in order.
//
// Invariants
//   RELAY-PORT-1. Nothing is sent to the agent before its cause is in the journal: its session id is written before the
//       first prompt, and an answer is written before `answer` is called.
//   RELAY-PORT-2. After `closed`, and after the promise of `release` has settled, no event arrives.
//   RELAY-PORT-3. A permission covers one request only. A relay never gives permission on its own, and it permits more
//       than the request only if the answer says so, because the user pressed the button that offers this.

import type { Ids, Scheduler } from './environment.ts';

/** The capabilities of an agent that determine how its work is recovered after a crash. */
export interface RelayCapabilities {
  /**
   * Whether an open question survives the loss of the connection: `start` with `resume` then asks it again with the
   * same id.
   */
  readonly openQuestionSurvives: boolean;
  /** Whether another process can resume the conversation by its id. */
  readonly resumes: boolean;
  /** Whether the agent accepts messages during a turn. If not, they become the next prompt. */
  readonly steers: boolean;
  /** Whether the agent reports when its tools start and end. */
  readonly reportsTools: boolean;
}

/** Runs a subagent's steps through a relay. The only implementation is `relayLoop` of `offstage/subagents`. */
export interface RelayExecutor {
  /** Marks the executor, so that a configuration with a relay that lacks one is refused. */
  readonly stepsBy: 'relay';
}

/** Starts sessions with an agent. One relay is used for many subagents. */
export interface Relay {
  /** The agent's name in messages and errors. */
  readonly name: string;
  /** Runs the steps: `relayLoop` of `offstage/subagents`. */
  readonly loop: RelayExecutor;
  /** The capabilities of the agent behind the relay. */
  readonly capabilities: RelayCapabilities;
  /**
   * Starts the agent, or resumes an earlier session by its id. Rejects soon after `signal` aborts, and leaves nothing running.
   */
  start(options: RelayStart): Promise<RelaySession>;
  /**
   * Deletes local data, such as the folder, of a session that was released as `suspended` and will not be resumed.
   * Called for a subagent that ended while it had no connection to its agent.
   */
  discard?(subagentId: string): void | Promise<void>;
}

/** A subagent's task, for a relay that handles different tasks differently. */
export interface RelayTask {
  /** The tool whose call is the task. */
  readonly toolName: string;
  /** The tool call's arguments. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The task, as text. */
  readonly description: string;
  /** An opaque object that is the same for all subagents of one session. */
  readonly scope: object;
}

/** The options with which a relay starts or resumes an agent's session. */
export interface RelayStart {
  /** The subagent's id, unique in the journal. */
  readonly subagentId: string;
  /** The id of the session to resume; absent if the relay starts a new session. */
  readonly resume?: string;
  /** The subagent's task. Absent if unknown. */
  readonly task?: RelayTask;
  /** Aborting it ends the agent's run. */
  readonly signal: AbortSignal;
  /**
   * Returns the W3C `traceparent` of the subagent's current work. The relay sends it with each request, in the form
   * that the agent's protocol requires. Undefined or absent if the work is not traced.
   */
  traceparent?(): string | undefined;
  /** The source of time. */
  readonly scheduler: Scheduler;
  /** The source of ids. */
  readonly ids: Ids;
  /** Receives an event of the agent. Never throws. */
  receive(event: RelayEvent): void;
  /** Receives an error that does not end the session, such as an unreadable message. */
  report(error: unknown): void;
}

/** The prompt of one turn. */
export interface RelayPrompt {
  /** The prompt's key, which is the same for every attempt to start this turn. */
  readonly key: string;
  /** The text for the agent. */
  readonly text: string;
}

/** A session with the agent. Its methods return immediately; failures arrive as `closed` or `turn_ended`. */
export interface RelaySession {
  /** The id with which the session can be resumed. */
  readonly id: string;
  /** Whether a turn that an earlier process started is still running; its open questions are asked again. */
  readonly isRunning: boolean;
  /** Starts a turn. Must not be called while a turn is running. */
  prompt(prompt: RelayPrompt): void;
  /** Adds a message to the running turn; called only if the agent `steers`. */
  steer(text: string): void;
  /** Answers a request. Ignores an id that is unknown or already answered. */
  answer(requestId: string, answer: RelayAnswer): void;
  /**
   * Cancels the running turn: settles its open requests as cancelled, and asks the agent to stop. The event
   * `turn_ended` or `closed` follows. Has no effect between turns.
   */
  interrupt(): void;
  /**
   * Releases the agent; called once. `ended`: running work is cancelled. `suspended`: another process will resume the
   * session, so a turn that outlives the connection continues.
   */
  release(why: 'ended' | 'suspended'): Promise<RelayRelease>;
}

/** How the agent ended: it was idle, it stopped on request, or it was killed. */
export type RelayRelease = 'idle' | 'cancelled' | 'killed';

/** The answer to a request from an agent behind a relay. */
export type RelayAnswer =
  /** Permits this request once; with `lasting`, for the period that the request offered. */
  | { readonly type: 'permitted'; readonly lasting?: true }
  | { readonly type: 'denied'; readonly words: string }
  | { readonly type: 'answered'; readonly text: string; readonly optionId?: string }
  /** The question is withdrawn: no answer will follow. */
  | { readonly type: 'cancelled' };

/** A tool of the agent, as the agent describes it. */
export interface RelayTool {
  /** A short description of the call, for people. */
  readonly title: string;
  /** The kind of the tool, such as `edit`, `execute` or `read`. */
  readonly kind: string;
  /** The arguments, as JSON. */
  readonly input: unknown;
}

/** An event of an agent behind a relay. */
export type RelayEvent =
  /** From now on, the session can be resumed with this id; some agents create their id only at the first prompt. */
  | { readonly type: 'session_id'; readonly id: string }
  /** A part of the answer's text. */
  | { readonly type: 'words'; readonly text: string }
  | { readonly type: 'progress'; readonly text: string }
  /** A tool starts to run. From this point on, it may have had an effect. */
  | ({ readonly type: 'tool_started'; readonly toolId: string } & RelayTool)
  | {
      readonly type: 'tool_ended';
      readonly toolId: string;
      readonly ok: boolean;
      readonly output: unknown;
    }
  /**
   * `toolId`: the id with which the tool is reported after it has been permitted. `lasting`: set if the tool can also
   * be permitted for later calls; the text says what would be permitted, and for how long.
   */
  | ({
      readonly type: 'permission';
      readonly requestId: string;
      readonly toolId?: string;
      readonly lasting?: string;
    } & RelayTool)
  | {
      readonly type: 'question';
      readonly requestId: string;
      readonly text: string;
      readonly options?: readonly {
        readonly id: string;
        readonly label: string;
        readonly description?: string;
      }[];
    }
  /** The agent is no longer waiting for the answer. */
  | { readonly type: 'withdrawn'; readonly requestId: string }
  /** A file that the agent produced; `mediaType` is, for example, `text/plain`. */
  | {
      readonly type: 'artifact';
      readonly name: string;
      readonly mediaType: string;
      readonly content: string;
    }
  /**
   * The tokens used since the last report, and their price if the agent knows it. The tokens are broken down into input
   * and output as in `Usage`.
   */
  | {
      readonly type: 'usage';
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly cachedInputTokens?: number;
      readonly cacheWriteTokens?: number;
      readonly reasoningTokens?: number;
      readonly cost?: number;
    }
  | {
      readonly type: 'turn_ended';
      readonly reason: 'completed' | 'cancelled' | 'refused' | 'limit' | 'failed';
      readonly message?: string;
    }
  /** The connection was lost, or the agent has ended. */
  | { readonly type: 'closed'; readonly message: string };
