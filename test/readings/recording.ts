// The recording of a conversation: each call of a model as its reader got it, and the answer.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const answer = z.strictObject({
  /** What it says; left out, nothing. */
  text: z.string().optional(),
  /** The tools that it calls, in order. */
  calls: z.array(z.strictObject({ name: z.string(), input: z.unknown() })).optional(),
  /** OpenAI Live: it states that an action is needed, as its wire has no calls. */
  delegate: z.literal(true).optional(),
});

/** The answer of a reader. */
export type ReadingAnswer = z.infer<typeof answer>;

const reads = z.strictObject({
  /** The model that is asked. */
  who: z.string(),
  /** The number of the earlier call whose beginning this one shares; null: it has nothing in common with any. */
  after: z.number().nullable(),
  /** How many of its blocks are the same. */
  keeps: z.number(),
  /** The blocks that follow, as lines. */
  reads: z.array(z.string()),
});

/** What a reader gets: the beginning that it knows, and the rest. */
export type Reads = z.infer<typeof reads>;

const recordedCall = reads.extend({
  answer,
  /** The text has changed since a reader answered it. */
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

/** Without calls, the file is deleted. */
export function writeRecording(name: string, written: Recording): void {
  const path = pathOf(name);
  if (written.calls.length === 0) return rmSync(path, { force: true });
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(written, null, 2)}\n`);
}

/** @throws {Error} for a text that is no answer */
export function parseAnswer(json: string): ReadingAnswer {
  const parsed = answer.safeParse(JSON.parse(json));
  if (parsed.success) return parsed.data;
  throw new Error(`Expected { "text"?, "calls"?: [{ "name", "input" }] }, got: ${parsed.error}`);
}
