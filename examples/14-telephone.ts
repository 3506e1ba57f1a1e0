// Usage: npm run example examples/14-telephone.ts
//
// The lead agent on the telephone, over Twilio Media Streams. Neither a telephone nor a key is needed: a script plays
// Twilio and the caller, a fake server is the voice model, and time is simulated. docs/telephone.md has the code for a
// real server; (*) marks the lines that are the same there.

import { z } from 'zod';
import { openaiRealtime } from 'offstage/openai-realtime';
import { acceptTwilioCall, streamTwiml, type TwilioSocket } from 'offstage/twilio';
import { defineSubagent, defineTool, VoiceSession } from 'offstage';
import { scriptedModel, simulatedEnvironment } from 'offstage/testing';
import { createVoiceServer } from 'offstage/testing/voice-server';

const environment = simulatedEnvironment();
const startedAt = environment.clock.now();
const log = (line: string): void => {
  const seconds = ((environment.clock.now() - startedAt) / 1000).toFixed(1);
  console.log(`${seconds.padStart(5)} s  ${line}`);
};

/**
 * Stands in for Twilio and a phone: plays the audio it receives, and echoes each mark when playback reaches it.
 */
class Telephone implements TwilioSocket {
  playedMs = 0;
  #tell: (data: string, isBinary: boolean) => void = () => {};
  #queue: { event: string; media?: { payload: string }; mark?: object }[] = [];
  #cancel: (() => void) | null = null;

  on(event: string, listener: (...values: never[]) => void): void {
    if (event === 'message') this.#tell = listener as (data: string, isBinary: boolean) => void;
  }

  tell(event: string, content: object = {}): void {
    this.#tell(JSON.stringify({ event, streamSid: 'MZ1', ...content }), false);
  }

  send(text: string): void {
    const message = JSON.parse(text) as { event: string };
    if (message.event === 'clear') {
      log('(Twilio drops what it has not played)');
      this.#cancel?.();
      this.#cancel = null;
      const dropped = this.#queue.splice(0);
      for (const { mark } of dropped) if (mark) this.tell('mark', { mark });
    } else this.#queue.push(message);
    this.#play();
  }

  close(_code: number, reason: string): void {
    log(`(the call is over: ${reason})`);
  }

  #play(): void {
    if (this.#cancel) return;
    const [next] = this.#queue;
    if (!next) return;
    const ms = next.media ? Buffer.from(next.media.payload, 'base64').length / 8 : 0;
    this.#cancel = environment.scheduler.schedule(() => {
      this.#cancel = null;
      this.#queue.shift();
      this.playedMs += ms;
      if (next.mark) this.tell('mark', { mark: next.mark });
      this.#play();
    }, ms);
  }
}

// The voice model answers from a script. It cannot hear speech, so the program passes the caller's words below.
const server = createVoiceServer({
  environment,
  respond: ({ cause, instructions, model: { items } }) => {
    // The model must speak a text that is not a reply.
    if (instructions !== null) {
      const result = /"result":"(.*?)\.?"/.exec(JSON.stringify(items).replaceAll('\\', ''))?.[1];
      return [{ say: `By the way: ${result ?? 'news'}.` }];
    }
    if (cause.type === 'utterance' && cause.text.includes('report'))
      return [{ say: 'I am on it.' }, { call: 'generate_report', arguments: { quarter: 'Q4' } }];
    return [{ say: 'This is your assistant.' }];
  },
});

const session = new VoiceSession({
  environment,
  transport: openaiRealtime({ apiKey: 'a-key', webSocket: server.webSocket }),
  model: scriptedModel({
    environment,
    agents: { generate_report: () => ({ text: '42 sales in Q4', delayMs: 6000 }) },
  }),
  agents: [
    {
      name: 'lead',
      instructions: 'You are on the telephone: be short.',
      tools: [
        defineTool({
          name: 'generate_report',
          description: 'Generate the sales report of a quarter',
          parameters: z.object({ quarter: z.string() }),
          execution: 'background',
        }),
      ],
    },
  ],
  subagentConfigs: {
    generate_report: defineSubagent({
      name: 'reporter',
      instructions: 'Write reports.',
      tools: {},
    }),
  },
});
session.transcript.subscribe(({ role, text, final, interrupted }) => {
  if (final) log(`${role}: ${text}${interrupted ? ' … (broken off)' : ''}`);
});
session.notifications.subscribe(({ state, attempts }) => {
  if (state === 'delivered') log(`(the result was heard, at attempt ${attempts})`);
});

// The response to the telephone number's webhook (*).
console.log(streamTwiml('wss://example.com/call', { customer: '7' }));

const telephone = new Telephone();
// The WebSocket server calls this function for each socket (*).
const accepted = acceptTwilioCall(telephone, { environment });
telephone.tell('connected');
telephone.tell('start', {
  start: {
    accountSid: 'AC1',
    callSid: 'CA1',
    customParameters: { customer: '7' },
    mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
  },
});
const call = await accepted;
log(`(call ${call.callSid} of customer ${call.customParameters['customer']})`);
call.connect(session);
const isStarted = session.start();
await environment.advance(100);
await isStarted;

/** The caller speaks and then listens. */
async function say(text: string, listenMs: number): Promise<void> {
  void server.connections[0]?.user.says(text);
  for (let ms = 0; ms < listenMs; ms += 20) {
    // The telephone sends audio all the time; here it sends silence.
    const payload = Buffer.alloc(160, 0xff).toString('base64');
    telephone.tell('media', { media: { track: 'inbound', payload } });
    await environment.advance(20);
  }
}

await say('I need the sales report', 8700);
await say('Wait, who is this?', 8000);
telephone.tell('stop');
log(
  `(the caller hung up: ${await call.ended}; ${Math.round(telephone.playedMs / 1000)} s were played)`,
);
const isClosed = session.close();
await environment.advance(60_000);
await isClosed;
await server.close();
