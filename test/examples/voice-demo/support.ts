// An environment whose time stands still until a test advances it.

import { vi } from 'vitest';
import type { Failure } from '../../../src/machines/index.ts';
import { NoteMarks, type NoteMessage } from '../../../src/actors/notes/note-marks.ts';
import type { Note } from '../../../src/actors/notes/note.ts';
import { resultWords } from '../../../src/actors/session/state/synthetic-turns.ts';
import type { Environment } from '../../../src/actors/ports/environment.ts';

export interface TestEnvironment extends Environment {
  /** Runs the timers of the next `ms` milliseconds, in order. */
  advance(ms: number): void;
}

/** @param startMs 2026-11-20T12:00Z, a Friday. */
export function testEnvironment(startMs = Date.UTC(2026, 10, 20, 12)): TestEnvironment {
  let now = startMs;
  let count = 0;
  let tasks: { readonly at: number; readonly run: () => void }[] = [];
  return {
    clock: { now: () => now },
    scheduler: {
      schedule(run, delayMs) {
        const task = { at: now + Math.max(0, delayMs), run };
        tasks.push(task);
        return () => {
          tasks = tasks.filter((each) => each !== task);
        };
      },
      yieldThen: (run) => queueMicrotask(run),
    },
    ids: { next: (prefix) => `${prefix}_${++count}` },
    random: { next: () => 0.5 },
    advance(ms) {
      const until = now + ms;
      for (;;) {
        const due = tasks.filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
        if (!due) break;
        tasks = tasks.filter((task) => task !== due);
        now = Math.max(now, due.at);
        due.run();
      }
      now = until;
    },
  };
}

/** An environment in which nothing takes time: every delay ends in the next microtask. */
export function hastyEnvironment(startMs?: number): Environment {
  const environment = testEnvironment(startMs);
  return {
    ...environment,
    scheduler: {
      schedule(run) {
        let cancelled = false;
        queueMicrotask(() => cancelled || run());
        return () => {
          cancelled = true;
        };
      },
      yieldThen: (run) => queueMicrotask(run),
    },
  };
}

const told = { subagentId: null, notes: [], unverified: [], isUnfinished: false };

/** The note on a result, in the runtime's wording. */
export function completedNote(toolName: string, text: string): Note {
  return resultWords.notice.one({ ...told, toolName, text, error: null });
}

export function failedNote(toolName: string, error: Failure): Note {
  return resultWords.notice.one({ ...told, toolName, text: '', error });
}

/**
 * Returns a function that writes the notes of one conversation in the form that a wire with system messages receives.
 */
export function noteWriter(): (note: Note) => readonly NoteMessage[] {
  const marks = new NoteMarks('a secret', 'system');
  let count = 0;
  return (note) => marks.messages(note, `note_${(count += 1)}`);
}

/** Removes this machine's keys and model settings until the test ends, so that the demo uses its rules. */
export function forgetKeys(wanted: Readonly<Record<string, string | undefined>> = {}): void {
  vi.unstubAllEnvs();
  for (const name of Object.keys(process.env))
    if (/^(?:OPENAI_|GOOGLE_|GEMINI_|TRANSPORT$|VOICE_MODEL$)/.test(name))
      vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(wanted)) vi.stubEnv(name, value);
}
