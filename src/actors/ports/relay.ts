// A relay: a third-party agent (a coding agent behind ACP, a hosted agent) that does a subagent's work in place of a
// model. An adapter implements `Relay`; `test/suites/relays` tests an implementation.
//
// A session has one turn at a time. `prompt` starts it, and the event `turn_ended` ends it. During a turn, the agent
// speaks, reports its tools, and asks: each `permission` and `question` is answered once with `answer`, or taken back
// with `withdrawn`. All of this arrives as events, in order.
//
// Invariants
//   RELAY-PORT-1. The agent receives nothing before its cause is in the journal: its session id before the first
//       prompt, an answer before `answer` is called.
//   RELAY-PORT-2. After `closed`, and after the promise of `release` has settled, no event arrives.
//   RELAY-PORT-3. A permission covers one request. A relay never permits by itself, and permits more than the request
//       only if the answer says so: the user pressed the button of that offer.

import type { Ids, Scheduler } from './environment.ts';

/** The abilities of an agent that determine how its work is recovered after a crash. */
export interface RelayCapabilities {
  /** Whether an open question outlives the connection: `start` with `resume` asks it again with the same id. */
  readonly openQuestionSurvives: boolean;
  /** Whether another process can resume the conversation by its id. */
  readonly resumes: boolean;
  /** Whether the agent accepts words during a turn. Otherwise, they become the next prompt. */
  readonly steers: boolean;
  /** Whether the agent reports when its tools start and end. */
  readonly reportsTools: boolean;
}

/** Runs a subagent's steps with a relay. The only implementation is `relayLoop` of `offstage/subagents`. */
export interface RelayExecutor {
  readonly stepsBy: 'relay';
}

/** Starts sessions with an agent. One relay serves many subagents. */
export interface Relay {
  /** The agent's name in messages and errors. */
  readonly name: string;
  /** Runs the steps: `relayLoop` of `offstage/subagents`. */
  readonly loop: RelayExecutor;
  /** The abilities of the agent behind the relay. */
  readonly capabilities: RelayCapabilities;
  /**
   * Starts the agent, or resumes an earlier session by its id. Rejects soon after `signal` aborts, and leaves nothing running.
   */
  start(options: RelayStart): Promise<RelaySession>;
  /**
   * Deletes local data, such as the folder, of a session that was released as `suspended` and will not resume. Called
   * for a subagent that ended without a connection.
   */
  discard?(subagentId: string): void | Promise<void>;
}

/** A subagent's task, for a relay that distinguishes tasks. */
export interface RelayTask {
  /** The tool whose call is the task. */
  readonly toolName: string;
  /** The tool call's arguments. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The task, in words. */
  readonly description: string;
  /** An opaque object, the same for all subagents of one session. */
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
  /** Aborts the agent's run. */
  readonly signal: AbortSignal;
  /**
   * Returns the W3C `traceparent` of the subagent's current work; the relay sends it with each request, in the form of
   * the agent's protocol. Undefined or absent if the work is not traced.
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
  /** The same for every attempt to start this turn. */
  readonly key: string;
  /** The words for the agent. */
  readonly text: string;
}

/** The session with the agent. Its methods return immediately; failures arrive as `closed` or `turn_ended`. */
export interface RelaySession {
  /** The id with which the session can be resumed. */
  readonly id: string;
  /** Whether an earlier process's turn is still running; its open questions are asked again. */
  readonly isRunning: boolean;
  /** Starts a turn. No turn may be running. */
  prompt(prompt: RelayPrompt): void;
  /** Passes words into the running turn; called only if the agent `steers`. */
  steer(text: string): void;
  /** Answers a request. An unknown or answered id is ignored. */
  answer(requestId: string, answer: RelayAnswer): void;
  /**
   * Cancels the running turn: settles its open requests as cancelled, and asks the agent to stop. `turn_ended` or
   * `closed` follows. Does nothing between turns.
   */
  interrupt(): void;
  /**
   * Releases the agent; called once. `ended`: running work is cancelled. `suspended`: another process will resume the
   * session, so a turn that outlives the connection continues.
   */
  release(why: 'ended' | 'suspended'): Promise<RelayRelease>;
}

/** How the agent ended: it was idle, it stopped when asked, or it was killed. */
export type RelayRelease = 'idle' | 'cancelled' | 'killed';

/** The answer to a request from an agent behind a relay. */
export type RelayAnswer =
  /** Permits this request once; with `lasting`, for as long as the request offered. */
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
  /** From now on, the session can be resumed with this id: some agents create an id only at the first prompt. */
  | { readonly type: 'session_id'; readonly id: string }
  /** A part of the answer's text. */
  | { readonly type: 'words'; readonly text: string }
  | { readonly type: 'progress'; readonly text: string }
  /** A tool starts to run: from now on, it may have had an effect. */
  | ({ readonly type: 'tool_started'; readonly toolId: string } & RelayTool)
  | {
      readonly type: 'tool_ended';
      readonly toolId: string;
      readonly ok: boolean;
      readonly output: unknown;
    }
  /**
   * `toolId`: the id with which the tool is reported once it is permitted. `lasting`: the tool may also be permitted
   * beyond this call; the text says for what, and until when.
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
  /** The agent no longer waits for the answer. */
  | { readonly type: 'withdrawn'; readonly requestId: string }
  /** A file; `mediaType` is for example `text/plain`. */
  | {
      readonly type: 'artifact';
      readonly name: string;
      readonly mediaType: string;
      readonly content: string;
    }
  /**
   * Tokens used since the last report, and their price, if the agent knows it. The breakdown of input and output is
   * that of `Usage`.
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
