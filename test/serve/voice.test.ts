// A served voice session: audio in both directions, the client that owns the voice, and the reports on played audio.

import { expect, onTestFinished, test } from 'vitest';
import type { AudioFrame } from '../../src/index.ts';
import { encodeSound, type NoticeFrame } from '../../src/client/protocol.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { served, type TestClient } from './support/served.ts';

/** A voice session in which the test plays the model and the clients play no audio. */
async function spoken() {
  const talk = voiceTalk();
  const heard: AudioFrame[] = [];
  const { audioIn, playout } = talk.session;
  const played: { itemId: string; playedMs: number }[] = [];
  const session = new Proxy(talk.session, {
    get(target, name) {
      if (name === 'audioIn') return { ...audioIn, next: (frame: AudioFrame) => heard.push(frame) };
      if (name === 'playout')
        return {
          ...playout,
          next: (report: { itemId: string; playedMs: number }) => {
            played.push(report);
            playout.next(report);
          },
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const it = await served({ session: () => session });
  onTestFinished(() => talk.close());
  return { ...it, talk, heard, played };
}

/** On a host without audio output, the loudspeaker plays silently. */
async function speaking(client: TestClient): Promise<void> {
  await client.status(({ state }) => state === 'open');
  expect(await client.it.speaker.start()).toBe('silent');
  await client.status(({ ownsVoice }) => ownsVoice);
}

const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
};

test('lets the client that owns the voice hear the model and report its playout', async () => {
  const { client, talk, played } = await spoken();
  const ann = client({ transport: 'websocket' });
  expect(ann.it.status.get().hasVoice).toBe(false);
  await speaking(ann);
  await talk.environment.settle();
  expect(talk.session.isAttached).toBe(true);
  const itemId = talk.model().speakByItself('Good morning.', 500);
  await talk.environment.settle();
  await until(() => {
    void ann.environment.advance(20);
    return played.some((report) => report.itemId === itemId && report.playedMs >= 499);
  });
  expect(played.every((report) => report.itemId === itemId)).toBe(true);
});

test('lets a client return after a suspend, but not after the session has ended', async () => {
  const suspended = await spoken();
  await suspended.talk.session.suspend();
  const ann = suspended.client();
  expect((await ann.status(({ reason }) => reason !== null)).reason?.code).toBe(
    'SESSION_SUSPENDED',
  );
  expect(ann.it.status.get().state).toBe('waiting');
  const ended = await spoken();
  await ended.talk.close();
  const bob = ended.client();
  const { state, reason } = await bob.status((now) => now.reason !== null);
  expect([state, reason?.code]).toEqual(['closed', 'SESSION_ENDED']);
});

test('moves the voice to the last client that requests it and back when that client leaves', async () => {
  const { client, talk } = await spoken();
  const [ann, bob] = [client(), client({ token: 'bob' })];
  await speaking(ann);
  await speaking(bob);
  await ann.status(({ ownsVoice }) => !ownsVoice);
  bob.it.close();
  await ann.status(({ ownsVoice }) => ownsVoice);
  ann.it.speaker.stop();
  await ann.status(({ ownsVoice }) => !ownsVoice);
  await until(() => !talk.session.isAttached);
});

test('SESSION-HUB-7: refuses the voice to an operator', async () => {
  const { client, talk } = await spoken();
  const ann = client();
  await speaking(ann);
  const root = client({ token: 'root' });
  await root.status(({ state }) => state === 'open');
  void root.it.speaker.start();
  await root.it.shown('nothing');
  expect(root.it.status.get().ownsVoice).toBe(false);
  expect(ann.it.status.get().ownsVoice).toBe(true);
  await talk.close();
});

test("passes only the voice owner's audio to the session, at the microphone's sample rate", async () => {
  const { client, heard, url, errors } = await spoken();
  const ann = client();
  await speaking(ann);
  const raw = async (token: string): Promise<WebSocket> => {
    const socket = new WebSocket(url.replace('http', 'ws'), [
      'offstage.v1',
      `offstage.token.${Buffer.from(token).toString('base64url')}`,
    ]);
    await new Promise((resolve) => {
      socket.addEventListener('open', resolve, { once: true });
    });
    socket.send(JSON.stringify({ type: 'hello', v: 1, client: `raw ${token}` }));
    await new Promise((resolve) => {
      socket.addEventListener('message', resolve, { once: true });
    });
    return socket;
  };
  const notice = (frame: NoticeFrame): string => JSON.stringify(frame);
  const bob = await raw('bob');
  bob.send(notice({ type: 'microphone', sampleRateHz: 16_000 }));
  const packet = encodeSound({ ref: 0, samples: Int16Array.of(1, 2, 3) });
  bob.send(packet);
  const answered = new Promise((resolve) => {
    bob.addEventListener('message', ({ data }) => {
      if (String(data).includes('"own":true')) resolve(data);
    });
  });
  bob.send(notice({ type: 'voice.take' }));
  await answered;
  expect(heard).toEqual([]);
  bob.send(packet);
  await until(() => heard.length > 0);
  expect(heard).toEqual([{ samples: Int16Array.of(1, 2, 3), sampleRateHz: 16_000 }]);
  const eve = await raw('eve');
  const refused = new Promise((resolve) => {
    eve.addEventListener('message', ({ data }) => resolve(data));
  });
  eve.send(notice({ type: 'voice.take' }));
  expect(await refused).toBe('{"type":"voice","own":false}');
  expect(errors).toEqual([]);
  bob.close();
  eve.close();
});

test('does not offer a voice on a stream connection', async () => {
  const { client } = await spoken();
  const ann = client({ transport: 'stream' });
  await ann.status(({ state }) => state === 'open');
  expect(ann.it.status.get()).toMatchObject({ hasVoice: false, transport: 'stream' });
});
