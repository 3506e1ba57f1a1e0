import { describe, expect, test } from 'vitest';
import { withCaller } from '../../src/actors/model/caller.ts';
import { companions } from '../../src/compat/companions.ts';
import type { ProgramOptions } from '../../src/actors/subagents/subagent-service.ts';
import { delegates } from '../../src/actors/model/tool-flags.ts';
import { ConfigurationError } from '../../src/index.ts';
import { callOptions, fakeService } from '../support/fake-service.ts';

const researcher = { name: 'researcher', instructions: 'Find out.' };
const critic = { name: 'critic', instructions: 'Doubt.' };

function withCompanions(options: ProgramOptions = {}) {
  const service = fakeService();
  const tools: Record<string, object> = companions(
    [{ agent: researcher, mode: 'blocking' }, { agent: critic }],
    { service, ...options },
  );
  const call = (name: string, input: object = {}, more: object = {}): Promise<unknown> =>
    (
      tools[`companion__${name}`] as { execute(input: object, options: never): Promise<unknown> }
    ).execute(input, callOptions(more));
  return { service, tools, call };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the tools', { tags: ['H18'] }, () => {
  test('have their original names and include waitForResult only for a blocking companion', () => {
    const { tools } = withCompanions();
    const five = ['getChildStatus', 'listChildren', 'sendMessage', 'spawnAgent', 'terminateChild'];
    expect(Object.keys(tools).toSorted()).toEqual(
      [...five, 'waitForResult'].map((name) => `companion__${name}`),
    );
    expect(Object.keys(companions([{ agent: critic }])).toSorted()).toEqual(
      five.map((name) => `companion__${name}`),
    );
    expect(Object.values(tools).filter(delegates)).toHaveLength(3);
  });

  test('require agents with unique names', () => {
    expect(() => companions([])).toThrow(ConfigurationError);
    expect(() => companions([{ agent: critic }, { agent: critic }])).toThrow(/critic/);
  });
});

describe('a background companion', { tags: ['H18'] }, () => {
  test(
    'starts, accepts messages, shows its status and ends while its parent is working',
    { tags: ['HW6'] },
    async () => {
      const { service, call } = withCompanions();
      expect(await call('spawnAgent', { agentType: 'critic', message: 'Read this' })).toEqual({
        agentId: 'critic-1',
        agentType: 'critic',
        mode: 'background',
        status: 'running',
      });
      expect(service.spawned[0]).toMatchObject({
        config: { name: 'critic-1', lifetime: 'session', context: 'none' },
        task: { description: 'Read this' },
      });
      await call('sendMessage', { agentId: 'critic-1', message: 'And that' });
      expect(service.sent).toMatchObject([{ to: 'sub_1', content: 'And that', mode: 'queue' }]);
      expect(await call('listChildren')).toMatchObject({
        children: [{ agentId: 'critic-1', status: 'running' }],
      });
      expect(await call('terminateChild', { agentId: 'critic-1' })).toEqual({ terminated: true });
      expect(await call('listChildren')).toEqual({ children: [] });
      expect(service.list({ subagentId: null })).toEqual([]);
      expect(await call('getChildStatus', { agentId: 'critic-1' })).toMatchObject({
        error: { code: 'NOT_FOUND' },
      });
    },
  );

  test('COMPANIONS-1: starts another run under the same name if it receives a message while idle', async () => {
    const { service, call } = withCompanions();
    await call('spawnAgent', { agentType: 'critic', message: 'First' });
    service.end('sub_1', { result: 'Doubtful' });
    expect(await call('getChildStatus', { agentId: 'critic-1' })).toMatchObject({
      status: 'completed',
      result: 'Doubtful',
    });
    await call('sendMessage', { agentId: 'critic-1', message: 'Second' });
    expect(service.spawned.map(({ config, task }) => [config.name, task.description])).toEqual([
      ['critic-1', 'First'],
      ['critic-1', 'Second'],
    ]);
    // The same configuration returns the same instance with its history.
    expect(service.spawned[1]?.config).toBe(service.spawned[0]?.config);
    expect(await call('listChildren')).toMatchObject({ children: [{ status: 'running' }] });
  });

  test('uses the same configuration and instance for all its runs', async () => {
    const { service, call } = withCompanions({ model: 'some/model' });
    await call('spawnAgent', { agentType: 'critic', message: 'First' });
    service.end('sub_1');
    await call('sendMessage', { agentId: 'critic-1', message: 'Second' });
    expect(service.spawned[0]?.config.model).toBe('some/model');
    expect(service.spawned[1]?.config).toBe(service.spawned[0]?.config);
  });

  test('accepts the next message as the answer to its question', { tags: ['M9'] }, async () => {
    const { service, call } = withCompanions();
    await call('spawnAgent', { agentType: 'critic', message: 'First' });
    service.ask('sub_1', 'Which?');
    await call('sendMessage', { agentId: 'critic-1', message: 'The second' });
    expect(service.sent).toMatchObject([{ content: 'The second', inResponseTo: 'sub_1.q1' }]);
  });

  test('gets a unique name if another companion has the same type', async () => {
    const { service, call } = withCompanions();
    await call('spawnAgent', { agentType: 'critic', message: 'a' });
    await call('spawnAgent', { agentType: 'critic', message: 'b' });
    expect(service.spawned.map(({ config }) => config.name)).toEqual(['critic-1', 'critic-2']);
  });
});

