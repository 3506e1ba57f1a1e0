// The demo's third-party agent: its real process, the demo's rules, and a user who types.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { leadAgent } from '../../../../examples/voice-demo/agents/lead-agent.ts';
import { temporaryFolder } from '../../../../examples/voice-demo/agents/menu-editor.ts';
import { subagentsIn } from '../../../../examples/voice-demo/agents/subagents.ts';
import { createWorkshop } from '../../../../examples/voice-demo/agents/workshop.ts';
import { createWorld } from '../../../../examples/voice-demo/agents/world.ts';
import { ruleModel } from '../../../../examples/voice-demo/rules/rule-model.ts';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import { memoryJournal, TextSession } from '../../../../src/index.ts';

const QUESTION =
  'May the agent do this (edit): "Add to menu.txt" (path: "menu.txt", line: "Soup")?';

function setUp() {
  const kept = mkdtempSync(join(tmpdir(), 'offstage-demo-test-'));
  onTestFinished(() => rmSync(kept, { recursive: true }));
  const { path } = temporaryFolder(kept);
  const environment = nodeEnvironment();
  const journal = memoryJournal();
  const world = createWorld();
  const said: string[] = [];
  const asked: string[] = [];
  const open = async () => {
    const session: TextSession = new TextSession({
      sessionId: 'demo',
      journal,
      environment,
      model: ruleModel({ environment }),
      agents: [leadAgent(world)],
      subagentConfigs: subagentsIn(createWorkshop(environment, world, 0), path),
    });
    onTestFinished(() => session.close());
    session.parts.subscribe((part) => {
      if (part.type === 'text.done') said.push(part.text);
      if (part.type === 'question.asked') asked.push(part.question);
    });
    await session.start();
    return session;
  };
  const file = join(path, 'menu.txt');
  const menu = () => (existsSync(file) ? readFileSync(file, 'utf8') : null);
  const told = async (text: string) => {
    await expect.poll(() => said.join(' '), { timeout: 20_000 }).toContain(text);
  };
  const question = async (count: number) => {
    const wanted = Array.from({ length: count }, () => QUESTION);
    await expect.poll(() => asked, { timeout: 20_000 }).toEqual(wanted);
  };
  return { open, menu, told, question, asked };
}

test('adds a dish to the menu once, after the user has approved exactly that change', async () => {
  const { open, menu, told, question, asked } = setUp();
  const session = await open();
  await session.sendText('Hello. What is on the menu?');
  await told('The menu is empty.');
  expect(asked).toEqual([]);
  await session.sendText('Put soup on the menu.');
  await question(1);
  expect(menu()).toBe(null);
  await session.sendText('Yes.');
  await told('Soup is on the menu.');
  expect(menu()).toBe('Soup\n');
  // The earlier request is in the conversation that the agent receives, but does not start work again.
  await session.sendText("What's on the menu now?");
  await told('The menu: Soup.');
  expect(menu()).toBe('Soup\n');
  expect(asked).toHaveLength(1);
});

test('leaves the menu unchanged if the user says no', async () => {
  const { open, menu, told, question } = setUp();
  const session = await open();
  await session.sendText('Please put some soup on the menu.');
  await question(1);
  await session.sendText('No.');
  await told('I left the menu as it is.');
  expect(menu()).toBe(null);
});

test('continues its session in the next process, and asks again before it changes anything', async () => {
  const { open, menu, told, question } = setUp();
  const first = await open();
  await first.sendText('Put soup on the menu.');
  await question(1);
  await first.suspend();
  const second = await open();
  await question(2);
  // A permission applies to one request, which ended with its process, so the agent asks again.
  await second.sendText('Yes.');
  await question(3);
  expect(menu()).toBe(null);
  await second.sendText('Yes.');
  await told('Soup is on the menu.');
  expect(menu()).toBe('Soup\n');
});

test('preserves its folder while the conversation exists, and then removes it', () => {
  const kept = mkdtempSync(join(tmpdir(), 'offstage-demo-test-'));
  onTestFinished(() => rmSync(kept, { recursive: true }));
  expect(temporaryFolder(kept).path).toBe(temporaryFolder(kept).path);
  for (const { path, remove } of [temporaryFolder(kept), temporaryFolder(undefined)]) {
    expect(existsSync(path)).toBe(true);
    remove();
    expect(existsSync(path)).toBe(false);
  }
});
