// Liveness of a voice session: in every state of the turn, and after every exit from it, an attached client gets the
// messages that are due once both parties are silent. A table of states × exits.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import type { TransportCapabilities } from '../../src/voice/connection/transport.ts';
import { BY_ITSELF, FakeTransport } from '../support/fake-transport.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'premium', label: 'Premium' },
];
const ride = {
  script: steps(calls(['ask_user', { question: 'Economy or Premium?', options }]), () =>
    say('Booked.'),
  ),
  config: { interactive: true },
};
const TICK_MS = 100;
/** Longer than any wait of a turn, in milliseconds. */
const BOUND_MS = 120_000;

async function begun(capabilities: Partial<TransportCapabilities>) {
  let finish: () => void = () => {};
  const lookUp = defineTool({
    name: 'look_up',
    description: 'Looks something up',
    parameters: z.object({}),
    timeout: 20_000,
    execute: () =>
      new Promise<string>((resolve) => {
        finish = () => resolve('found');
      }),
  });
  const talk = voiceTalk({
    subagents: { ride },
    tools: [lookUp],
    others: [{ name: 'other' }],
    transport: new FakeTransport(capabilities),
    voice: { responseTimeoutMs: 10_000 },
    ...(capabilities.speaksOutOfBand && { filler: { afterMs: 500 } }),
  });
  await talk.start();
  const { session, environment, transport, model } = talk;
  const played = new Map<string, number>();
  session.audioOut.subscribe(({ itemId = '', samples, sampleRateHz }) =>
    played.set(itemId, (played.get(itemId) ?? 0) + (samples.length * 1000) / sampleRateHz),
  );
  let isMuted = false;
  return {
    ...talk,
    finish: () => finish(),
    mute: () => {
      isMuted = true;
    },
    called(name: string) {
      model().events.next({
        type: 'tool.called',
        callId: 'call_1',
        name,
        arguments: '{}',
        responseId: 'resp_x',
      });
    },
    /** Lets time pass, while an attached client plays the audio and the model answers requests. */
    async live(ms: number, isOver: () => boolean = () => false) {
      for (let passed = 0; passed < ms && !isOver(); passed += TICK_MS) {
        await environment.advance(TICK_MS);
        if (!isMuted && session.isAttached)
          session.audioIn.next({ samples: new Int16Array(2400), sampleRateHz: 24_000 });
        const [request] = model().openRequests;
        if (request && !model().isClosed) model().speak(request.instructions ?? 'Well.');
        await environment.settle();
        if (session.isAttached)
          for (const [itemId, playedMs] of played) session.playout.next({ itemId, playedMs });
        await environment.settle();
      }
      return transport;
    },
  };
}

type Talk = Awaited<ReturnType<typeof begun>>;

async function isAsked(talk: Talk): Promise<void> {
  await talk.say('book a ride');
  talk.called('ride');
  await talk.live(20_000, () => talk.question()?.state === 'open');
  await talk.live(2000);
  expect(talk.question()?.state).toBe('open');
}

/** Brings the lead agent to the middle of a reply that is being played. */
async function replies(talk: Talk): Promise<void> {
  await talk.say('hello');
  if (talk.model().openRequests.length > 0) talk.model().begin('Hello to you, too.', 4000);
  else talk.model().beginByItself('Hello to you, too.', 4000);
  await talk.environment.advance(200);
}

