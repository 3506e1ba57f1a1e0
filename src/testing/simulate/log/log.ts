// The log of a run in chronological order: the actions on the session, the events and parts that it showed, and the
// journal entries. The promises are checked against this log.

import type { JournalEntry } from '../../../actors/ports/journal.ts';
import type { TextPart } from '../../../actors/session/lead/text-output.ts';
import type {
  AnswerReceipt,
  SessionEvent,
  SessionState,
} from '../../../actors/contracts/session-views.ts';
import type { GivenAnswer } from '../../../actors/subagent/ask-user.ts';
import type { Play } from '../../conformance/loudspeaker.ts';
import type { SimulatedApp } from './app.ts';
import type { Strike } from './fault-points.ts';
import { seconds, stepInWords, type Script, type Step } from './script.ts';

/** An entry of the log without its time. */
export type Happening =
  | { readonly kind: 'step'; readonly step: Step }
  | { readonly kind: 'fault'; readonly strike: Strike }
  /** A process was started from the journal. */
  | { readonly kind: 'started' }
  /** The session failed to start: `start` rejected. */
  | { readonly kind: 'notStarted'; readonly why: string }
  | { readonly kind: 'crashed' }
  /** The session is idle and has no client, so it leaves memory. Another process continues it later. */
  | { readonly kind: 'slept' }
  | { readonly kind: 'event'; readonly event: SessionEvent }
  | { readonly kind: 'said'; readonly words: string; readonly how: 'speech' | 'typing' }
  /** The session refused the user's text. */
  | { readonly kind: 'wordsRefused'; readonly why: string }
  | { readonly kind: 'clicked'; readonly requestId: string; readonly answer: GivenAnswer }
  | {
      readonly kind: 'receipt';
      readonly requestId: string;
      readonly answer: GivenAnswer;
      readonly receipt: AnswerReceipt;
    }
  /** A part that a text session has shown. */
  | { readonly kind: 'part'; readonly part: TextPart }
  | { readonly kind: 'kept'; readonly entry: JournalEntry }
  | { readonly kind: 'model'; readonly name: string; readonly toolNames: readonly string[] }
  /** The session asked the voice model to speak a message. */
  | { readonly kind: 'asked'; readonly instructions: string }
  /** `resumed`: the voice model continues from where another connection ended. */
  | { readonly kind: 'line'; readonly what: 'opened' | 'resumed' | 'lost' | 'refused' }
  /** From here on, no fault fires and the user answers everything. */
  | { readonly kind: 'behaves' }
  /** The player asked the session to close. */
  | { readonly kind: 'closing' };

/** An entry of the log with its time and process. */
export type LogEntry = Happening & {
  /** Milliseconds since the start of the run. */
  readonly at: number;
  /** The number of the process, starting at 1. */
  readonly process: number;
};

/** The record of a finished run. */
export interface RunRecord {
  /** The run's script. */
  readonly script: Script;
  /** The app that was simulated. */
  readonly app: SimulatedApp;
  /** The run's log. */
  readonly log: readonly LogEntry[];
  /** The tool runs, and the messages that channels sent. */
  readonly effects: readonly Effect[];
  /** The audio that a voice client has actually played, in all processes. */
  readonly plays: readonly Play[];
  /** Returns what the voice model said in an item. */
  wordsOf(itemId: string): string;
  /** The start of the run, in milliseconds since 1970. */
  readonly startedAt: number;
  /** The state immediately before the session was closed. */
  readonly state: SessionState | null;
  /** The work that was unfinished when time ran out. Each item is a sentence. */
  readonly unfinished: readonly string[];
  /**
   * The longest time, in milliseconds, for which a delivery was due but the session did not deliver it, although a
   * client was listening, the connection was active, and both sides were silent.
   */
  readonly longestSilenceMs: number;
  /** The number of timers that the session left behind when it was closed. */
  readonly timersLeft: number;
  /** The number of appends to the journal. */
  readonly appends: number;
}

