// `node bench/local-voice.ts`: how long a user of the local voice waits for the first sound, in stages. Sentences in
// voices other than the server's are sent in real time to a real server (detector, transcriber, voice) whose language
// model answers at once.
//
//   wait      from the end of the user's voice to the end of the turn, in the time of the sound
//   words     from the end of the turn until the words are known
//   voice     from the end of the turn until the first piece of the answer arrives
//   silence   before the first sound in that piece, in the time of the sound
//
// The bench compares the server with a variant that only waits for silence and transcribes afterwards.

import { WebSocket } from 'ws';
import { localVoice, type HearingOptions } from '../src/adapters/local-voice/index.ts';
import { nodeEnvironment } from '../src/adapters/node/index.ts';
import { decodePcm16Base64, encodePcm16Base64 } from '../src/voice/audio/pcm16.ts';
import { scriptedModel } from '../src/testing/index.ts';
import { speak } from '../test/support/speech/speak.ts';
import { percentile } from './lib/statistics.ts';

const RATE_HZ = 24_000;
const FRAME_MS = 20;
const FRAME = (RATE_HZ * FRAME_MS) / 1000;
const LOUD = 328;
const environment = nodeEnvironment();

const question = {
  kind: 'choice',
  options: ['Economy', 'Premium', 'Van'].map((label) => ({ id: label, label })),
};
const sentences = [
  { text: 'Premium, please.', question },
  { text: 'Economy.', question },
  { text: 'Make me a sales report for last week.', question: null },
  { text: 'What is the weather in Berlin tomorrow?', question: null },
  { text: 'Book me a ride to the airport, please.', question: null },
  { text: 'How is the report going?', question: null },
];
const voices = ['rms', 'awb', 'kal16'];

const isLoud = (sample: number): boolean => Math.abs(sample) >= LOUD;
const later = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    environment.scheduler.schedule(resolve, ms);
  });

type Stages = Record<'wait' | 'words' | 'voice' | 'silence' | 'total', number[]>;

const noFigures = (): Stages => ({ wait: [], words: [], voice: [], silence: [], total: [] });

async function measure(
  detection: string,
  hearing: HearingOptions,
): Promise<{ readonly answer: Stages; readonly wish: Stages }> {
  const model = scriptedModel({
    environment,
    otherwise: () => ({ text: 'All right. One moment.' }),
  });
  const server = localVoice({ model, environment, hearing });
  const { url, apiKey } = await server.start();
  const all = { answer: noFigures(), wish: noFigures() };
  for (const voice of voices)
    for (const sentence of sentences) {
      const speech = await speak(sentence.text, { voice });
      const voiceEnd = 1_000 + ((speech.findLastIndex(isLoud) + 1) * 1000) / RATE_HZ;
      const sound = new Int16Array(speech.length + 4 * RATE_HZ);
      sound.set(speech, RATE_HZ);
      const socket = new WebSocket(url, { headers: { authorization: `Bearer ${apiKey}` } });
      const send = (event: unknown): void => socket.send(JSON.stringify(event));
      let stopped = { at: 0, endMs: 0 };
      let wordsAt = 0;
      const heard = new Promise<{ at: number; silenceMs: number }>((resolve) => {
        socket.on('message', (data: Buffer) => {
          const event = JSON.parse(data.toString()) as Record<string, unknown>;
          const at = performance.now();
          if (event['type'] === 'input_audio_buffer.speech_stopped')
            stopped = { at, endMs: Number(event['audio_end_ms']) };
          if (event['type'] === 'conversation.item.input_audio_transcription.completed')
            wordsAt = at;
          if (event['type'] !== 'response.output_audio.delta') return;
          const first = decodePcm16Base64(String(event['delta'])).findIndex(isLoud);
          resolve({ at, silenceMs: (Math.max(0, first) * 1000) / RATE_HZ });
        });
      });
      await new Promise((resolve) => socket.on('open', resolve));
      const input = { transcription: { model: 'any' }, turn_detection: { type: detection } };
      send({ type: 'session.update', session: { type: 'realtime', audio: { input } } });
      send({ type: 'session.open_question', question: sentence.question });
      let isOver = false;
      const from = performance.now();
      const sending = async (): Promise<void> => {
        for (let start = 0; start < sound.length && !isOver; start += FRAME) {
          const audio = encodePcm16Base64(sound.slice(start, start + FRAME));
          send({ type: 'input_audio_buffer.append', audio });
          await later(from + ((start + FRAME) * 1000) / RATE_HZ - performance.now());
        }
      };
      const sent = sending();
      const { at, silenceMs } = await heard;
      isOver = true;
      await sent;
      socket.close();
      const stages = all[sentence.question ? 'answer' : 'wish'];
      stages.wait.push(stopped.endMs - voiceEnd);
      stages.words.push(Math.max(0, wordsAt - stopped.at));
      stages.voice.push(at - stopped.at);
      stages.silence.push(silenceMs);
      stages.total.push(stopped.endMs - voiceEnd + (at - stopped.at) + silenceMs);
    }
  await server.close();
  return all;
}

for (const [name, detection, hearing] of [
  ['silence alone, words afterwards', 'server_vad', { transcribeAfterMs: null }],
  ['as it is', 'semantic_vad', {}],
] as const) {
  for (const [to, stages] of Object.entries(await measure(detection, hearing)))
    for (const [stage, figures] of Object.entries(stages)) {
      const [p50Ms, p95Ms] = [percentile(figures, 0.5), percentile(figures, 0.95)].map(Math.round);
      console.log(JSON.stringify({ name, to, stage, n: figures.length, p50Ms, p95Ms }));
    }
}
