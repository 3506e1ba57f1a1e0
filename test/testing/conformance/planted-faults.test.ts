// Tests the suite itself: faults are planted in a conformant transport, and each fault must make one case fail.

import { describe, expect, test } from 'vitest';
import { geminiLive } from '../../../src/adapters/gemini-live/index.ts';
import { openaiLive } from '../../../src/adapters/openai-live/index.ts';
import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';

import { transportConformance, type ConformanceSetup } from '../../../src/testing/index.ts';
import { voiceServerStage } from '../../../src/testing/voice-server/index.ts';
import { faulty, type Mangle } from './support/faulty-transport.ts';

const options = { apiKey: 'some-key', keepAliveMs: null } as const;

const realtime = voiceServerStage({
  wire: 'openai-realtime',
  transport: (webSocket) => openaiRealtime({ ...options, webSocket }),
});

const gemini = voiceServerStage({
  wire: 'gemini-live',
  transport: (webSocket) => geminiLive({ ...options, webSocket }),
});

const live = voiceServerStage({
  wire: 'openai-live',
  transport: (webSocket) => openaiLive({ ...options, webSocket }),
});

interface Planted {
  readonly fault: string;
  readonly mangle: () => Mangle;
  /** The start of the name of the case that finds the fault. */
  readonly found: string;
  readonly as: RegExp;
  readonly setup?: ConformanceSetup;
}

