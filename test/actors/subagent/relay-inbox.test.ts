// The stored events of an agent (RELAY-INBOX-1, 2).

import { describe, expect, test } from 'vitest';
import { readRelayEvent, RelayInbox } from '../../../src/actors/subagent/relay-inbox.ts';
import type { RelayEvent } from '../../../src/entries/subagents.ts';

const read = (event: object): RelayEvent => readRelayEvent(event) as RelayEvent;
const tool = (input: unknown) => ({
  type: 'tool_started',
  toolId: 't',
  title: 'Edit',
  kind: 'edit',
  input,
});

describe('the inbox of a relay', () => {
  test('limits the number of waiting events', () => {
    const inbox = new RelayInbox();
    const reasons = Array.from({ length: 2_001 }, () => inbox.push(read(tool(null))));
    expect(reasons.slice(0, 2_000).every((reason) => reason === null)).toBe(true);
    expect(reasons.at(-1)).toContain('more than 2000 events');
  });

  test('limits the characters of waiting events, but not those of processed events', () => {
    const inbox = new RelayInbox();
    const permission = { ...tool({ text: 'x'.repeat(8_000_000) }), type: 'permission' };
    for (let at = 0; at < 20; at += 1) {
      expect(inbox.push(read({ ...permission, requestId: `r${at}` }))).toBeNull();
      if (at % 2 === 0) inbox.shift();
      else inbox.remove(inbox.first!);
    }
    const reasons = Array.from({ length: 9 }, (_, at) =>
      inbox.push(read({ ...permission, requestId: `s${at}` })),
    );
    expect(reasons.at(-1)).toContain('characters at once');
    expect(reasons[7]).toBeNull();
  });

  test('joins pieces of text into one event of limited length', () => {
    const inbox = new RelayInbox();
    for (let at = 0; at < 5_000; at += 1)
      expect(inbox.push({ type: 'words', text: 'x'.repeat(100) })).toBeNull();
    expect(inbox.length).toBe(1);
    const { text = '' } = inbox.shift() as { readonly text?: string };
    expect(text.length).toBeLessThan(256 * 1024 + 100);
    expect(text).toContain('more characters');
  });
});

describe('an event', () => {
  test('gets cut if its text is too long, but keeps all arguments of a permission', () => {
    const input = { text: 'x'.repeat(300_000) };
    expect(JSON.stringify(read(tool(input))).length).toBeLessThan(300_000);
    expect(read({ ...tool(input), type: 'permission', requestId: 'r' })).toMatchObject({ input });
  });

  test('fails with an error that contains its request id if it is malformed', () => {
    const question = { type: 'question', requestId: '', text: 'Which?' };
    expect(readRelayEvent(question)).toMatchObject({ requestId: '' });
    expect(readRelayEvent({ ...question, requestId: 'r', text: 7 })).toMatchObject({
      requestId: 'r',
      why: expect.stringContaining('text'),
    });
    expect(readRelayEvent({ type: 'words', text: 7 })).toMatchObject({ requestId: null });
    expect(readRelayEvent(null)).toMatchObject({ requestId: null });
  });

  test('caps usage numbers so that they can be added up', () => {
    expect(read({ type: 'usage', inputTokens: 1e308, outputTokens: 0, cost: 1e308 })).toMatchObject(
      {
        inputTokens: 1e12,
        cost: 1e12,
      },
    );
    expect(readRelayEvent({ type: 'usage', inputTokens: -1, outputTokens: 0 })).toMatchObject({
      requestId: null,
    });
  });
});
