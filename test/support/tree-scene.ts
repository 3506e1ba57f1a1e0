// The scene of a story of a tree: a text session, a voice session or a program, with the limits that the story sets and
// a journal that is as slow or faulty as the story says.

import {
  createRuntime,
  memoryJournal,
  TextSession,
  type Journal,
  type Runtime,
} from '../../src/index.ts';
import { createSubagentService } from '../../src/entries/subagents.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import type { SubagentTree } from '../../src/actors/subagents/subagent-tree.ts';
import { FakeTransport } from './fake-transport.ts';
import { LEAD } from './text-talk.ts';
import { treeModel } from './tree-model.ts';
import { rootTools } from './tree-tools.ts';
import type { Stage } from './tree-stage.ts';
import type { Scene } from './tree-story.ts';

/** Errors that the accidents in a story explain. */
const ACCIDENTS = ['the disk is full', 'RESPONSE_TIMEOUT'];

export interface Place {
  readonly runtime: Runtime;
  readonly service: SubagentTree;
  /** Null for a program. */
  readonly session: TextSession | VoiceSession | null;
  /** Null unless the scene is a voice session. */
  readonly transport: FakeTransport | null;
  close(): Promise<void>;
}

type ProgramOptions = Parameters<typeof createSubagentService>[0];

export function openPlace(
  stage: Stage,
  scene: Scene,
  onQuestion: NonNullable<ProgramOptions['onQuestion']>,
): Place {
  const { story, environment } = stage;
  const runtime = createRuntime({ environment, journal: journalOf(stage) });
  const onError = (error: unknown): void => {
    const words = `${(error as { code?: string }).code ?? ''} ${String(error)}`;
    const isAccident = ACCIDENTS.some((accident) => words.includes(accident));
    stage.expect(isAccident, 'quiet', () => `an error was reported: ${words}`);
  };
  const { running, live, total, depth, whenFull } = story.limits;
  const limits = {
    maxConcurrentPerSession: running,
    maxLivePerSession: live,
    maxTotalPerSession: total,
    maxDepth: depth,
    whenFull,
    defaultRequestTimeoutMs: 2500,
    defaultAwaitTimeoutMs: 20_000,
    stateRetentionMs: 1000,
    sweepIntervalMs: 5000,
  };
  const common = { runtime, model: treeModel(stage), budget: story.budget };
  if (scene === 'program') {
    const program = createSubagentService({
      ...common,
      onError,
      onQuestion,
      graceMs: 3000,
      constraints: limits,
      tools: rootTools,
    });
    const service = program as unknown as SubagentTree;
    return { runtime, service, session: null, transport: null, close: () => program.close() };
  }
  const options = {
    ...common,
    agents: [{ name: 'lead', instructions: LEAD }] as const,
    limits,
    hooks: { onError },
    closeGraceMs: 3000,
  };
  const transport = scene === 'voice' ? new FakeTransport() : null;
  const session = transport
    ? new VoiceSession({ ...options, transport })
    : new TextSession(options);
  const service = session.subagents.service as unknown as SubagentTree;
  return { runtime, service, session, transport, close: () => session.close() };
}

/** Creates a journal that stores each entry after a delay, and stores no entry while the disk is full. */
function journalOf(stage: Stage): Journal {
  const { story, environment } = stage;
  const { clock, scheduler, random } = environment;
  const kept = memoryJournal({ keep: 0 });
  return {
    append(entry) {
      if (clock.now() < stage.brokenUntil) throw new Error('the disk is full');
      if (story.journalMs === 0) return kept.append(entry);
      return new Promise<void>((resolve) => {
        scheduler.schedule(
          () => {
            kept.append(entry);
            resolve();
          },
          1 + Math.floor(random.next() * story.journalMs),
        );
      });
    },
    read: (unit) => kept.read(unit),
  };
}
