// Options that are valid alone, but not together or without another option. The constructor refuses each with the
// option, the value and the expectation. Otherwise a session would start and then fail at a user's first request.

import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createRuntime,
  defineSubagent,
  defineTool,
  TextSession,
  type LeadAgent,
  type SubagentConfig,
} from '../../src/index.ts';
import { createSubagentService, runSubagent } from '../../src/entries/subagents.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import { scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';
import { FakeTransport } from '../support/fake-transport.ts';
import { writtenJournal } from '../support/refolded-records.ts';

const model = scriptedModel({ otherwise: [{ text: 'Done.' }] });
const environment = simulatedEnvironment();
const runtime = createRuntime({ environment });
const priced = createRuntime({ environment, price: () => 1 });
const look = tool({ description: 'Looks', inputSchema: z.object({}), execute: () => 1 });
const base = { name: 'reporter', instructions: 'Report.' };
const background = {
  name: 'report',
  description: 'd',
  parameters: z.object({}),
  execution: 'background',
} as const;
const agents: readonly LeadAgent[] = [
  { name: 'lead', instructions: 'You help.', tools: [defineTool(background)] },
];
const source = { name: 'shop', start() {} };

const define = (own: object) => (): unknown => defineSubagent({ ...base, ...own });
const text =
  (own: Partial<SubagentConfig>, more: object = {}) =>
  (): unknown =>
    new TextSession({
      runtime,
      model,
      agents,
      subagentConfigs: { report: { ...base, ...own } },
      ...more,
    });
const voice =
  (own: Partial<SubagentConfig>, more: object = {}) =>
  (): unknown =>
    new VoiceSession({
      runtime,
      transport: new FakeTransport(),
      agents,
      subagentConfigs: { report: { ...base, ...own } },
      ...more,
    });
const services = (own: object) => [
  { agent: { ...base, name: 'monitor', ...own }, eventSources: [source] },
];
const run =
  (own: Partial<SubagentConfig>, more: object = {}) =>
  (): unknown =>
    runSubagent({ ...base, ...own }, 'Go', { runtime, model, ...more });
const program =
  (own: Partial<SubagentConfig>, more: object = {}) =>
  (): unknown =>
    createSubagentService({ runtime, model, configs: { report: { ...base, ...own } }, ...more });

const NONE = { model: undefined };
const cost = { budget: { cost: 1 } };
const unpriced = 'expected `price` (createRuntime) beside `budget.cost`, got a limit of 1';

