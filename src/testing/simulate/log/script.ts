// The steps of a run as plain data: each step is an action and its time. A script can be printed, stored as JSON,
// shrunk and replayed.
//
// Owns:     the shape of a script, and its description as text.
// Does not: generate a script (`generate-script`) or play it (`player`).

import { z } from 'zod';
import { check } from '../../../values/checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import { FAULT_POINTS, strikeSchema, type Strike } from './fault-points.ts';

const nth = z.number().int().min(0);
/** Milliseconds since the start of the run. */
const at = z.number().min(0);
const words = z.string().min(1);
const calls = z.array(z.string());

const stepSchema = z.discriminatedUnion('do', [
  /** The user speaks or types a text. `calls`: the lead agent's tools that the model then calls. */
  z.strictObject({ at, do: z.literal('say'), words, calls }),
  /** The user types, even in a voice session. */
  z.strictObject({ at, do: z.literal('type'), words, calls }),
  /** The app sends a notice to the user. */
  z.strictObject({
    at,
    do: z.literal('notify'),
    text: words,
    priority: z.enum(['normal', 'high', 'urgent']),
  }),
  /** The user cancels one of the running subagents. `nth` selects one of them: it counts from 0 and wraps around. */
  z.strictObject({ at, do: z.literal('cancel'), nth }),
  /** The user dismisses one of the pending deliveries. */
  z.strictObject({ at, do: z.literal('dismiss'), nth }),
  /** The app sends a message to one of the running subagents. */
  z.strictObject({
    at,
    do: z.literal('message'),
    nth,
    text: words,
    mode: z.enum(['queue', 'steer', 'interrupt']),
  }),
  /** The app sets a schedule that posts a notice after this time or, with `everyMs`, again and again. */
  z.strictObject({
    at,
    do: z.literal('schedule'),
    text: words,
    inMs: z.number().min(1),
    everyMs: z.number().min(1000).optional(),
  }),
  /** The user reads one of the messages that channels have sent. */
  z.strictObject({ at, do: z.literal('read'), nth }),
  z.strictObject({ at, do: z.literal('transfer'), to: words }),
  z.strictObject({ at, do: z.literal('leave') }),
  z.strictObject({ at, do: z.literal('attach') }),
  /** The process is killed, and another process continues from its journal. */
  z.strictObject({ at, do: z.literal('crash') }),
  /** The connection to the voice model is lost. */
  z.strictObject({ at, do: z.literal('drop') }),
]);

/** One action and its time. */
export type Step = Readonly<z.infer<typeof stepSchema>>;

/** A run that can be replayed: the same seed, steps and fired faults produce the same log. */
export interface Script {
  /** The run's seed. */
  readonly seed: number;
  /** The kind of session that the run uses. */
  readonly session: 'text' | 'voice';
  /** The user's steps, in order. */
  readonly steps: readonly Step[];
  /** The faults, and where they fire. */
  readonly strikes: readonly Strike[];
}

const scriptSchema = z.object({
  seed: z.number().int(),
  session: z.enum(['text', 'voice']),
  steps: z.array(stepSchema),
  strikes: z.array(strikeSchema),
});

/**
 * Parses a script from the JSON that a failure prints.
 * @throws {ConfigurationError} `INVALID_SCRIPT`; the message states what was expected
 */
export function parseScript(json: string): Script {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new ConfigurationError('INVALID_SCRIPT', 'Expected a script as JSON', { cause });
  }
  const parsed = scriptSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ConfigurationError(
    'INVALID_SCRIPT',
    `Expected a script: ${z.prettifyError(parsed.error)}`,
  );
}

/**
 * Describes a script for a person.
 * @throws {ConfigurationError} `INVALID_SCRIPT` if the value is not a script
 */
export function scriptInWords(script: Script): string {
  const { seed, session, steps, strikes } = check(
    'scriptInWords(script)',
    scriptSchema,
    script,
    'INVALID_SCRIPT',
  );
  const said = steps.map((step) => `  ${seconds(step.at)}  ${stepInWords(step)}`);
  const faults = strikes.map(
    ({ point, occurrence }) =>
      `  ${point}, the ${ordinal(occurrence)} time it could: ${FAULT_POINTS[point]}`,
  );
  return [
    `Seed ${seed}, by ${session}.`,
    ...(said.length > 0 ? said : ['  Nobody does anything.']),
    ...(faults.length > 0 ? ['What goes wrong:', ...faults] : ['Nothing goes wrong.']),
  ].join('\n');
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`.padStart(10);
}

function ordinal(count: number): string {
  const last = count % 10;
  const isTeen = Math.floor(count / 10) % 10 === 1;
  const ending = isTeen ? 'th' : ((['th', 'st', 'nd', 'rd'] as const)[last] ?? 'th');
  return `${count}${ending}`;
}

export function stepInWords(step: Step): string {
  switch (step.do) {
    case 'say':
    case 'type': {
      const means = step.calls.length > 0 ? ` (and means ${step.calls.join(' and ')})` : '';
      return `the user ${step.do}s ${JSON.stringify(step.words)}${means}`;
    }
    case 'notify':
      return `the app has news (${step.priority}): ${JSON.stringify(step.text)}`;
    case 'cancel':
      return `the user cancels subagent ${step.nth} of those that work`;
    case 'dismiss':
      return `the user dismisses delivery ${step.nth} of those that wait`;
    case 'message':
      return `the app tells subagent ${step.nth} of those that work ${JSON.stringify(step.text)} (${step.mode})`;
    case 'schedule': {
      const when = step.everyMs === undefined ? `in ${step.inMs} ms` : `every ${step.everyMs} ms`;
      return `the app schedules ${JSON.stringify(step.text)} ${when}`;
    }
    case 'read':
      return `the user reads message ${step.nth} of those that were sent`;
    case 'transfer':
      return `the app hands over to ${step.to}`;
    case 'leave':
      return 'the client leaves';
    case 'attach':
      return 'the client is there again';
    case 'crash':
      return 'the process is killed';
    case 'drop':
      return 'the connection to the voice model is lost';
  }
}
