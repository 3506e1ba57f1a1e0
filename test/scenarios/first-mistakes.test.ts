// The first mistakes of a new user. Each one throws a ConfigurationError that explains what to write instead. The error
// for an unknown option names the option, and the one that was probably meant.

import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import {
  createWorkingMemoryToolset,
  modelDistiller,
  modelSummary,
  workingMemory,
} from '../../src/entries/memory.ts';
import { pollingSource } from '../../src/entries/services.ts';
import { z } from 'zod';
import {
  ConfigurationError,
  createRuntime,
  defineSubagent,
  defineTool,
  memoryJournal,
  TextSession,
  createChildSubagentToolset,
  createParentSubagentToolset,
  createSubAgentTool,
} from '../../src/index.ts';
import { createSubagentService, leadTools, runSubagent } from '../../src/entries/subagents.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import { rockbotToolset } from '../../src/compat/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { FakeTransport } from '../support/fake-transport.ts';

const model = scriptedModel({ otherwise: () => ({ text: 'Hello.' }) });
const lead = { name: 'lead', instructions: 'You help.' };
const weather = tool({
  description: 'Tells the weather',
  inputSchema: z.object({ city: z.string() }),
  execute: () => 'sunny',
});
const ask = {
  name: 'ask',
  description: 'Asks',
  parameters: z.object({}),
  execute: () => 'asked',
};
const worker = { name: 'worker', instructions: 'Work.' };

const text = (options?: unknown) => () => new TextSession(options as never);
const voice = (options?: unknown) => () => new VoiceSession(options as never);
const run =
  (...given: unknown[]) =>
  () =>
    runSubagent(...(given as [never, never, never]));
const withAgent = (agent: unknown, more: object = {}) => text({ model, agents: [agent], ...more });

describe('the error message for a mistake', () => {
  test.each<[what: string, act: () => unknown, ...words: string[]]>([
    ['no options', text(), 'expected an object, got undefined', 'new TextSession({ model'],
    ['a promise of options', text(Promise.resolve({})), 'a promise, which is not awaited'],
    ['no model', text({ agents: [lead] }), 'model', "openai('gpt-5.4')"],
    [
      'a name as the model',
      text({ model: 'gpt-5.4', agents: [lead] }),
      "'openai/gpt-5.4'",
      '"gpt-5.4"',
    ],
    ['a provider as the model', text({ model: () => model, agents: [lead] }), 'call the provider'],
    ['a promise as the model', text({ model: Promise.resolve(model), agents: [lead] }), 'await'],
    ['an object as the model', text({ model: {}, agents: [lead] }), 'specification v2, v3 or v4'],
    ['no agents', text({ model }), 'agents: expected an array', "agents: [{ name: 'lead'"],
    ['an agent instead of agents', text({ model, agents: lead }), 'agents: expected an array'],
    ['an empty list of agents', text({ model, agents: [] }), 'got none'],
    ['an agent without a name', withAgent({ instructions: '' }), 'agents[0]', '`name`'],
    ['an agent without instructions', withAgent({ name: 'lead' }), '`instructions`'],
    ['an agent that is a text', withAgent('You help'), 'agents[0]: expected an object'],
    [
      'AI SDK tools as a record',
      withAgent({ ...lead, tools: { weather } }),
      'tools: leadTools({ weather })',
    ],
    [
      'an AI SDK tool in the list',
      withAgent({ ...lead, tools: [weather] }),
      'leadTools({ name: tool })',
    ],
    [
      'a tool without a name',
      withAgent({ ...lead, tools: [{ ...ask, name: undefined }] }),
      '`name`',
    ],
    ['two tools of one name', withAgent({ ...lead, tools: [ask, ask] }), 'the name is taken'],
    [
      'a background tool without a subagent',
      withAgent({ ...lead, tools: [{ ...ask, execute: undefined, execution: 'background' }] }),
      'subagentConfigs to have "ask"',
    ],
    [
      'a background tool that does its work itself',
      withAgent({ ...lead, tools: [{ ...ask, execution: 'background' }] }),
      "expected no `execute` with execution: 'background', whose work a subagent does (subagentConfigs.ask)",
    ],
    [
      'a subagent without a background tool',
      withAgent(lead, { subagentConfigs: { work: worker } }),
      '"work" is no background tool',
    ],
    [
      'a subagent that is a function',
      withAgent(lead, { subagentConfigs: { work: () => worker } }),
      'which is not called',
    ],
    [
      'a schema instead of parameters',
      () => defineTool({ ...ask, parameters: undefined as never }),
      '`parameters`',
      'z.object(',
    ],
    ['defineTool of nothing', () => defineTool(undefined as never), 'defineTool({ name'],
    ['defineTool without execute', () => defineTool({ ...ask, execute: undefined }), '`execute`'],
    ['defineSubagent of nothing', () => defineSubagent(undefined as never), 'expected an object'],
    [
      'defineSubagent without a name',
      () => defineSubagent({ instructions: '' } as never),
      '`name`',
    ],
    ['no transport', voice({ agents: [lead] }), 'openaiRealtime({ apiKey })'],
    [
      'a transport that is not called',
      voice({ transport: () => new FakeTransport(), agents: [lead] }),
      'which is not called',
    ],
    ['no options for a voice', voice(), 'new VoiceSession({ transport'],
    ['runSubagent of nothing', run(), 'runSubagent({ name, instructions }'],
    ['runSubagent without a task', run(worker, undefined, { model }), 'expected words'],
    [
      'a task of what is no JSON',
      run(worker, { description: 'Do it', args: { of: 10n } }, { model }),
      'expected arguments that are JSON',
    ],
    ['a service of nothing', () => createSubagentService(undefined as never), 'createRuntime()'],
    [
      'a tool of a subagent without an output',
      () => createSubAgentTool(worker as never, z.object({})),
      'outputSchema',
    ],
    [
      'a summary without options',
      () => modelSummary(undefined as never),
      "modelSummary({ model: openai('gpt-5.4') })",
    ],
  ])('says what to write instead: %s', (_, act, ...words) => {
    let thrown: unknown = null;
    try {
      act();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ConfigurationError);
    for (const part of words) expect((thrown as Error).message).toContain(part);
  });

  test('does not appear for a gateway id, AI SDK tools or undefined options', async () => {
    const session = new TextSession({
      model: 'openai/gpt-5.4',
      agents: [{ ...lead, tools: leadTools({ weather }) }],
      limits: undefined,
      sessionId: undefined,
    });
    await session.close();
  });
});