describe('refused', () => {
  test.each<[string, () => unknown, string, string]>([
    ['voice without a model', voice({}), 'NO_MODEL', 'subagentConfigs.report: expected a model'],
    ['its service', voice({ model }, { services: services({}) }), 'NO_MODEL', 'services[0].agent'],
    ['jobs without an engine', voice({ runs: 'jobs' }), 'NO_MODEL', 'subagentConfigs.report'],
    ['a run without a model', run({}, NONE), 'NO_MODEL', 'reporter: expected a model'],
    ['a program without one', program({}, NONE), 'NO_MODEL', 'configs.report: expected a model'],
    ['costs in a session', text(cost), 'INVALID_OPTION', `subagentConfigs.report: ${unpriced}`],
    ['costs of a service', text({}, { services: services(cost) }), 'INVALID_OPTION', unpriced],
    ['costs of a run', run(cost), 'INVALID_OPTION', `reporter: ${unpriced}`],
    ['costs in a program', program(cost), 'INVALID_OPTION', `configs.report: ${unpriced}`],
    [
      'an approval of a tool that it lacks',
      text({ tools: { look }, preApproved: [{ tool: 'lok' }] }),
      'INVALID_OPTION',
      'subagentConfigs.report.preApproved: expected one of its tools (look), got "lok"',
    ],
    [
      'a context of a tool that it lacks',
      run({ toolsContext: { look: {} } }),
      'INVALID_OPTION',
      'reporter.toolsContext: expected one of its tools (it has none), got "look"',
    ],
    [
      'silence as long as the run',
      text({ timeout: 1000, inactivityTimeoutMs: 1000 }),
      'INVALID_OPTION',
      'inactivityTimeoutMs: expected less than `timeout` (1000), got 1000',
    ],
    [
      'a consequence of no silence',
      define({ onHung: 'cancel' }),
      'INVALID_OPTION',
      'onHung: expected `inactivityTimeoutMs` beside it, got "cancel"',
    ],
    ...['conversation', 'consolidation'].map((option): [string, () => unknown, string, string] => [
      `null as ${option}`,
      text({}, { [option]: null }),
      'INVALID_OPTION',
      option,
    ]),
    ...['conversation', 'voice', 'thinkingSound'].map(
      (option): [string, () => unknown, string, string] => [
        `null as ${option} of a voice session`,
        voice({ model }, { [option]: null }),
        'INVALID_OPTION',
        option,
      ],
    ),
    ['a result of no shape', define({ outputSchema: {} }), 'INVALID_SCHEMA', 'outputSchema'],
    ['a task of no shape', run({ inputSchema: 5 }), 'INVALID_SCHEMA', 'got 5'],
    [
      'a task that is text',
      define({ inputSchema: z.string() }),
      'INVALID_SCHEMA',
      'reporter.inputSchema: expected the schema of an object, got "string"',
    ],
    ['a tool without arguments', define({ tools: { a: {} } }), 'TOOL_WITHOUT_SCHEMA', 'tools.a'],
    [
      'a tool of the runtime',
      define({ interactive: true, tools: { ask_user: look } }),
      'RESERVED_TOOL_NAME',
      'tools.ask_user',
    ],
    ...(['pendingMessage', 'consolidate', 'delivery'] as const).map(
      (option): [string, () => unknown, string, string] => [
        `${option} of an inline tool`,
        () =>
          defineTool({
            ...background,
            execution: 'inline',
            execute: () => 1,
            [option]: { pendingMessage: 'Hm', consolidate: true, delivery: 'silent' }[option],
          }),
        'INVALID_TOOL',
        `defineTool("report"): expected no \`${option}\` with execution: 'inline', whose result the model waits for, got `,
      ],
    ),
    ...(['execute', 'timeout', 'idempotent'] as const).map(
      (option): [string, () => unknown, string, string] => [
        `${option} of a background tool`,
        () =>
          defineTool({
            ...background,
            [option]: { execute: () => 1, timeout: 1, idempotent: true }[option],
          }),
        'INVALID_TOOL',
        `expected no \`${option}\` with execution: 'background', whose work a subagent does (subagentConfigs.report), got `,
      ],
    ),
    [
      'trimming of a journal that keeps all',
      () => createRuntime({ environment, journal: writtenJournal(), snapshots: { trim: true } }),
      'INVALID_OPTION',
      'Expected a `journal` with trim() beside `snapshots.trim`',
    ],
    ...(['offerTimeoutMs', 'playTimeoutMs', 'responseTimeoutMs'] as const).map(
      (option): [string, () => unknown, string, string] => [
        `no time at all: ${option}`,
        voice({ model }, { voice: { [option]: 0 } }),
        'INVALID_OPTION',
        `voice: \`${option}\`: Too small`,
      ],
    ),
    [
      'a first delay above the longest',
      voice({ model }, { voice: { reconnectDelayMs: 60_000 } }),
      'INVALID_OPTION',
      'voice: `reconnectDelayMs`: expected at most `maxReconnectDelayMs`, got 60000',
    ],
  ])('%s', (_, make, code, message) => {
    let thrown: unknown;
    try {
      make();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      name: 'ConfigurationError',
      code,
      message: expect.stringContaining(message),
    });
  });
});

describe('accepted', () => {
  test.each<[string, () => unknown]>([
    ['a model of its own', voice({ model })],
    ['a model of each instance', voice({ createInstance: () => ({ ...base, model }) })],
    [
      'an approval of a tool that it has',
      text({ tools: { look }, preApproved: [{ tool: 'look' }] }),
    ],
    ['a program whose subagents are granted tools', program({ preApproved: [{ tool: 'look' }] })],
    ['costs with a price', text(cost, { runtime: priced })],
    ['times that fit', define({ timeout: 1000, toolTimeout: 2000, inactivityTimeoutMs: 500 })],
    ['what hangs is cancelled', define({ inactivityTimeoutMs: 500, onHung: 'cancel' })],
  ])('%s', (_, make) => {
    expect(make).not.toThrow();
  });
});
