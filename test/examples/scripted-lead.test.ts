// The examples' scripted lead agent acts on what the user says, and never on notes about its tasks.

import { expect, test } from 'vitest';
import { scriptedLead } from '../../examples/scripted-lead.ts';
import { scriptedModel, type ScriptedPrompt } from '../../src/testing/index.ts';

type Messages = ScriptedPrompt['prompt'];

const NOTE = '[note a1-b2] SUBAGENT QUESTION: May the remover remove a.txt?';

const says = (text: string): Messages[number] => ({
  role: 'user',
  content: [{ type: 'text', text }],
});
const told: Messages = [{ role: 'assistant', content: [{ type: 'text', text: 'I see.' }] }];

async function callsOn(prompt: Messages): Promise<readonly string[]> {
  const asked: string[] = [];
  const lead = scriptedLead((text) => {
    asked.push(text);
    return [];
  });
  await scriptedModel({ otherwise: lead }).doGenerate({ prompt });
  return asked;
}

test("does not mistake a task's later question for a message from the user", async () => {
  expect(await callsOn([says('Where are we?'), says(NOTE)])).toEqual(['Where are we?']);
});

test('does not act again on a message that it has answered', async () => {
  expect(await callsOn([says('remove it'), ...told, says(NOTE)])).toEqual(['']);
});

test('acts on all user messages since the last reply', async () => {
  expect(
    await callsOn([says('hello'), ...told, says('remove it'), says(NOTE), says('and quick')]),
  ).toEqual(['remove it and quick']);
});
