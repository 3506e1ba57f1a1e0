// The names of the fault points and their default probabilities.
//
// Owns:     the names, the effect of each fault point, and the default plan.
// Does not: decide when a fault fires (faults) or apply one (its callers do).

import { z } from 'zod';

/** The maximum delay of a slow model, tool or channel. */
export const SLOW_MS = 8000;

/** Every fault point and what it does. */
export const FAULT_POINTS = {
  'crash.beforeAppend': 'the process dies before an entry is written',
  'crash.afterAppend': 'the process dies after an entry is written but before the append returns',
  'journal.slow': 'an append takes up to 300 ms longer',
  'journal.fails': 'an append fails; the entry is not written, and may be retried',
  'line.refuses': 'a connection to the voice model cannot be opened',
  'line.drops': 'the connection is lost, up to 3 s after the model started to speak or listen',
  'line.outage': 'the connection is lost, and none can be opened for 20 to 120 s',
  'line.slow': "the voice model's speech arrives late, by up to 1 s",
  'line.expires': 'the wire announces that it ends this connection',
  'line.forgets': 'after a lost connection the voice model has forgotten the conversation',
  'words.late': "the transcript of the user's words arrives up to 4 s late",
  'client.leaves': 'the listener leaves during a delivery, and returns within 20 s',
  'client.vanishes':
    "the client disappears during a turn, the user's or the model's, for up to 20 s",
  'client.reloads': 'the client reloads during a delivery: it is gone for 300 ms',
  'user.bargesIn': 'the user speaks over the lead agent, or types during its reply',
  'user.digresses': 'the user first replies to a question with unrelated words',
  'user.silent': 'the user does not answer a question',
  'user.television':
    "the user's utterance does not end: a television plays in the background for the rest of the run",
  'user.coughs': 'the user makes a sound without words, soon after speaking',
  'user.goesOn': "the user's utterance is very long: 16 to 40 s",
  'lead.empty': "the lead agent's model ends a response without a word",
  'answer.late': 'the user clicks after the question has ended',
  'answer.twice': 'the user clicks twice, the second time on another option',
  'consent.lies':
    'the model that interprets consent mistakes words that mean something else for a yes',
  'page.reloads': 'a page reloads after it has carried out a tool call but before it has answered',
  'model.fails': 'a model call fails; a retry may succeed',
  'model.slow': 'a model thinks for up to 8 s longer',
  'model.silent': 'a model does not answer for 90 s, and then fails',
  'tool.fails': 'a tool throws before it has done anything',
  'tool.slow': 'a tool takes up to 8 s longer',
  'tool.hangs': 'a tool does its work but never returns',
  'source.fails': 'an event source fails, up to 5 s after it was started',
  'worker.dies': "an engine's worker dies, up to 4 s after a step started as a job",
} as const satisfies Readonly<Record<string, string>>;

/** A place in a simulation where a fault can fire, such as `crash.afterAppend`. */
export type FaultPoint = keyof typeof FAULT_POINTS;

/** The names of all fault points of a simulation. */
export const faultPoints = Object.keys(FAULT_POINTS) as readonly FaultPoint[];

/** When a fault point fires. */
export interface FaultRule {
  /** The probability at each occurrence, from 0 to 1. @defaultValue 0 */
  readonly probability?: number;
  /** The occurrences at which the point always fires, counted from 1. @defaultValue none */
  readonly at?: readonly number[];
  /** The maximum number of times that the point fires in one run. @defaultValue unlimited */
  readonly most?: number;
}

/** The active fault points. A number is read as a probability. Points that are omitted never fire. */
export type FaultPlan = { readonly [Point in FaultPoint]?: number | FaultRule };

/** A fault that fired: the point and its occurrence, counted from 1. */
export interface Strike {
  /** The fault point, one of `faultPoints`. */
  readonly point: FaultPoint;
  /** How many times the run had reached the fault point, counted from 1. */
  readonly occurrence: number;
}

export const strikeSchema = z.strictObject({
  point: z.enum(faultPoints as [FaultPoint, ...FaultPoint[]]),
  occurrence: z.number().int().min(1),
});

/** Most runs contain a crash, a lost connection or a barge-in, but few contain all of these. */
export const defaultFaults: FaultPlan = {
  'crash.beforeAppend': { probability: 0.012, most: 2 },
  'crash.afterAppend': { probability: 0.012, most: 2 },
  'journal.slow': 0.04,
  'journal.fails': { probability: 0.01, most: 4 },
  'line.refuses': { probability: 0.15, most: 2 },
  'line.drops': { probability: 0.12, most: 3 },
  'line.outage': { probability: 0.02, most: 1 },
  'line.slow': 0.05,
  'line.expires': { probability: 0.05, most: 1 },
  'line.forgets': 0.3,
  'words.late': 0.1,
  'client.leaves': { probability: 0.06, most: 2 },
  'client.vanishes': { probability: 0.05, most: 2 },
  'client.reloads': { probability: 0.06, most: 2 },
  'user.bargesIn': { probability: 0.2, most: 4 },
  'user.digresses': 0.12,
  'user.silent': 0.1,
  'user.television': { probability: 0.03, most: 1 },
  'user.coughs': { probability: 0.06, most: 2 },
  'user.goesOn': { probability: 0.03, most: 1 },
  'lead.empty': { probability: 0.03, most: 3 },
  'answer.late': 0.15,
  'answer.twice': 0.15,
  'consent.lies': { probability: 0.8, most: 1 },
  'page.reloads': { probability: 0.1, most: 2 },
  'model.fails': 0.04,
  'model.slow': 0.08,
  'model.silent': 0.01,
  'tool.fails': 0.05,
  'tool.slow': 0.1,
  'tool.hangs': 0.02,
  'source.fails': 0.15,
  'worker.dies': { probability: 0.08, most: 3 },
};
