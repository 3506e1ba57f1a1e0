// A real session, watched through the receiver of `@statelyai/inspect`.

import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createInspector } from '../../../src/adapters/inspect/index.ts';
import { defineSubagent, TextSession } from '../../../src/index.ts';
import { scriptedModel, simulatedEnvironment } from '../../../src/testing/index.ts';
import { bookRide, RIDE_INSTRUCTIONS, rideConfig, rideScript } from '../../support/ride.ts';
import { receive, type Seen } from './support/receiver.ts';

/** Texts in user messages, arguments, results, instructions, questions and errors. */
const SECRETS = [
  'airport of my secret lover',
  'Economy or Premium?',
  'the cheaper one with the leather seats',
  'booked for Miss Moneypenny',
  'No car wants to go there',
  'economy',
];

const lead = scriptedModel({
  scripts: [
    {
      when: RIDE_INSTRUCTIONS,
      script: (prompt) => {
        const [last] = prompt.results;
        if (last === undefined || Array.isArray(last)) return rideScript(prompt);
        if ((last as { userResponse?: string }).userResponse !== undefined)
          return {
            calls: [{ name: 'confirm_ride', input: { rideType: 'booked for Miss Moneypenny' } }],
          };
        throw new Error('No car wants to go there');
      },
    },
  ],
  otherwise: ({ user, results }) =>
    results.length === 0 && user.includes('airport')
      ? { calls: [{ name: 'book_ride', input: { destination: 'airport of my secret lover' } }] }
      : { text: 'I am on it.' },
});

async function ride(redact = true): Promise<{ view: Seen; stop: () => Promise<void> }> {
  const environment = simulatedEnvironment();
  const inspector = await createInspector({ environment, flushMs: 0, redact });
  const view = receive(inspector.streamUrl!);
  const session = new TextSession({
    environment,
    inspect: inspector.inspect,
    sessionId: 'ses_1',
    model: lead,
    agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [bookRide] }],
    subagentConfigs: {
      book_ride: defineSubagent({
        ...rideConfig,
        tools: {
          ...rideConfig.tools,
          confirm_ride: tool({
            inputSchema: z.object({ rideType: z.string() }),
            execute: async ({ rideType }) => ({ note: `${rideType}, as agreed` }),
          }),
        },
      }),
    },
  });
  await view.until(({ ids }) => ids.includes('ses_1'));
  let requestId = '';
  session.parts.subscribe((part) => {
    if (part.type === 'question.asked') ({ requestId } = part);
  });
  await session.start();
  void session.sendText('a ride to the airport of my secret lover');
  await environment.advance(1000);
  expect(requestId).not.toBe('');
  // The user names no option, so the words are sent to the subagent.
  void session.answer(requestId, { text: 'the cheaper one with the leather seats' });
  await environment.advance(1000);
  await session.answer(requestId, { optionId: 'economy' });
  await environment.advance(1000);
  const closed = session.close();
  await environment.advance(10_000);
  await closed;
  await view.until(({ snapshots }) => snapshots('ses_1').at(-1)?.snapshot.status !== 'active');
  await view.until(
    ({ snapshots }) => snapshots('ses_1/outbox').at(-1)?.snapshot.status === 'stopped',
  );
  return { view, stop: () => inspector.stop() };
}

test('shows every actor of a session in one tree, but no utterances', async () => {
  const { view, stop } = await ride();
  const named = (part: string): string[] => view.ids.filter((id) => id.includes(part));
  const subagent = view.ids.find((id) => /^ses_1\/sub_[^/]+$/.test(id)) ?? '';
  expect(view.ids).toEqual(
    expect.arrayContaining(['ses_1', 'ses_1/interaction', 'ses_1/outbox', subagent]),
  );
  expect(named('/question:').length).toBeGreaterThan(0);
  expect(named('/call:').length).toBeGreaterThan(0);
  for (const id of view.ids) {
    const actor = view.actor(id)!;
    expect([id, actor.parentId]).toEqual([
      id,
      id === 'ses_1' ? undefined : id.slice(0, id.lastIndexOf('/')),
    ]);
    expect(actor.rootId).toBe('ses_1');
    expect(JSON.parse(actor.definition)).toHaveProperty('id');
    expect(view.snapshots(id).length).toBeGreaterThan(0);
    expect(view.snapshots(id).at(-1)!.snapshot.status).not.toBe('active');
  }
  const [question = ''] = named('/question:');
  expect(view.snapshots(question).map(({ snapshot }) => snapshot.value)).toContain('open');
  expect(view.snapshots(subagent).map(({ snapshot }) => snapshot.value)).toEqual(
    expect.arrayContaining(['ready', { running: 'thinking' }, { waiting_for_input: 'asking' }]),
  );
  const stream = JSON.stringify(view.messages);
  for (const secret of SECRETS) expect(stream).not.toContain(secret);
  await stop();
});

test('shows the utterances when redaction is off', async () => {
  const { view, stop } = await ride(false);
  const stream = JSON.stringify(view.messages);
  expect(SECRETS.filter((secret) => !stream.includes(secret))).toEqual([]);
  await stop();
});
