// A single subagent. The test acts as the subagent's owner: it sees all messages from the subagent and decides how to
// answer. For tests of whole runs, use `subagent-runs.ts`.

import type { SubagentService } from '../../src/actors/subagents/subagent-service.ts';
import { NoteMarks } from '../../src/actors/notes/note-marks.ts';
import { buildContextSnapshot } from '../../src/actors/context/context-snapshot.ts';
import { ConversationLog } from '../../src/actors/conversation/conversation.ts';
import { createHost } from '../../src/actors/runtime/host.ts';
import { memoryJournal } from '../../src/actors/runtime/memory-journal.ts';
import { type SubagentConfig } from '../../src/actors/contracts/config.ts';
import { briefing, prepareInstance } from '../../src/actors/subagent/instance.ts';
import type { Outcome } from '../../src/actors/contracts/outcome.ts';
import type { SubagentPorts } from '../../src/actors/subagent/subagent-ports.ts';
import { Subagent } from '../../src/actors/subagent/subagent.ts';
import {
  readNotes,
  scriptedModel,
  simulatedEnvironment,
  type Script,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import type { AskedInput, StreamedChunk } from '../../src/actors/contracts/task.ts';
import { checkSubagentConfig } from '../../src/actors/subagent/config.ts';
import type { SpawnedEvent } from '../../src/actors/subagent/subagent-events.ts';

/** The subagent's messages to its owner, except for streamed ones. */
type Told =
  | readonly ['requestSlot' | 'releaseSlot']
  | readonly ['ask' | 'withdraw' | 'requestInput' | 'withdrawInput', requestId: string]
  | readonly ['applied', messageIds: readonly string[], step: number]
  | readonly ['refused', messageIds: readonly string[], reason: string];

export const service = {} as SubagentService;

/** Returns the first entry of an ordinary spawned subagent. */
export function spawnedOf(
  own: Pick<SpawnedEvent, 'name' | 'task' | 'worksFor' | 'limits'>,
): SpawnedEvent {
  return {
    type: 'subagent.spawned',
    parentId: null,
    agentName: null,
    callId: null,
    workstreamId: null,
    idempotencyKey: null,
    request: null,
    maxDepth: null,
    grant: null,
    recipe: null,
    messages: null,
    ...own,
  };
}

export function loneSubagent(config: Partial<SubagentConfig>, script: Script) {
  const environment = simulatedEnvironment();
  const prompts: ScriptedPrompt[] = [];
  const model = scriptedModel({
    otherwise: (prompt) => {
      prompts.push(prompt);
      return script(prompt);
    },
    environment,
  });
  const errors: unknown[] = [];
  const host = {
    ...createHost({ environment, journal: memoryJournal() }),
    report: (error: unknown) => void errors.push(error),
  };
  const told: Told[] = [];
  const inputs: AskedInput[] = [];
  const chunks: StreamedChunk[] = [];
  const states: string[] = [];
  let slot: 'free' | 'held' = 'free';
  let grantHeld: (() => void) | null = null;
  let signsOfLife = 0;
  let resolve!: (outcome: Outcome) => void;
  const result = new Promise<Outcome>((done) => {
    resolve = done;
  });
  const ports: SubagentPorts = {
    path: 'test',
    prepare: ({ definition }, signal, again) => {
      const notes = new NoteMarks(again?.marks ?? 'a secret');
      return prepareInstance(host, definition, model, signal, notes, (own) => ({
        ...briefing(own, snapshotFor(own.instructions), notes),
        messages: [{ role: 'user', content: 'Do it' }],
      }));
    },
    requestSlot: (_id, _resumed, grant) => {
      told.push(['requestSlot']);
      if (slot === 'free') grant();
      else grantHeld = grant;
    },
    releaseSlot: () => void told.push(['releaseSlot']),
    standingOf: ({ definition }) => ({
      budget: null,
      answerableBy: definition.answerableBy,
      isRecoverable: true,
      atWork: [],
      isDenied: () => false,
      lasting: [],
      caller: {
        sessionId: 'test',
        parentId: 'parent',
        depth: 2,
        requester: null,
        service,
      },
    }),
    tell: ({ state }, news) => {
      switch (news.type) {
        case 'question.asked':
          told.push(['ask', news.question.requestId]);
          break;
        case 'question.withdrawn':
          told.push(['withdraw', news.requestId]);
          break;
        case 'input.requested':
          inputs.push(news.asked);
          told.push(['requestInput', news.asked.requestId]);
          break;
        case 'input.withdrawn':
          told.push(['withdrawInput', news.requestId]);
          break;
        case 'message.applied':
          told.push(['applied', news.ids, news.step]);
          break;
        case 'message.refused':
          told.push(['refused', news.ids, news.reason]);
          break;
        case 'alive':
          signsOfLife += 1;
          break;
        case 'streamed':
          chunks.push(news.chunk);
          break;
        case 'changed':
          if (states.at(-1) !== state) states.push(state);
          break;
        case 'ended':
          resolve(news.outcome);
          break;
        case 'message.taken':
        case 'stepped':
        case 'call.in_doubt':
        case 'lacks':
          break;
      }
    },
  };
  const definition = checkSubagentConfig({
    name: 'worker',
    instructions: 'You do one thing.',
    ...config,
  });
  const task = { toolName: 'work', args: {}, description: 'Do it' };
  const subagent = new Subagent(host, 'sub_1', definition, task, ports);
  const { maxSteps, timeout: timeoutMs, maxInputRetries } = definition;
  subagent.start(
    spawnedOf({
      name: definition.name,
      task,
      worksFor: 'test',
      limits: { maxSteps, timeoutMs, maxInputRetries },
    }),
  );
  return {
    subagent,
    environment,
    prompts,
    told,
    inputs,
    chunks,
    states,
    errors,
    result,
    /** The receipts of messages, in order. */
    receipts: () => told.filter(([what]) => what === 'applied' || what === 'refused'),
    signsOfLife: () => signsOfLife,
    /** From now on, the subagent must wait for a slot. */
    holdSlots: () => {
      slot = 'held';
    },
    grantSlot: () => grantHeld?.(),
  };
}

const snapshotFor = (instructions: string) =>
  buildContextSnapshot({
    mode: 'none',
    task: { toolName: 'work', args: {} },
    instructions,
    conversation: ConversationLog.empty(),
  });

/**
 * Returns the messages that the model read, in order. A marked note is replaced by the message that it quotes or its
 * text.
 */
export function wordsIn({ prompt }: ScriptedPrompt): readonly string[] {
  return prompt.flatMap(({ role, content }) =>
    role === 'user'
      ? content.flatMap((part) => (part.type === 'text' ? wordsOf(part.text) : []))
      : [],
  );
}

function wordsOf(text: string): readonly string[] {
  const notes = readNotes(text);
  return notes.length === 0
    ? [text]
    : notes.map(({ says, quotes: { message } }) => (typeof message === 'string' ? message : says));
}