describe('an unknown option', () => {
  const runtime = createRuntime();
  const memory = workingMemory();
  test.each<[what: string, act: () => unknown, unknown: string, meant: string]>([
    [
      'a session',
      text({ model, agents: [lead], promptstyle: 'turn' }),
      'promptstyle',
      'promptStyle',
    ],
    [
      'a voice session',
      voice({ transport: new FakeTransport(), agents: [lead], fillers: {} }),
      'fillers',
      'filler',
    ],
    [
      'its voice',
      voice({ transport: new FakeTransport(), agents: [lead], voice: { quiet: 3 } }),
      'quiet',
      'quietMs',
    ],
    [
      'its hooks',
      text({ model, agents: [lead], hooks: { onToolcall() {} } }),
      'hooks.onToolcall',
      'onToolCall',
    ],
    ['an agent', withAgent({ ...lead, greetings: '' }), 'greetings', 'greeting'],
    ['a tool', () => defineTool({ ...ask, timeOut: 5 } as never), 'timeOut', 'timeout'],
    [
      'a subagent',
      () => defineSubagent({ ...worker, timeoutMs: 5 } as never),
      'timeoutMs',
      'timeout',
    ],
    [
      'its retry',
      () => defineSubagent({ ...worker, retry: { maxAttemps: 5 } } as never),
      'retry.maxAttemps',
      'maxAttempts',
    ],
    [
      'its budget',
      () => defineSubagent({ ...worker, budget: { token: 5 } } as never),
      'budget.token',
      'tokens',
    ],
    ['a run', run(worker, 'Do it', { model, onEror() {} }), 'onEror', 'onError'],
    [
      'a service',
      () => createSubagentService({ runtime, contraints: {} } as never),
      'contraints',
      'constraints',
    ],
    [
      'a runtime',
      () => createRuntime({ maxTotalActiv: 5 } as never),
      'maxTotalActiv',
      'maxTotalActive',
    ],
    [
      'a parent toolset',
      () => createParentSubagentToolset({ agents: {} } as never),
      'agents',
      'agent',
    ],
    [
      'a spawned agent',
      () => createParentSubagentToolset({ agent: { timeOut: 5 } as never }),
      'timeOut',
      'timeout',
    ],
    [
      'a child toolset',
      () => createChildSubagentToolset({ structure: true } as never),
      'structure',
      'structured',
    ],
    ['RockBot’s toolset', () => rockbotToolset({ agents: {} } as never), 'agents', 'agent'],
    [
      'RockBot’s agent',
      () => rockbotToolset({ agent: { maxStep: 5 } as never }),
      'maxStep',
      'maxSteps',
    ],
    [
      'a memory toolset',
      () => createWorkingMemoryToolset({ memory, pageByte: 9 } as never),
      'pageByte',
      'pageBytes',
    ],
    [
      'a polling source',
      () => pollingSource({ intervalMs: 5, poll: async () => [], interval: 5 } as never),
      'interval',
      'intervalMs',
    ],
    ['a distiller', () => modelDistiller({ model, maxfacts: 3 } as never), 'maxfacts', 'maxFacts'],
  ])('suggests the nearest known option of %s', (_, act, name, meant) => {
    expect(act).toThrow(`unknown option \`${name}\`; did you mean \`${meant}\`?`);
  });

  test('lists all options if no option is similar', () => {
    expect(() => createChildSubagentToolset({ colour: 'red' } as never)).toThrow(
      'unknown option `colour`; expected `structured`',
    );
  });

  test('lists only a few options if there are many', () => {
    const many = Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`colour${n}`, n]));
    expect(() => createChildSubagentToolset(many as never)).toThrow(/colour4`.*; and 199995 more$/);
  });

  test("throws a named error if a runtime is set together with one of the runtime's own options", () => {
    expect(text({ model, agents: [lead], runtime, journal: memoryJournal() })).toThrow(
      'expected `journal` to be given to createRuntime(…)',
    );
  });
});
