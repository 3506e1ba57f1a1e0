// The recording of a conversation: each model call as its reader received it, with the answer.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const answer = z.strictObject({
  /** The text of the reply. If omitted, the reply has no text. */
  text: z.string().optional(),
  /** The tools that the reply calls, in order. */
  calls: z.array(z.strictObject({ name: z.string(), input: z.unknown() })).optional(),
  /** For OpenAI Live, whose wire has no calls: the reply states that an action is needed. */
  delegate: z.literal(true).optional(),
});

/** A reader's answer. */
export type ReadingAnswer = z.infer<typeof answer>;

const reads = z.strictObject({
  /** The model that was called. */
  who: z.string(),
  /** The number of the earlier call with which this one shares its start, or null if it shares nothing. */
  after: z.number().nullable(),
  /** The number of shared blocks. */
  keeps: z.number(),
  /** The blocks after the shared ones, as lines. */
  reads: z.array(z.string()),
});

/** The text that a reader receives: the known start, and the rest. */
export type Reads = z.infer<typeof reads>;

const recordedCall = reads.extend({
  answer,
  /** The text has changed since a reader answered the call. */
  carried: z.literal(true).optional(),
});

export type RecordedCall = z.infer<typeof recordedCall>;

const recording = z.strictObject({ calls: z.array(recordedCall), isComplete: z.boolean() });

export type Recording = z.infer<typeof recording>;

function pathOf(name: string): string {
  return fileURLToPath(new URL(`recordings/${name}.json`, import.meta.url));
}

export function readRecording(name: string): Recording {
  const path = pathOf(name);
  if (!existsSync(path)) return { calls: [], isComplete: false };
  return recording.parse(JSON.parse(readFileSync(path, 'utf8')));
}

/** Writes the recording. Deletes the file if the recording has no calls. */
export function writeRecording(name: string, written: Recording): void {
  const path = pathOf(name);
  if (written.calls.length === 0) return rmSync(path, { force: true });
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(written, null, 2)}\n`);
}

/** @throws {Error} if an answer is invalid */
export function parseAnswer(json: string): ReadingAnswer {
  const parsed = answer.safeParse(JSON.parse(json));
  if (parsed.success) return parsed.data;
  throw new Error(`Expected { "text"?, "calls"?: [{ "name", "input" }] }, got: ${parsed.error}`);
}
