// The app's callbacks that never settle. Each has a deadline, after which its result counts as missing and is reported,
// and the run, the service and the session end.

import { describe, expect, test } from 'vitest';
import { THE_LEAD, createSubagentService } from '../../src/entries/subagents.ts';
import { z } from 'zod';
import {
  createRuntime,
  defineTool,
  memoryJournal,
  type SubagentConfig,
  type TextSessionOptions,
} from '../../src/index.ts';
import type { MemoryStore, WorkingMemory } from '../../src/entries/memory.ts';
import { scriptedModel, simulatedEnvironment, type ScriptedStep } from '../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps, subagentRuns } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';

const HOUR_MS = 3_600_000;

const hangingMemory = new Proxy({} as WorkingMemory, { get: () => never });

describe('the result of runSubagent()', () => {
  type Options = NonNullable<Parameters<ReturnType<typeof subagentRuns>['run']>[1]>;
  test.each<
    [
      what: string,
      config: Partial<SubagentConfig>,
      script: ScriptedStep[],
      outcome: object,
      where?: readonly string[],
      options?: Partial<Options>,
    ]
  >([
    ['dispose', { dispose: never }, [say('done')], { text: 'done' }, ['dispose of worker']],
    [
      'a tool',
      { tools: { work: simpleTool(never) } },
      [calls(['work'])],
      { status: 'timed_out', error: { code: 'TIMEOUT' } },
    ],
    [
      'a tool with a time of its own',
      { tools: { work: simpleTool(never) }, toolTimeout: 1000 },
      [calls(['work']), say('done')],
      { text: 'done', toolLedger: [{ status: 'in_flight' }] },
    ],
    [
      'toModelOutput',
      { tools: { work: simpleTool(() => 1, { toModelOutput: never }) } },
      [calls(['work'])],
      { status: 'timed_out' },
    ],
    [
      'needsApproval',
      { tools: { work: simpleTool(() => 1, { needsApproval: never }) } },
      [calls(['work'])],
      { status: 'timed_out' },
    ],
    [
      'a schema of the output',
      { outputSchema: z.object({}).refine(() => never()) },
      [say('{}')],
      { status: 'timed_out' },
    ],
    [
      'onQuestion',
      { interactive: true, maxInputRetries: 1 },
      [calls(['ask_user', { question: 'Which?' }])],
      { status: 'failed', error: { code: 'INPUT_TIMEOUT' } },
      undefined,
      { onQuestion: never },
    ],
    [
      'working memory, for a result',
      {},
      [say('done')],
      { text: 'done' },
      ['working memory'],
      { workingMemory: hangingMemory },
    ],
    [
      'working memory, for the output of a tool',
      { tools: { work: simpleTool(() => 'x'.repeat(100_000)) } },
      [calls(['work']), say('done')],
      { text: 'done', toolLedger: [{ status: 'ok', output: { truncated: true } }] },
      // One error for the output and one for the notes that the run left.
      ['working memory', 'working memory'],
      { workingMemory: hangingMemory },
    ],
    [
      'the judge of claims',
      {},
      [say('I have sent the mail.')],
      { text: 'I have sent the mail.' },
      ['judge of claims'],
      { claimJudge: never },
    ],
  ])('resolves with %s that never settles', async (_, config, script, outcome, where, options) => {
    const { run, environment, errors } = subagentRuns(steps(...script));
    let ended: unknown = null;
    void run(config, options).result.then((result) => (ended = result));
    await environment.advance(HOUR_MS);
    expect(ended).toMatchObject(outcome);
    expect(errors.map((error) => error.where)).toEqual(where ?? []);
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('service.close()', () => {
  test.each([
    ['the dispose of a subagent', { dispose: never }, {}],
    ['the dispose of an instance', { dispose: never, lifetime: 'session' as const }, {}],
    ['journal.release', {}, { release: never }],
    ['journal.append', {}, { append: never }],
    ['journal.claim', {}, { claim: never }],
  ])('resolves even if %s never settles', async (_, config, broken) => {
    const environment = simulatedEnvironment();
    const runtime = createRuntime({ environment, journal: { ...memoryJournal(), ...broken } });
    const service = createSubagentService({
      runtime,
      id: 'app',
      model: scriptedModel({ otherwise: () => say('done') }),
    });
    void service.recover();
    await environment.settle();
    service.spawn({
      config: { name: 'worker', instructions: 'Work.', ...config },
      task: { toolName: 'work', args: {}, description: 'Do it' },
      caller: THE_LEAD,
    });
    await environment.settle();
    let isClosed = false;
    void service.close().then(() => (isClosed = true));
    await environment.advance(HOUR_MS);
    expect(isClosed).toBe(true);
  });
});

describe('a session with a callback that never settles', () => {
  const tool = (more: object): TextSessionOptions['agents'][0]['tools'] => [
    defineTool({
      name: 'look',
      description: 'Looks',
      parameters: z.object({}),
      execute: () => 'seen',
      ...more,
    }),
  ];
  test.each<[what: string, options: Parameters<typeof textTalk>[0]]>([
    ['an inline tool', { agent: { tools: tool({ execute: never }) } }],
    [
      'the schema of an inline tool',
      { agent: { tools: tool({ parameters: z.object({}).refine(() => never()) }) } },
    ],
    ['onEnter', { agent: { onEnter: never, tools: tool({}) } }],
    [
      'the memory',
      {
        memory: { facts: never, remember: never, forget: never } as unknown as MemoryStore,
        agent: { tools: tool({}) },
        conversation: { distil: never },
      },
    ],
    ['the summary', { agent: { tools: tool({}) }, conversation: { summarise: never as never } }],
    [
      'working memory',
      {
        agent: { tools: tool({ execute: () => 'x'.repeat(99_999) }) },
        workingMemory: hangingMemory,
      },
    ],
  ])('continues, and closes: %s', async (_, options) => {
    const talk = textTalk(options);
    void talk.start();
    await talk.environment.advance(60_000);
    void talk.type('use look');
    await talk.environment.advance(60_000);
    await talk.type('still there?');
    await talk.environment.advance(60_000);
    expect(talk.said().at(-1)).toBe('You said: still there?');
    const answered = talk.events.flatMap((event) =>
      event.type === 'tool.answered' ? [event.status] : [],
    );
    expect(answered).toHaveLength(1);
    let isClosed = false;
    void talk.session.close().then(() => (isClosed = true));
    await talk.environment.advance(HOUR_MS);
    expect(isClosed).toBe(true);
    expect(talk.environment.pendingTimers).toBe(0);
  });
});
