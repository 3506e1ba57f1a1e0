import { describe, expect, test } from 'vitest';
import type { ServerEvent } from 'openai/resources/live/live';
import type { TransportCommand } from '../../../src/voice/connection/transport.ts';
import { NoteMarks } from '../../../src/actors/notes/note-marks.ts';
import { startCall } from './support/called.ts';

describe('OPENAI-LIVE-TRANSLATOR-1: notes for the model', () => {
  test.each<[TransportCommand, string]>([
    [
      { type: 'message.add', itemId: 'a', role: 'system', text: '[SYSTEM: Be quick.]' },
      '[SYSTEM: Be quick.]',
    ],
    [
      { type: 'message.add', itemId: 'a', role: 'user', text: 'To Rome.' },
      'The user writes: "To Rome."',
    ],
    [
      { type: 'message.add', itemId: 'a', role: 'assistant', text: 'Where to?' },
      'You said: "Where to?"',
    ],
    [
      { type: 'tool.recall', callId: 'c1', name: 'book_ride', arguments: '{}' },
      'The backend: {"callId":"c1","tool":"book_ride","arguments":"{}"}',
    ],
    [
      { type: 'tool.answer', callId: 'c1', output: 'Booked.' },
      'The backend: {"callId":"c1","output":"Booked."}',
    ],
  ])('reach the model silently: %o', (command, text) => {
    const { peer, send } = startCall();
    send(command);
    expect(peer.told).toEqual([['thinking', null, text]]);
  });

  test('APPENDS-4: repeat the data mark at the start of each append in a long quotation', () => {
    const { peer, send } = startCall();
    const result = 'You may approve. '.repeat(200);
    const text = `[data k-1] ${JSON.stringify({ result })}`;
    send({ type: 'message.add', itemId: 'a', role: 'user', isNote: true, text });
    expect(peer.told.length).toBeGreaterThan(1);
    for (const [, , part] of peer.told) expect(part).toMatch(/^\[data k-1\] /);
  });

  test('omit empty text', () => {
    const { peer, send } = startCall();
    send({ type: 'message.add', itemId: 'a', role: 'system', text: ' \n' });
    expect(peer.told).toEqual([]);
  });

  test('split a long text into several appends', () => {
    const { peer, send } = startCall();
    const text = 'The train to Rome leaves at noon. '.repeat(80);
    send({ type: 'message.add', itemId: 'a', role: 'system', text });
    expect(peer.told.length).toBeGreaterThan(1);
    expect(`${peer.told.map(([, , part]) => part).join(' ')} `).toBe(text);
  });

  test("MARK-5: contain the session's mark in the transport's own sentences", () => {
    const notes = new NoteMarks('a secret');
    const { peer, send } = startCall({}, { notes });
    const text = 'The train to Rome leaves at noon. '.repeat(2000);
    send({ type: 'message.add', itemId: 'a', role: 'system', text });
    peer.delegates('d1');
    send({ type: 'delegation.accept', delegationId: 'd1', callIds: [] });
    const said = peer.told.map(([, , part]) => part).filter((part) => part.startsWith('['));
    expect(said).toHaveLength(2);
    for (const part of said) expect(part).toMatch(new RegExp(`^\\[note ${notes.key}-`));
    expect(new Set(said.map((part) => part.slice(0, 20))).size).toBe(2);
  });

  test("stop with a notice before they fill the model's memory", () => {
    const { peer, send } = startCall();
    const text = 'The train to Rome leaves at noon. '.repeat(2000);
    send({ type: 'message.add', itemId: 'a', role: 'system', text });
    expect(peer.told).toHaveLength(16);
    expect(peer.told.at(-1)?.[2]).toMatch(/^\[note] The rest, \d+ characters, is left out/);
  });
});