/** Returns the events of this type from a simulation's log, each with its time and process. */
export function eventsOf<Type extends SessionEvent['type']>(
  log: readonly LogEntry[],
  type: Type,
): readonly {
  readonly at: number;
  readonly process: number;
  readonly event: Extract<SessionEvent, { type: Type }>;
}[] {
  const found = [];
  for (const entry of log)
    if (entry.kind === 'event' && entry.event.type === type)
      found.push({
        at: entry.at,
        process: entry.process,
        event: entry.event as Extract<SessionEvent, { type: Type }>,
      });
  return found;
}

/** Returns the part of the log before the player closed the session. */
export function upToClosing(log: readonly LogEntry[]): readonly LogEntry[] {
  const end = log.findIndex(({ kind }) => kind === 'closing');
  return end < 0 ? log : log.slice(0, end);
}

/** The states in which a question or a delivery has ended. */
export const OVER: ReadonlySet<string> = new Set([
  'answered',
  'expired',
  'withdrawn',
  'superseded',
]);
export const FINAL: ReadonlySet<string> = new Set(['delivered', 'dismissed', 'dropped']);

/** The prefix of a channel's name in an effect. */
export const CHANNEL = 'channel ';

const MAX_CHARS = 200;

/** Formats the log for a person and leaves out bookkeeping. */
export function logInWords(log: readonly LogEntry[]): string {
  return log
    .flatMap((entry) => {
      const words = happeningInWords(entry);
      return words === null ? [] : [`${seconds(entry.at)}  p${entry.process}  ${words}`];
    })
    .join('\n');
}

function happeningInWords(entry: LogEntry): string | null {
  switch (entry.kind) {
    case 'step':
      return `> ${stepInWords(entry.step)}`;
    case 'fault':
      return `! ${entry.strike.point} (${entry.strike.occurrence})`;
    case 'started':
      return '! a process begins';
    case 'notStarted':
      return `! the session does not start: ${entry.why}`;
    case 'slept':
      return '! the session is put away, until another process goes on with it';
    case 'crashed':
      return '! the process dies';
    case 'event':
      return entry.event.type === 'transcript.changed' && !entry.event.item.final
        ? null
        : brief(entry.event);
    case 'said':
      return `> the user ${entry.how === 'speech' ? 'says' : 'types'} ${JSON.stringify(entry.words)}`;
    case 'wordsRefused':
      return `  not taken: ${entry.why}`;
    case 'clicked':
      return `> the user clicks ${brief(entry.answer)} for ${entry.requestId}`;
    case 'receipt':
      return `  ${entry.requestId}: ${brief(entry.receipt)}`;
    case 'part':
      return entry.part.type === 'text.delta' ? null : brief(entry.part);
    case 'line':
      return `! a connection is ${entry.what}`;
    case 'behaves':
      return '> everybody behaves from here on';
    case 'closing':
      return '> the session is closed';
    case 'kept':
      return `  kept ${entry.entry.unit} ${entry.entry.seq}: ${entry.entry.actor} ${entry.entry.event.type}`;
    case 'model':
    case 'asked':
      return null;
  }
}

function brief(value: object): string {
  const json = JSON.stringify(value);
  return json.length > MAX_CHARS ? `${json.slice(0, MAX_CHARS)}…` : json;
}

/** One run of a tool. */
export interface Effect {
  /** The idempotency key. Each attempt at the same call has the same key. */
  readonly key: string;
  /** The tool's name. */
  readonly tool: string;
  /** The arguments of the tool call. */
  readonly input: unknown;
  /** The id of the tool call. */
  readonly callId: string;
  /** The subagent that called the tool, or null if the lead agent called it. */
  readonly subagentId: string | null;
  /** The number of the process that ran it, starting at 1. */
  readonly process: number;
  /** When the tool was called, in milliseconds since the start of the run. */
  readonly at: number;
  /** Whether the tool may run again after a crash. */
  readonly isIdempotent: boolean;
  /** Whether the tool needs approval. */
  readonly needsApproval: boolean;
  /** `begun`: the tool has not returned yet. It never will if its process is dead. */
  status: 'begun' | 'returned' | 'threw';
}