const planted: readonly Planted[] = [
  {
    fault: 'drops what the user said',
    mangle: () => ({
      event: (event) => (event.type === 'utterance.transcribed' && event.final ? [] : [event]),
    }),
    found: 'reply:',
    as: /it is answered/,
  },
  {
    fault: 'answers twice',
    mangle: () => {
      let times = 0;
      return {
        event: (event, send) => {
          const isReply =
            event.type === 'response.ended' && event.responseKey?.startsWith('reply') === true;
          if (isReply && event.status === 'completed' && times === 0) {
            times += 1;
            send({ type: 'response.request', responseKey: 'again' });
          }
          const isAgain =
            (event.type === 'response.started' || event.type === 'response.ended') &&
            event.responseKey === 'again';
          return [isAgain ? { ...event, responseKey: null } : event];
        },
      };
    },
    found: 'reply:',
    as: /three times/,
  },
  {
    fault: 'loses the answer of a tool',
    mangle: () => ({ command: (command) => (command.type === 'tool.answer' ? [] : [command]) }),
    found: 'inline call',
    as: /"It is noon" is heard/,
  },
  {
    fault: 'loses the answer of a tool',
    mangle: () => ({ command: (command) => (command.type === 'tool.answer' ? [] : [command]) }),
    found: 'call at the page: one of two',
    as: /"You are in Berlin" is heard/,
  },
  {
    fault: 'loses the answer of a tool',
    mangle: () => ({ command: (command) => (command.type === 'tool.answer' ? [] : [command]) }),
    found: 'request in pieces',
    as: /the task reads the rest/,
  },
  {
    fault: 'calls completed what was cancelled',
    setup: gemini,
    mangle: () => ({
      event: (event) =>
        event.type === 'response.ended' && event.status === 'cancelled'
          ? [{ ...event, status: 'completed', audio: shortened(event.audio) }]
          : [event],
    }),
    found: 'result on a turn that is then interrupted',
    as: /does not count as heard|P4: .* counts as heard/,
  },
  {
    fault: 'gives a response the key of another request',
    mangle: () => {
      const keys: string[] = [];
      const wrong = (key: string | null): string | null =>
        key === null ? null : (keys.at(keys.indexOf(key) - 1) ?? key);
      return {
        command: (command) => {
          if (command.type === 'response.request') keys.push(command.responseKey);
          return [command];
        },
        event: (event) =>
          event.type === 'response.started' || event.type === 'response.ended'
            ? [{ ...event, responseKey: wrong(event.responseKey) }]
            : [event],
      };
    },
    found: 'two results',
    as: /./,
  },
  {
    fault: 'forgets to truncate',
    mangle: () => ({
      command: (command) => (command.type === 'playout.truncate' ? [] : [command]),
    }),
    found: 'barge-in',
    as: /taken out of the memory/,
  },
  {
    fault: 'does not cancel',
    mangle: () => ({ command: (command) => (command.type === 'response.cancel' ? [] : [command]) }),
    found: 'sound after a cancel',
    as: /has stopped to make it/,
  },
  {
    fault: 'does not tag its sound',
    mangle: () => ({
      frame: ({ samples, sampleRateHz }) => ({ samples, sampleRateHz }),
    }),
    found: 'reply:',
    as: /./,
  },
  {
    fault: 'tells a new connection nothing of the past',
    mangle: () => {
      let connections = 0;
      return {
        event: (event) => {
          if (event.type === 'transport.ready') connections += 1;
          return [event];
        },
        command: (command) =>
          connections > 1 && command.type === 'message.add' && command.role === 'user'
            ? []
            : [command],
      };
    },
    found: 'reconnect: the model knows',
    as: /remembers the words of the user/,
  },
  {
    fault: 'gives a server up that has failed',
    setup: gemini,
    mangle: () => ({
      event: (event) =>
        event.type === 'transport.closed' ? [{ ...event, retryable: false }] : [event],
    }),
    found: 'server that fails without notice in the middle of a question that is open',
    as: /there is another connection/,
  },
  {
    fault: 'announces a call twice, each time by another id',
    mangle: () => ({
      event: (event) =>
        event.type === 'tool.called' ? [event, { ...event, callId: `${event.callId}_2` }] : [event],
    }),
    found: 'inline call',
    as: /run once/,
  },
  {
    fault: 'says that the user began when they have ended',
    mangle: () => {
      const begun: TransportEventOf<'utterance.started'>[] = [];
      return {
        event: (event) => {
          if (event.type === 'utterance.started') {
            begun.push(event);
            return [];
          }
          return event.type === 'utterance.ended' ? [...begun.splice(0), event] : [event];
        },
      };
    },
    found: 'barge-in',
    as: /silence within/,
  },
  {
    fault: 'speaks after its end',
    mangle: () => ({
      event: (event) =>
        event.type === 'transport.closed'
          ? [event, { type: 'model.changed', status: 'idle' }]
          : [event],
    }),
    found: 'reconnect: the model knows',
    as: /came after transport\.closed/,
  },
  {
    fault: 'does not hang up',
    mangle: () => ({ close: () => Promise.resolve() }),
    found: 'reply:',
    as: /left open/,
  },
  {
    fault: 'loses the words of the model',
    mangle: () => ({
      event: (event) => (event.type === 'assistant.transcribed' ? [] : [event]),
    }),
    found: 'urgent',
    as: /./,
  },
  {
    fault: 'does not know what it was asked to say of what it says after an answer by voice',
    mangle: () => {
      let isAnswered = false;
      return {
        event: (event) => {
          isAnswered ||= event.type === 'utterance.transcribed' && event.text.includes('premium');
          const isTold =
            isAnswered && (event.type === 'response.started' || event.type === 'response.ended');
          return [isTold ? { ...event, responseKey: null } : event];
        },
      };
    },
    found: 'answer by voice, an option',
    as: /is told/,
    setup: live,
  },
  {
    fault: 'says again what was heard after an answer by voice',
    mangle: () => {
      let hasSaidAgain = false;
      return {
        event: (event, send) => {
          const isOffer =
            event.type === 'response.ended' && event.responseKey?.includes('call_') === true;
          if (isOffer && event.status === 'completed' && !hasSaidAgain) {
            hasSaidAgain = true;
            const instructions = 'Tell the user: Your ride is booked';
            send({ type: 'response.request', responseKey: 'again', instructions });
          }
          const isAgain =
            (event.type === 'response.started' || event.type === 'response.ended') &&
            event.responseKey === 'again';
          return [isAgain ? { ...event, responseKey: null } : event];
        },
      };
    },
    found: 'answer by voice, an option',
    as: /is told once/,
  },
];

type TransportEventOf<Type extends string> = Extract<
  Parameters<NonNullable<Mangle['event']>>[0],
  { type: Type }
>;

/** Reports at most the audio that was heard, as if the model had produced no more. */
function shortened<Item extends { readonly durationMs: number }>(audio: readonly Item[]): Item[] {
  return audio.map((item) => ({ ...item, durationMs: Math.min(item.durationMs, 200) }));
}

function caseOf(setup: ConformanceSetup, name: string) {
  const found = transportConformance(setup).find((one) => one.name.startsWith(name));
  if (found === undefined) throw new Error(`No case begins with ${name}`);
  return found;
}

describe('a transport that', () => {
  test.each(planted)(
    'has $fault, found by: $found',
    async ({ mangle, found, as, setup = realtime }) => {
      await caseOf(setup, found).run();
      await expect(caseOf(faulty(setup, mangle), found).run()).rejects.toThrow(
        expect.objectContaining({ code: 'NOT_CONFORMANT', message: expect.stringMatching(as) }),
      );
    },
  );
});