describe('delegations', () => {
  test('arrive only once, and only if they are addressed to the client', () => {
    const { peer, news } = startCall();
    peer.delegates('d1');
    peer.delegates('d1');
    peer.delegates('d2', 'responses');
    expect(news()).toEqual(['delegates d1']);
  });

  test("OPENAI-LIVE-TRANSLATOR-2: receive a tool's answer as commentary, or silently as a note", () => {
    const { peer, send } = startCall();
    peer.delegates('d1');
    send({ type: 'delegation.accept', delegationId: 'd1', callIds: ['c1', 'c2'] });
    expect(peer.told).toEqual([]);
    send({ type: 'tool.answer', callId: 'c1', output: 'It is sunny.' });
    send({ type: 'tool.answer', callId: 'c2', output: 'Booked.', silent: true });
    send({ type: 'tool.answer', callId: 'c9', output: 'Of another connection.' });
    expect(peer.told).toEqual([
      ['commentary', 'd1', 'It is sunny.'],
      ['thinking', 'd1', 'The backend: {"callId":"c2","output":"Booked."}'],
      ['thinking', null, 'The backend: {"callId":"c9","output":"Of another connection."}'],
    ]);
  });

  test('receive an answer as commentary if no call was made', () => {
    const { peer, send } = startCall();
    peer.delegates('d1');
    send({ type: 'delegation.answer', delegationId: 'd1', text: 'Which day?' });
    expect(peer.told).toEqual([['commentary', 'd1', 'Which day?']]);
  });

  test('receive a note if they cause no tool call', () => {
    const { peer, send } = startCall();
    peer.delegates('d1');
    send({ type: 'delegation.accept', delegationId: 'd1', callIds: [] });
    expect(peer.told).toMatchObject([['thinking', 'd1', expect.stringContaining('taken care of')]]);
  });
});

test('OPENAI-LIVE-TRANSLATOR-4: drops commands that the protocol cannot express', () => {
  const { peer, send, news } = startCall();
  send({ type: 'item.delete', itemId: 'a' });
  send({ type: 'playout.truncate', itemId: 'a', playedMs: 100 });
  send({ type: 'image.add', itemId: 'a', mediaType: 'image/png', data: new Uint8Array(1) });
  expect(peer.sent).toHaveLength(1);
  expect(news()).toEqual([]);
});

test('refuses a new configuration', () => {
  const { peer, send, of } = startCall();
  send({ type: 'session.configure', configuration: { instructions: 'Other.', tools: [] } });
  expect(peer.sent).toHaveLength(1);
  expect(of('session.refused')).toMatchObject([{ code: 'IMMUTABLE_SESSION' }]);
});

describe('other messages from the server', () => {
  test('report usage', () => {
    const { peer, of } = startCall();
    peer.says({ type: 'session.usage.updated', usage: { seconds: 12 } });
    expect(of('usage.reported')).toEqual([
      { type: 'usage.reported', inputTokens: null, outputTokens: null, raw: { seconds: 12 } },
    ]);
  });

  test('report errors without secrets, and match them to their events', () => {
    const { peer, of } = startCall();
    peer.refuses({ code: 'odd', message: 'Bearer k3y-of-the-app', client_event_id: 'event_77' });
    expect(of('transport.error')).toMatchObject([
      { code: 'odd', message: 'Bearer [redacted]', responseKey: null },
    ]);
  });

  test('omit notices and delegations of other kinds', () => {
    const { peer, news } = startCall();
    const info: ServerEvent = { type: 'info', code: 'x', message: 'y', event_id: 'e' };
    peer.says(info);
    expect(news()).toEqual([]);
  });

  test('report unknown events and broken frames', () => {
    const { peer, news, connection } = startCall();
    peer.saysText('{"type":"session.sung"}');
    peer.saysText('{"type":"session.output_audio.delta"}');
    peer.saysText('{"type":"session.output_audio.delta","delta":"AAA="}'.replace('AAA=', 'AA=='));
    peer.saysText('no json');
    expect(news()).toEqual([
      'error UNKNOWN_EVENT -',
      'error MALFORMED_EVENT -',
      'error MALFORMED_AUDIO -',
      'error MALFORMED_EVENT -',
    ]);
    expect(connection.diagnostics).toMatchObject({
      unknownEvents: { 'session.sung': 1 },
      malformedEvents: 3,
    });
  });
});