describe('a blocking companion', { tags: ['H18'] }, () => {
  test('returns its findings for a spawn and for a message', async () => {
    const { service, call } = withCompanions();
    const spawning = call('spawnAgent', { agentType: 'researcher', message: 'Go' });
    await turn();
    service.end('sub_1', { result: 'findings' });
    expect(await spawning).toMatchObject({
      agentId: 'researcher-1',
      status: 'completed',
      result: 'findings',
    });
    const telling = call('sendMessage', { agentId: 'researcher-1', message: 'More' });
    await turn();
    service.end('sub_2', { result: 'more findings' });
    expect(await telling).toMatchObject({ result: 'more findings' });
    expect(await call('waitForResult', { agentId: 'researcher-1' })).toMatchObject({
      result: 'more findings',
    });
  });

  test('returns a question instead of a result if it asks one', async () => {
    const { service, call } = withCompanions();
    const spawning = call('spawnAgent', { agentType: 'researcher', message: 'Go' });
    await turn();
    service.ask('sub_1', 'Where?');
    expect(await spawning).toMatchObject({
      status: 'waiting_input',
      pendingRequest: { question: 'Where?' },
    });
  });

  test('returns refusals and interrupted waits as data', async () => {
    const { service, call } = withCompanions();
    service.refuse('SESSION_LIMIT');
    expect(await call('spawnAgent', { agentType: 'researcher', message: 'Go' })).toMatchObject({
      error: { code: 'SESSION_LIMIT' },
    });
    service.refuse(null);
    const controller = new AbortController();
    const spawning = call(
      'spawnAgent',
      { agentType: 'researcher', message: 'Go' },
      { abortSignal: controller.signal },
    );
    await turn();
    controller.abort();
    expect(await spawning).toMatchObject({ error: { code: 'CANCELLED' } });
    // The companion remains, because it does not belong to the cancelled call.
    expect(service.list({ subagentId: null })).toHaveLength(1);
  });
});

test("COMPANIONS-2: hides another agent's companions", async () => {
  const { service, call } = withCompanions();
  await call('spawnAgent', { agentType: 'critic', message: 'a' });
  const context = withCaller(undefined, {
    sessionId: 's',
    subagentId: 'sub_1',
    parentId: null,
    depth: 1,
    requester: null,
    approver: null,
    idempotencyKey: 'k',
    service,
  });
  expect(await call('listChildren', {}, { context })).toEqual({ children: [] });
  expect(await call('terminateChild', { agentId: 'critic-1' }, { context })).toMatchObject({
    error: { code: 'NOT_FOUND' },
  });
});
