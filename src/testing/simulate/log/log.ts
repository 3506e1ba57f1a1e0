// What happened in a run, in order: what was done to the session, what it showed, and what was
// kept. The promises are checked on it.

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

/** Something that happened. */
export type Happening =
  | { readonly kind: 'step'; readonly step: Step }
  | { readonly kind: 'fault'; readonly strike: Strike }
  /** A process began, on what is in the journal. */
  | { readonly kind: 'started' }
  /** The session could not begin: `start` was rejected. */
  | { readonly kind: 'notStarted'; readonly why: string }
  | { readonly kind: 'crashed' }
  /** Nobody is there and nothing goes on: the session leaves memory, and another process goes on with it. */
  | { readonly kind: 'slept' }
  | { readonly kind: 'event'; readonly event: SessionEvent }
  | { readonly kind: 'said'; readonly words: string; readonly how: 'speech' | 'typing' }
  | { readonly kind: 'clicked'; readonly requestId: string; readonly answer: GivenAnswer }
  | {
      readonly kind: 'receipt';
      readonly requestId: string;
      readonly answer: GivenAnswer;
      readonly receipt: AnswerReceipt;
    }
  /** What a text session showed. */
  | { readonly kind: 'part'; readonly part: TextPart }
  | { readonly kind: 'kept'; readonly entry: JournalEntry }
  | { readonly kind: 'model'; readonly name: string; readonly toolNames: readonly string[] }
  /** The voice model is asked to tell something. */
  | { readonly kind: 'asked'; readonly instructions: string }
  /** `resumed`: the voice model goes on where another connection ended. */
  | { readonly kind: 'line'; readonly what: 'opened' | 'resumed' | 'lost' | 'refused' }
  /** From here on everybody behaves, and nothing goes wrong. */
  | { readonly kind: 'behaves' }
  /** The session is asked to end. */
  | { readonly kind: 'closing' };

/** Something that happened, when, and in the life of which process. */
export type LogEntry = Happening & {
  /** Milliseconds after the beginning. */
  readonly at: number;
  /** Counts from 1. */
  readonly process: number;
};

/** All that is known of a run that is over. */
export interface RunRecord {
  readonly script: Script;
  readonly app: SimulatedApp;
  readonly log: readonly LogEntry[];
  readonly effects: readonly Effect[];
  /** What a voice client really played, in all processes. */
  readonly plays: readonly Play[];
  /** What the voice model said in an item. */
  wordsOf(itemId: string): string;
  /** When the run began; milliseconds since 1970. */
  readonly startedAt: number;
  /** Before the session was closed. */
  readonly state: SessionState | null;
  /** What was still to come when the time was over, each in a sentence. */
  readonly unfinished: readonly string[];
  /**
   * The longest time in which something was due, somebody listened, the line was there, nobody spoke,
   * and nothing was said; in milliseconds.
   */
  readonly longestSilenceMs: number;
  /** Timers that were left of the session when it was closed. */
  readonly timersLeft: number;
  /** Appends to the journal. */
  readonly appends: number;
}

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

const MAX_CHARS = 200;

/** The log as a person reads it; what is only bookkeeping is left out. */
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

/** One time that a tool ran. */
export interface Effect {
  /** The same for every attempt at one call. */
  readonly key: string;
  readonly tool: string;
  readonly input: unknown;
  readonly callId: string;
  /** Null: the lead agent's own tool. */
  readonly subagentId: string | null;
  /** The process that ran it, counted from 1. */
  readonly process: number;
  readonly at: number;
  /** It may be run again after a crash. */
  readonly isIdempotent: boolean;
  readonly needsApproval: boolean;
  /** `begun`: it has not returned, and never will if its process is dead. */
  status: 'begun' | 'returned' | 'threw';
}