const states: Readonly<Record<string, (talk: Talk) => Promise<void>>> = {
  'nobody speaks': async () => {},
  'the user speaks': async ({ model }) => model().speechStarted('u1'),
  'the user speaks over a reply': async (talk) => {
    await replies(talk);
    talk.model().speechStarted('u1');
    await talk.environment.advance(1000);
  },
  'the user has spoken over a reply for so long that it is broken off': async (talk) => {
    await replies(talk);
    talk.model().speechStarted('u1');
    await talk.environment.advance(5000);
  },
  'an utterance over a reply has ended without words': async (talk) => {
    await replies(talk);
    talk.model().speechStarted('u1');
    await talk.environment.advance(500);
    talk.model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
  },
  'the words are not known': async ({ model }) => {
    model().speechStarted('u1');
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
  },
  'words are known in part': async ({ model }) => {
    model().speechStarted('u1');
    const words = { type: 'utterance.transcribed', utteranceId: 'u1', text: 'so I' } as const;
    model().events.next({ ...words, final: false });
  },
  'words were for the lead agent, and it is silent': async ({ say: utter }) => {
    await utter('hello');
  },
  'a reply is made': replies,
  'a reply is made and has no sound': async (talk) => {
    await talk.say('hello');
    if (talk.model().openRequests.length > 0) talk.model().begin('', 0);
    else talk.model().beginByItself('', 0);
  },
  'a reply plays': async (talk) => {
    await talk.say('hello');
    if (talk.model().openRequests.length > 0) talk.model().speak('Hello.', 3000);
    else talk.model().speakByItself('Hello.', 3000);
    await talk.environment.advance(200);
  },
  'something is offered': async (talk) => {
    talk.session.notifyBackground('Older news.');
    await talk.pause();
    expect(talk.asked()).toContain('Older news.');
  },
  'something is told': async (talk) => {
    talk.session.notifyBackground('Older news.');
    await talk.pause();
    talk.model().begin('Older news.', 4000);
    await talk.environment.advance(200);
  },
  'the user speaks over what is told': async (talk) => {
    talk.session.notifyBackground('Older news.');
    await talk.pause();
    talk.model().begin('Older news.', 4000);
    await talk.environment.advance(200);
    talk.model().speechStarted('u1');
    await talk.environment.advance(200);
  },
  'a question is open, and the user speaks': async (talk) => {
    await isAsked(talk);
    talk.model().speechStarted('u1');
    await talk.environment.advance(200);
  },
  'a question is open, and what the model says is held': async (talk) => {
    await isAsked(talk);
    talk.model().speechStarted('u1');
    talk.model().beginByItself('Nice!', 2000);
    await talk.environment.advance(200);
  },
  'a tool works': async (talk) => {
    await talk.say('look it up');
    talk.called('look_up');
    await talk.environment.advance(200);
  },
  'a tool works, and the user speaks': async (talk) => {
    await talk.say('look it up');
    talk.called('look_up');
    await talk.environment.advance(200);
    talk.model().speechStarted('u1');
    await talk.environment.advance(200);
  },
  'a word fills the wait': async (talk) => {
    await talk.say('look it up');
    talk.called('look_up');
    await talk.environment.advance(900);
  },
  'the model works': async (talk) => {
    talk.model().events.next({ type: 'model.changed', status: 'working' });
    await talk.environment.advance(200);
  },
  'the line is lost': async (talk) => {
    talk.transport.autoReady = false;
    talk.model().drop();
    await talk.environment.advance(2000);
    setTimeoutReady(talk);
  },
  'the line is lost while the user speaks over a reply': async (talk) => {
    await replies(talk);
    talk.model().speechStarted('u1');
    await talk.environment.advance(300);
    talk.model().drop();
    await talk.environment.advance(500);
  },
  'the line is exchanged': async (talk) => {
    await replies(talk);
    talk.model().events.next({ type: 'transport.expiring', inMs: 20_000 });
    await talk.environment.advance(200);
  },
  'the lead agent changes': async (talk) => {
    for (const connection of talk.transport.connections) connection.autoConfigured = false;
    void talk.session.transfer('other');
    await talk.environment.advance(200);
  },
};

/** Makes the other end available again after a while. */
function setTimeoutReady(talk: Talk): void {
  talk.environment.scheduler.schedule(() => {
    talk.transport.autoReady = true;
    talk.model().ready();
  }, 1500);
}

const ways: Readonly<Record<string, (talk: Talk) => Promise<void>>> = {
  'the client leaves, and one comes later': async (talk) => {
    talk.leave();
    await talk.live(3000);
    talk.session.notifyBackground('Something new.');
    await talk.live(1000);
    talk.session.attach();
  },
  'the client begins anew': async (talk) => {
    talk.session.notifyBackground('Something new.');
    talk.leave();
    talk.session.attach();
  },
  'another client comes, and the first one leaves': async (talk) => {
    talk.session.notifyBackground('Something new.');
    talk.session.attach();
    talk.leave();
  },
  'the client leaves, and tools have an end': async (talk) => {
    talk.session.notifyBackground('Something new.');
    talk.leave();
    await talk.live(500);
    talk.finish();
    await talk.live(500);
    talk.session.attach();
  },
  'the line is lost': async (talk) => {
    talk.session.notifyBackground('Something new.');
    talk.model().drop();
  },
  'the line is lost when the client has left': async (talk) => {
    talk.session.notifyBackground('Something new.');
    talk.leave();
    await talk.live(500);
    talk.model().drop();
    await talk.live(500);
    talk.session.attach();
  },
  'the lead agent changes': async (talk) => {
    talk.session.notifyBackground('Something new.');
    void talk.session.transfer('other');
  },
  'the microphone is muted': async (talk) => {
    talk.session.notifyBackground('Something new.');
    talk.mute();
  },
};

const lines: Readonly<Record<string, Partial<TransportCapabilities>>> = {
  'a model that is asked': { speaksOutOfBand: true },
  'a model that is asked, on a wire that cannot change': { updatesSession: false },
  'a model that is asked, on a wire that ends utterances': { endsUtterances: true },
  'a model that cannot be cancelled': { cancelsResponses: false, truncatesAudio: false },
  'a model that answers by itself': BY_ITSELF,
};

describe.each(Object.entries(lines))('%s', (_line, capabilities) => {
  describe.each(Object.entries(states))('%s', (_state, arrive) => {
    test.each(Object.entries(ways))('%s: delivers every due item', async (_way, leave) => {
      const talk = await begun(capabilities);
      await arrive(talk);
      await leave(talk);
      const told = () =>
        talk.state().deliveries.find(({ text }) => text.includes('Something new.'))?.state;
      await talk.live(BOUND_MS, () => told() === 'delivered');
      const { floor, connection } = talk.state();
      expect({ told: told(), floor, connection }).toMatchObject({ told: 'delivered' });
      await talk.close();
      expect(talk.environment.pendingTimers).toBe(0);
    });
  });
});
