// Approval that starts while its question is being spoken, on each wire. A client that reports more than it has played,
// or reports it late, does not turn the user's words into an approval.

import { expect, test } from 'vitest';
import { geminiLive } from '../../src/adapters/gemini-live/index.ts';
import { openaiLive } from '../../src/adapters/openai-live/index.ts';
import { openaiRealtime } from '../../src/adapters/openai-realtime/index.ts';
import {
  APPROVAL,
  approving,
  call,
  isOpen,
  isQuiet,
} from '../../src/testing/conformance/shared-cases.ts';
import { Talk } from '../../src/testing/conformance/talk.ts';
import type { ConformanceSetup } from '../../src/testing/index.ts';
import { voiceServerStage } from '../../src/testing/voice-server/index.ts';
import { localStage } from '../testing/conformance/support/local-stage.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const common = { apiKey: 'some-key', keepAliveMs: null };

const wires: readonly (readonly [string, () => ConformanceSetup])[] = [
  [
    'OpenAI Realtime',
    () =>
      voiceServerStage({
        wire: 'openai-realtime',
        transport: (webSocket) => openaiRealtime({ ...common, webSocket }),
      }),
  ],
  [
    'OpenAI Live',
    () =>
      voiceServerStage({
        wire: 'openai-live',
        transport: (webSocket) => openaiLive({ ...common, webSocket }),
      }),
  ],
  [
    'Gemini Live',
    () =>
      voiceServerStage({
        wire: 'gemini-live',
        transport: (webSocket) => geminiLive({ ...common, webSocket }),
      }),
  ],
  ['a local voice', localStage],
];

/** The start of the question. */
const BEGINNING = APPROVAL.slice(0, 8);

/** Starts a conversation in which the user hears the start of a question for approval. */
async function asked(setup: ConformanceSetup) {
  const { subagent, got } = approving();
  const ride = 'a ride please';
  const talk = await Talk.begin(setup, {
    calls: { [ride]: [call('ride')] },
    subagents: { ride: subagent },
  });
  await talk.says(ride);
  await talk.hears(BEGINNING);
  return { talk, got };
}

test.each(wires)(
  'QUESTION-3: ignores a yes that starts during the question on %s, even if all audio was reported',
  async (_, setup) => {
    const { talk, got } = await asked(setup());
    const ended = talk.beginsToSay('yes', { to: 'nobody', durationMs: 600 });
    await talk.pass(100);
    for (const { itemId } of talk.playsOf(BEGINNING))
      talk.session.playout.next({ itemId, playedMs: 60_000 });
    await talk.pass(500);
    await ended;
    await talk.pass(10_000);
    expect(got).toEqual([]);
    expect(talk.state.questions.at(-1)?.answer).toBeNull();
    await talk.end();
  },
);

test.each(wires)('counts a yes given right after the question on %s', async (_, setup) => {
  const { talk, got } = await asked(setup());
  await isOpen(talk, APPROVAL);
  await talk.says('yes', { to: 'subagent', durationMs: 600 });
  await isQuiet(talk);
  await talk.pass(3000);
  expect(got).toEqual(['yes']);
  await talk.end();
});

test('counts a yes after the question when a client reports its playout in one burst', async () => {
  const ran: string[] = [];
  const tools = { pay: simpleTool(() => ran.push('paid'), { needsApproval: true }) };
  const pay = { script: steps(calls(['pay', {}]), say('Well.')), config: { tools } };
  const talk = voiceTalk({ subagents: { pay } });
  await talk.start();
  await talk.use('pay');
  await talk.pause();
  const putting = talk.model().begin('May I pay?', 3000);
  putting.end();
  for (const playedMs of [100, 1500, 3000]) await talk.play(putting.itemId, playedMs);
  await talk.say('yes');
  expect(ran).toEqual(['paid']);
});
