// A relay: a third-party agent (a coding agent behind ACP, a hosted agent) that does the work of a subagent in place of a
// model. An adapter implements `Relay`; `test/suites/relays` tests an implementation.
//
// A session has one turn at a time. `prompt` begins it, and the event `turn_ended` ends it. Within a turn the agent
// speaks, reports its tools, and asks: each `permission` and `question` is answered once, by `answer`, or taken back by
// `withdrawn`. All of this arrives as events, in order.
//
// Invariants
//   RELAY-PORT-1. The agent gets nothing before the reason for it is in the journal: the id of its session before the
//       first prompt, an answer before `answer` is called.
//   RELAY-PORT-2. After `closed`, and after the promise of `release` has settled, no event arrives.
//   RELAY-PORT-3. A permission covers one request. A relay never permits by itself, and permits beyond the request only
//       for an answer that says so: the user pressed the button of that offer.

import type { Ids, Scheduler } from './environment.ts';

/** The abilities of an agent that decide how its work is recovered after a crash. */
export interface RelayCapabilities {
  /** Whether an open question outlives the connection: `start` with `resume` asks it again, under the same id. */
  readonly openQuestionSurvives: boolean;
  /** Whether another process can resume the conversation by its id. */
  readonly resumes: boolean;
  /** Whether the agent accepts words during a turn. Otherwise they become the next prompt. */
  readonly steers: boolean;
  /** Whether the agent reports when its tools begin and end. */
  readonly reportsTools: boolean;
}

/** Runs the steps of a subagent with a relay. The only implementation is `relayLoop` of `offstage/subagents`. */
export interface RelayExecutor {
  readonly stepsBy: 'relay';
}

/** Starts sessions with an agent. One relay serves many subagents. */
export interface Relay {
  /** The name of the agent, for messages and errors. */
  readonly name: string;
  /** The executor of the steps: `relayLoop` of `offstage/subagents`. */
  readonly loop: RelayExecutor;
  /** The abilities of the agent behind the relay. */
  readonly capabilities: RelayCapabilities;
  /**
   * Starts the agent, or resumes an earlier session by its id. Rejects soon after `signal` aborts, and then leaves
   * nothing running.
   */
  start(options: RelayStart): Promise<RelaySession>;
  /**
   * Deletes local data of a session that was released as `suspended` and will not be resumed, such as its folder. Called
   * for a subagent that has ended without a connection.
   */
  discard?(subagentId: string): void | Promise<void>;
}

/** The task of a subagent, for a relay that distinguishes tasks. */
export interface RelayTask {
  /** The tool whose call is the task. */
  readonly toolName: string;
  /** The arguments of the tool call. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The task, in words. */
  readonly description: string;
  /** An opaque object, the same for all subagents of one session. */
  readonly scope: object;
}

/** The options with which a relay starts or resumes the session of an agent. */
export interface RelayStart {
  /** The id of the subagent, unique in the journal. */
  readonly subagentId: string;
  /** The id of the session to resume; absent: the relay starts a new one. */
  readonly resume?: string;
  /** The task of the subagent. Absent: unknown. */
  readonly task?: RelayTask;
  /** Aborts the run of the agent. */
  readonly signal: AbortSignal;
  /**
   * Returns the W3C `traceparent` of the subagent's current work, which the relay sends with each request in the form of
   * the agent's protocol. Undefined or absent: the work is not traced.
   */
  traceparent?(): string | undefined;
  /** The source of time. */
  readonly scheduler: Scheduler;
  /** The source of ids. */
  readonly ids: Ids;
  /** Takes an event of the agent. Never throws. */
  receive(event: RelayEvent): void;
  /** Takes an error that does not end the session, such as an unreadable message. */
  report(error: unknown): void;
}

/** The prompt of one turn. */
export interface RelayPrompt {
  /** The same for every attempt to begin this turn. */
  readonly key: string;
  /** The words for the agent. */
  readonly text: string;
}

/** The session with the agent. The methods return at once; failures arrive as `closed` or `turn_ended`. */
export interface RelaySession {
  /** The id by which the session can be resumed. */
  readonly id: string;
  /** Whether a turn of an earlier process is still running: its open questions are asked again. */
  readonly isRunning: boolean;
  /** Begins a turn. No turn may be running. */
  prompt(prompt: RelayPrompt): void;
  /** Passes words into the running turn; called only if the agent `steers`. */
  steer(text: string): void;
  /** Answers a request. An unknown or already answered id is ignored. */
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

/** The answer to a request of an agent behind a relay. */
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
  /** The session can be resumed by this id from now on: some agents create an id only with the first prompt. */
  | { readonly type: 'session_id'; readonly id: string }
  /** A piece of the answer's text. */
  | { readonly type: 'words'; readonly text: string }
  | { readonly type: 'progress'; readonly text: string }
  /** A tool begins to run: from now on it may have had an effect. */
  | ({ readonly type: 'tool_started'; readonly toolId: string } & RelayTool)
  | {
      readonly type: 'tool_ended';
      readonly toolId: string;
      readonly ok: boolean;
      readonly output: unknown;
    }
  /**
   * `toolId`: the id under which the tool is reported once it is permitted. `lasting`: the tool may also be permitted
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
   * Tokens that were used since the last report, and their price, if the agent knows it. The parts of input and output
   * are those of `Usage`.
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
  /** The connection is lost, or the agent has ended. */
  | { readonly type: 'closed'; readonly message: string };
