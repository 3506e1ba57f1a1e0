import { describe, expect, test } from 'vitest';
import { withCaller } from '../../../../src/actors/model/caller.ts';
import {
  CHILD_TOOLSET,
  createChildSubagentToolset,
} from '../../../../src/actors/subagent/child-toolset.ts';
import { delegates, roleOf } from '../../../../src/actors/model/tool-flags.ts';
import { prepareTools } from '../../../../src/actors/model/tools.ts';
import { callOptions, fakeService } from '../../../support/fake-service.ts';

const tools = createChildSubagentToolset();
const prepared = prepareTools(tools, 'test').execution;

async function call(name: keyof typeof tools, input: unknown, options: never = callOptions()) {
  const entry = prepared.get(name);
  const checked = await entry?.validate(input);
  if (!checked?.ok) return 'INVALID';
  return entry?.execute?.(checked.value, options);
}

function inSubagent() {
  const service = fakeService();
  service.spawn({
    config: { name: 'worker', instructions: '' },
    task: { toolName: 'worker', args: {}, description: 'x' },
    caller: { subagentId: null },
  });
  const context = withCaller(
    { mine: 1 },
    {
      sessionId: 's',
      subagentId: 'sub_1',
      parentId: null,
      depth: 1,
      requester: null,
      approver: null,
      idempotencyKey: 'k',
      service,
    },
  );
  return { service, options: callOptions({ context }) };
}

test('has a name and a version', { tags: ['M28'] }, () => {
  expect(CHILD_TOOLSET).toEqual({ name: 'subagent-child', version: '0.1.0' });
});

describe('report_progress', { tags: ['M8'] }, () => {
  test('reports to the service, with the percentage as a number', async () => {
    const { service, options } = inSubagent();
    const note = { update: 'half way', percentComplete: 50 };
    expect(await call('report_progress', note, options)).toEqual({ reported: true });
    expect(await call('report_progress', { update: 'on' }, options)).toEqual({ reported: true });
    const checked = service.check('sub_1', { subagentId: null });
    expect(checked.ok && checked.report.progress).toMatchObject([
      { update: 'half way', percent: 50 },
      { update: 'on', percent: null },
    ]);
  });

  test.each([-1, 101, Number.NaN, '50'])(
    'refuses %s as a percentage',
    { tags: ['MW11'] },
    async (percentComplete) => {
      const { options } = inSubagent();
      expect(await call('report_progress', { update: 'x', percentComplete }, options)).toBe(
        'INVALID',
      );
    },
  );

  test('refuses an update without text', async () => {
    expect(await call('report_progress', { update: ' ' }, inSubagent().options)).toBe('INVALID');
  });
});

test(
  'marks request_input and complete_task as tools that the runtime settles',
  { tags: ['M9', 'M10'] },
  () => {
    expect(Object.entries(tools).map(([name, tool]) => [name, roleOf(tool)])).toEqual([
      ['report_progress', null],
      ['request_input', 'request_input'],
      ['complete_task', 'complete_task'],
    ]);
    expect(Object.values(tools).some(delegates)).toBe(false);
  },
);

test("validates the tools' arguments", { tags: ['M9', 'M10'] }, async () => {
  const good = [
    ['request_input', { question: 'Which?', context: 'Two are there', timeoutMs: 1000 }],
    ['complete_task', { result: 'Done', summary: 'All well.' }],
    ['complete_task', { result: 'Done' }],
  ] as const;
  for (const [name, input] of good)
    expect(await prepared.get(name)?.validate(input)).toEqual({ ok: true, value: input });
  const bad = [
    ['request_input', { question: '' }],
    ['request_input', { question: 'x', timeoutMs: 0 }],
    ['complete_task', { result: '' }],
    ['complete_task', {}],
  ] as const;
  for (const [name, input] of bad)
    expect(await prepared.get(name)?.validate(input)).toMatchObject({ ok: false });
});

test('returns a structured result as JSON', async () => {
  const structured = prepareTools(createChildSubagentToolset({ structured: true }), 'test');
  const input = { result: { count: 3, names: ['a'] } };
  const complete = structured.execution.get('complete_task');
  expect(await complete?.validate(input)).toEqual({ ok: true, value: input });
});

test('fails with INVALID_STATE outside a subagent', { tags: ['M11'] }, async () => {
  const lead = withCaller(undefined, {
    sessionId: 's',
    subagentId: null,
    parentId: null,
    depth: 0,
    requester: null,
    approver: null,
    idempotencyKey: 'k',
    service: fakeService(),
  });
  for (const options of [callOptions(), callOptions({ context: lead })])
    for (const [name, input] of [
      ['report_progress', { update: 'x' }],
      ['request_input', { question: 'x' }],
      ['complete_task', { result: 'x' }],
    ] as const)
      expect(await call(name, input, options)).toEqual({
        error: { code: 'INVALID_STATE', message: 'Not running as a subagent' },
      });
});
