// Conversations whose process is killed and restarted with the same journal.

import { isAskedFor } from '../../src/actors/ports/journal.ts';
import { type JournalEntry } from '../../src/entries/journal.ts';
import { createRuntime, type Journal, type RuntimeOptions } from '../../src/index.ts';
import {
  simulatedEnvironment,
  type Script,
  type ScriptedStep,
  type SimulatedEnvironment,
} from '../../src/testing/index.ts';
import { SimulatedProcess } from '../../src/testing/doubles/simulated-process.ts';
import { FakeTransport } from './fake-transport.ts';
import { trimTo } from './journals.ts';
import { textTalk, type TalkOptions } from './text-talk.ts';
import { voiceTalk, type VoiceTalkOptions } from './voice-talk.ts';

interface Fate {
  readonly entry: number;
  readonly when: 'before' | 'after';
}

/** The journal that an earlier process left behind. */
export interface Inheritance {
  readonly entries: readonly JournalEntry[];
  /** The time at which the process died, in milliseconds since 1970. */
  readonly at: number;
}

/** Creates the parts that outlive processes: the time, and the journal (stored as text, so that nothing is shared). */
export function world({
  snapshots,
  inheritance,
  jobs,
  price,
  wraps = (journal) => journal,
}: Pick<RuntimeOptions, 'snapshots' | 'jobs' | 'price'> & {
  readonly inheritance?: Inheritance;
  /** Wraps the stored journal in each process. */
  readonly wraps?: (journal: Journal) => Journal;
} = {}) {
  const environment = inheritance
    ? withFreshIds(simulatedEnvironment({ startAt: inheritance.at }))
    : simulatedEnvironment();
  let kept: string[] = (inheritance?.entries ?? []).map((entry) => JSON.stringify(entry));
  let written = kept.length;
  const read = (): JournalEntry[] => kept.map((json) => JSON.parse(json) as JournalEntry);
  const processes: SimulatedProcess[] = [];
  let fate: Fate | null = null;
  const journalOf = (process: SimulatedProcess): Journal => ({
    append: (entry) => {
      // An append in a dead process never settles.
      if (!process.isAlive) return new Promise(() => {});
      const isDue = fate !== null && written + 1 === fate.entry;
      if (!isDue || fate?.when === 'after') {
        kept.push(JSON.stringify(entry));
        written += 1;
      }
      if (!isDue) return undefined;
      fate = null;
      process.kill();
      return new Promise(() => {});
    },
    read: (query = {}) => read().filter((entry) => isAskedFor(query, entry)),
    trim: (entry) => {
      if (!process.isAlive) return;
      const rest = read();
      trimTo(rest, entry);
      kept = rest.map((one) => JSON.stringify(one));
    },
  });
  return {
    environment,
    transport: new FakeTransport(),
    /** Returns the stored entries. */
    get entries(): readonly JournalEntry[] {
      return read();
    },
    /** Returns the number of entries that have been stored, including trimmed ones. */
    get written(): number {
      return written;
    },
    /**
     * Kills the process immediately before or after this entry is stored. Entries are counted from 1, including trimmed
     * ones.
     */
    killAt(entry: number, when: Fate['when']): void {
      fate = { entry, when };
    },
    begin(): {
      readonly process: SimulatedProcess;
      readonly runtime: ReturnType<typeof createRuntime>;
    } {
      const process = new SimulatedProcess(processes.length + 1, environment);
      processes.push(process);
      const runtime = createRuntime({
        environment: process.environment,
        journal: wraps(journalOf(process)),
        ...(snapshots ? { snapshots } : {}),
        ...(jobs ? { jobs } : {}),
        ...(price ? { price } : {}),
      });
      return { process, runtime };
    },
  };
}

/** Generates ids that the inherited journal does not contain. */
function withFreshIds(simulated: SimulatedEnvironment): SimulatedEnvironment {
  return { ...simulated, ids: { next: (prefix) => simulated.ids.next(`${prefix}_later`) } };
}

export type World = ReturnType<typeof world>;

/** Creates a text session in one process of the world. Its id is `ses` by default. */
export function textLife(of: World, options: TalkOptions = {}) {
  const { process, runtime } = of.begin();
  const talk = textTalk({
    sessionId: 'ses',
    ...options,
    runtime,
    environment: of.environment,
  });
  return {
    ...talk,
    environment: of.environment,
    isAlive: () => process.isAlive,
    /** Kills the process, which then has no further effect. */
    kill: () => process.kill(),
  };
}

/** Creates a voice session with the id `ses` in one process of the world. */
export function voiceLife(of: World, options: VoiceTalkOptions = {}) {
  const { process, runtime } = of.begin();
  // The wire numbers utterances across processes, so that each one has a unique name.
  const transport = options.transport ?? of.transport;
  const talk = voiceTalk({
    ...options,
    transport,
    runtime,
    environment: of.environment,
    sessionId: 'ses',
  });
  return Object.assign(talk, { isAlive: () => process.isAlive, kill: () => process.kill() });
}

/** Returns the moments at which a process may die: right before and right after each of this many entries. */
export const instantsOf = (length: number) =>
  Array.from({ length }, (_, index) =>
    (['before', 'after'] as const).map((when) => [when, index + 1] as const),
  ).flat();

/**
 * Returns a script that chooses its answer by the number of earlier answers in the prompt, so that it needs no memory.
 */
export function turns(...all: (ScriptedStep | Script)[]): Script {
  return (prompt) => {
    const answered = prompt.prompt.filter(({ role }) => role === 'assistant').length;
    const step = all[Math.min(answered, all.length - 1)];
    if (step === undefined) throw new Error('Expected a step');
    return typeof step === 'function' ? step(prompt) : step;
  };
}
