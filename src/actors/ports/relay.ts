// A relay: an agent of somebody else (a coding agent behind ACP, a hosted agent) that does the work of a subagent
// in place of a model. An adapter implements `Relay`; `test/suites/relays` tests one.
//
// A session has one turn at a time. `prompt` begins it, and the event `turn_ended` ends it. Within a turn the other
// agent speaks, reports its tools, and asks: each `permission` and `question` is answered once, by `answer`, or taken
// back by `withdrawn`. All of it comes as events, in order.
//
// Invariants
//   RELAY-PORT-1. Nothing is told to the other agent before the reason for it is in the journal: the id of its session
//       before the first prompt, an answer before it is passed on.
//   RELAY-PORT-2. After `closed`, and after the promise of `release` has settled, no event comes.
//   RELAY-PORT-3. A permission covers one request. A relay never gives one by itself, and a lasting one only for an
//       answer that says so: the user pressed the button of that offer.

import type { Ids, Scheduler } from './environment.ts';

/** The abilities of an agent that decide how its work is recovered after a crash. */
export interface RelayCapabilities {
  /** An open question outlives the connection: `start` with `resume` asks it again, under its old id. */
  readonly openQuestionSurvives: boolean;
  /** The conversation can be taken up again by its id, in another process. */
  readonly resumes: boolean;
  /** It takes words during a turn. Otherwise they are the next prompt. */
  readonly steers: boolean;
  /** It reports when a tool of its own begins and ends. */
  readonly reportsTools: boolean;
}

/** Does the steps of a subagent with a relay. The one that there is: `relayLoop` of `offstage/subagents`. */
export interface RelayExecutor {
  readonly stepsBy: 'relay';
}

/** Starts sessions with an agent. One relay serves many subagents. */
export interface Relay {
  /** The name of the agent, for messages and errors. */
  readonly name: string;
  /** `relayLoop` of `offstage/subagents`. */
  readonly loop: RelayExecutor;
  readonly capabilities: RelayCapabilities;
  /**
   * Starts the agent, or takes an earlier session up by its id. Rejects soon after `signal` aborts, and leaves
   * nothing running then.
   */
  start(options: RelayStart): Promise<RelaySession>;
  /**
   * Removes what a session that was let go as `suspended` has left here, such as its folder: nobody takes it up
   * again. Called for a subagent that has ended without a connection.
   */
  discard?(subagentId: string): void | Promise<void>;
}

/** The task of a subagent, for a relay that treats tasks differently. */
export interface RelayTask {
  /** The tool that gave it. */
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly description: string;
  /** The same object for all subagents of one session; it has nothing to read. */
  readonly scope: object;
}

/** What a relay gets to begin or take up the session of an agent. */
export interface RelayStart {
  /** The id of the subagent, unique in the journal. */
  readonly subagentId: string;
  /** The id of the session to take up; absent: a new one. */
  readonly resume?: string;
  /** Absent: not known. */
  readonly task?: RelayTask;
  readonly signal: AbortSignal;
  /**
   * Returns the W3C `traceparent` of the subagent's work under way, to be passed on beside each request, as the protocol
   * of the agent does it. Undefined or absent: nobody traces.
   */
  traceparent?(): string | undefined;
  /** The source of time. */
  readonly scheduler: Scheduler;
  /** The source of ids. */
  readonly ids: Ids;
  /** Takes an event of the agent. Never throws. */
  receive(event: RelayEvent): void;
  /** Takes an error that does not end the session, such as a message that cannot be read. */
  report(error: unknown): void;
}

/** The prompt of one turn of an agent behind a relay. */
export interface RelayPrompt {
  /** The same for every attempt to begin this turn. */
  readonly key: string;
  readonly text: string;
}

/** The conversation with the agent. Its methods return at once; failures come as `closed` or `turn_ended`. */
export interface RelaySession {
  /** The id by which the session is taken up now. */
  readonly id: string;
  /** Tells whether a turn of an earlier process is still under way: its open questions come again. */
  readonly isRunning: boolean;
  /** Begins a turn; none is under way. */
  prompt(prompt: RelayPrompt): void;
  /** Passes words into the turn under way; called only if the agent `steers`. */
  steer(text: string): void;
  /** Answers a request. An unknown id, or one that was answered, is ignored. */
  answer(requestId: string, answer: RelayAnswer): void;
  /**
   * Cancels the turn under way: settles its open requests as cancelled, and asks the agent to stop. `turn_ended`
   * follows, or `closed`. Does nothing between turns.
   */
  interrupt(): void;
  /**
   * Lets go of the agent; called once. `ended`: cancels what is under way. `suspended`: another process takes the
   * session up, so a turn that outlives the connection goes on.
   */
  release(why: 'ended' | 'suspended'): Promise<RelayRelease>;
}

/** How the agent ended: it had nothing to do, it stopped when it was asked, or it had to be killed. */
export type RelayRelease = 'idle' | 'cancelled' | 'killed';

/** The answer to a request of an agent behind a relay. */
export type RelayAnswer =
  /** This call, this once; `lasting`: and for as long as the request offered. */
  | { readonly type: 'permitted'; readonly lasting?: true }
  | { readonly type: 'denied'; readonly words: string }
  | { readonly type: 'answered'; readonly text: string; readonly optionId?: string }
  /** The question is withdrawn: no answer follows. */
  | { readonly type: 'cancelled' };

/** A tool of the agent, in its own words. */
export interface RelayTool {
  readonly title: string;
  /** Its kind, such as `edit`, `execute` or `read`. */
  readonly kind: string;
  /** Its arguments, as JSON. */
  readonly input: unknown;
}

/** An event of an agent behind a relay. */
export type RelayEvent =
  /** The session is taken up by this id from now on: an agent that names its work only when it has been given some. */
  | { readonly type: 'session_id'; readonly id: string }
  /** Words of the answer, in pieces. */
  | { readonly type: 'words'; readonly text: string }
  | { readonly type: 'progress'; readonly text: string }
  /** A tool is being run: from now on it may have had an effect. */
  | ({ readonly type: 'tool_started'; readonly toolId: string } & RelayTool)
  | {
      readonly type: 'tool_ended';
      readonly toolId: string;
      readonly ok: boolean;
      readonly output: unknown;
    }
  /**
   * `toolId`: the tool is reported under this id once it is permitted. `lasting`: it may also be permitted beyond this
   * call; the words say for what, and until when.
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
  /** `mediaType` as in `text/plain`. */
  | {
      readonly type: 'artifact';
      readonly name: string;
      readonly mediaType: string;
      readonly content: string;
    }
  /**
   * Tokens that were used since the last report, and their price, if the agent knows it. The parts of input and output as
   * in `Usage`.
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
