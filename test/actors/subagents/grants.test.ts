// What a model's tools grant, and what is denied below it.

import { describe, expect, test } from 'vitest';
import { createChildSubagentToolset } from '../../../src/actors/subagent/child-toolset.ts';
import { grantTools } from '../../../src/actors/subagents/grants.ts';
import type { SubagentConfig } from '../../../src/index.ts';
import { by, puppets } from '../../support/puppets.ts';
import { simpleTool } from '../../support/subagent-runs.ts';

const read = simpleTool(() => 'read');
const write = simpleTool(() => 'written');
const own = simpleTool(() => 'own');
const config = (more: Partial<SubagentConfig> = {}): SubagentConfig => ({
  name: 'worker',
  instructions: '',
  tools: { own },
  ...more,
});
const granter = (denied: readonly string[] = []) => ({
  tools: { read, write, ...createChildSubagentToolset() },
  toolsContext: { read: { path: '/' } },
  denied: new Set(denied),
});
const names = (granted: ReturnType<typeof grantTools>) =>
  granted.ok ? Object.keys(granted.config.tools ?? {}).toSorted() : granted.error.code;

describe('P8: the tools of a subagent', () => {
  test('stay unchanged without a grant', () => {
    const given = config();
    const granted = grantTools(given, undefined, granter());
    expect(granted).toMatchObject({ ok: true });
    expect(granted.ok && granted.config).toBe(given);
  });

  test("include all of the requester's tools by default, and otherwise exactly the listed tools", () => {
    const { report_progress: _ } = createChildSubagentToolset();
    expect(names(grantTools(config(), {}, granter()))).toEqual([
      'own',
      'read',
      'report_progress',
      'write',
    ]);
    expect(names(grantTools(config(), { tools: [] }, granter()))).toEqual(['own']);
    const one = grantTools(config(), { tools: ['read', 'own'] }, granter());
    expect(names(one)).toEqual(['own', 'read']);
    expect(one.ok && one.config.toolsContext).toEqual({ read: { path: '/' } });
  });

  test("never exceed the requester's tools, and never include a tool denied to an ancestor", () => {
    expect(grantTools(config(), { tools: ['read', 'rm'] }, granter())).toMatchObject({
      ok: false,
      error: { code: 'TOOL_NOT_ALLOWED', message: expect.stringContaining('"rm"') },
    });
    expect(grantTools(config(), { tools: ['toString'] }, granter())).toMatchObject({ ok: false });
    expect(grantTools(config(), { tools: ['write'] }, granter(['write']))).toMatchObject({
      error: { code: 'TOOL_NOT_ALLOWED', message: expect.stringContaining('denied') },
    });
    expect(names(grantTools(config(), {}, granter(['write', 'own'])))).toEqual([
      'read',
      'report_progress',
    ]);
  });

  test('exclude the tools that the configuration or the instance denies, but never complete_task', async () => {
    const { complete_task } = createChildSubagentToolset();
    const given = config({
      tools: { own, complete_task },
      createInstance: () => config({ tools: { own, write } }),
    });
    const granted = grantTools(
      given,
      { tools: ['read'], disallowedTools: ['own', 'complete_task'] },
      granter(),
    );
    expect(names(granted)).toEqual(['complete_task', 'read']);
    expect(granted.ok && [...granted.denied]).toEqual(['own', 'complete_task']);
    const instance = granted.ok && (await granted.config.createInstance?.());
    expect(instance && Object.keys(instance.tools ?? {}).toSorted()).toEqual(['read', 'write']);
  });
});

test('exclude denied tools in the whole subtree', async () => {
  const stage = puppets({ tools: { read, write } });
  const parent = stage.spawn('p', { grant: { disallowedTools: ['write'] } });
  const child = stage.spawn('c', { caller: by(parent), config: { tools: { write } } });
  stage.spawn('g', { caller: by(child), grant: {}, config: { tools: { write, own } } });
  expect(stage.request('x', { caller: by(child), grant: { tools: ['write'] } })).toMatchObject({
    status: 'rejected',
    error: { code: 'TOOL_NOT_ALLOWED' },
  });
  await stage.settle();
  const offered = (name: string) =>
    stage.prompts
      .find((one) => one.name === name)
      ?.prompt.toolNames.filter((tool) => ['read', 'write', 'own'].includes(tool));
  expect(offered('p')).toEqual(['read']);
  expect(offered('c')).toEqual([]);
  expect(offered('g')?.toSorted()).toEqual(['own']);
});
