// The official client sends the same messages for the same requests. Its converters check and shape each message that
// the adapter builds by hand.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import {
  Behavior,
  FunctionResponseScheduling,
  GoogleGenAI,
  Modality,
  StartSensitivity,
  ThinkingLevel,
  type LiveConnectConfig,
  type Session,
} from '@google/genai';
import { onTestFinished, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { traitsOf } from '../../../src/adapters/gemini-live/models.ts';
import { checkOptions, sessionOf } from '../../../src/adapters/gemini-live/options.ts';
import * as wire from '../../../src/adapters/gemini-live/wire.ts';
import { configuration } from '../support/configuration.ts';
import { API_KEY } from './support/call.ts';

/** Opens a session with the official client and collects its messages. */
async function official(model: string, config: LiveConnectConfig) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  const said: unknown[] = [];
  server.on('connection', (socket) => {
    socket.on('message', (data: Buffer) => {
      said.push(JSON.parse(data.toString()));
      if (said.length === 1) socket.send(JSON.stringify({ setupComplete: {} }));
      else socket.emit('said');
    });
  });
  const { port } = server.address() as AddressInfo;
  const client = new GoogleGenAI({
    apiKey: API_KEY,
    httpOptions: { baseUrl: `http://127.0.0.1:${port}` },
  });
  const session = await client.live.connect({ model, config, callbacks: { onmessage: () => {} } });
  onTestFinished(() => session.close());
  return {
    setup: said[0],
    /** Returns the message that `speak` makes the client send. */
    async says(speak: (session: Session) => void): Promise<unknown> {
      const [socket] = server.clients;
      if (socket === undefined) throw new Error('No client');
      const spoken = once(socket, 'said');
      speak(session);
      await spoken;
      return said.at(-1);
    },
  };
}

const asJson = (message: unknown): unknown => JSON.parse(JSON.stringify(message));

test('sends the same setup as the official client', async () => {
  const given = checkOptions({
    model: 'gemini-3.8-live-extended-thinking',
    voice: 'Kore',
    language: 'de-DE',
    temperature: 0.5,
    maxOutputTokens: 400,
    thinking: { level: 'high' },
    voiceActivity: { startSensitivity: 'low', silenceDurationMs: 400 },
    transcription: { languages: ['de-DE'] },
    compression: { triggerTokens: 50_000 },
  });
  const { settings, traits } = sessionOf(given);
  const ours = wire.setup(settings, configuration, {
    toolBehavior: traits.duringCall === 'goes_on' ? 'NON_BLOCKING' : null,
    beginsWithHistory: false,
    handle: 'h1',
  });
  const { setup } = await official('gemini-3.8-live-extended-thinking', {
    responseModalities: [Modality.AUDIO],
    speechConfig: {
      voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } },
      languageCode: 'de-DE',
    },
    temperature: 0.5,
    maxOutputTokens: 400,
    thinkingConfig: { thinkingLevel: ThinkingLevel.HIGH },
    systemInstruction: { parts: [{ text: configuration.instructions }] },
    tools: [
      {
        functionDeclarations: configuration.tools.map(({ name, description, parameters }) => ({
          name,
          description,
          parametersJsonSchema: parameters,
          behavior: Behavior.NON_BLOCKING,
        })),
      },
    ],
    realtimeInputConfig: {
      automaticActivityDetection: {
        startOfSpeechSensitivity: StartSensitivity.START_SENSITIVITY_LOW,
        silenceDurationMs: 400,
      },
    },
    inputAudioTranscription: { languageCodes: ['de-DE'] },
    outputAudioTranscription: {},
    sessionResumption: { handle: 'h1' },
    contextWindowCompression: { triggerTokens: '50000', slidingWindow: {} },
  });
  expect(asJson(ours)).toEqual(setup);
});

test('sends every later message in the same form as the official client', async () => {
  const { says } = await official('gemini-3.8-live', {});
  const turns = [{ role: 'user' as const, parts: [{ text: 'Hello.' }] }];
  expect(
    await says((session) => session.sendClientContent({ turns, turnComplete: false })),
  ).toEqual(asJson(wire.clientContent(turns, false)));
  expect(await says((session) => session.sendClientContent({}))).toEqual(
    asJson(wire.clientContent([], true)),
  );
  const response = { id: 'c1', name: 'book_ride', response: { output: 'Booked.' } };
  expect(
    await says((session) =>
      session.sendToolResponse({
        functionResponses: [{ ...response, scheduling: FunctionResponseScheduling.SILENT }],
      }),
    ),
  ).toEqual(asJson(wire.toolResponse([{ ...response, scheduling: 'SILENT' }])));
  const audio = { data: 'AAAA', mimeType: 'audio/pcm;rate=16000' };
  expect(await says((session) => session.sendRealtimeInput({ audio }))).toEqual(
    JSON.parse(wire.audioText('AAAA')),
  );
  const video = { data: 'AAAA', mimeType: 'image/png' };
  expect(await says((session) => session.sendRealtimeInput({ video }))).toEqual(
    asJson(wire.realtimePicture('image/png', 'AAAA')),
  );
  expect(await says((session) => session.sendRealtimeInput({ text: 'Speak.' }))).toEqual(
    asJson(wire.realtimeText('Speak.')),
  );
  expect(await says((session) => session.sendRealtimeInput({ audioStreamEnd: true }))).toEqual(
    asJson(wire.audioStreamEnd()),
  );
  const systemInstruction = { parts: [{ text: configuration.instructions }] };
  const [{ name, description, parameters } = { name: '', description: '', parameters: {} }] =
    configuration.tools;
  const declaration = { name, description, parametersJsonSchema: parameters };
  const tools = { tools: [{ functionDeclarations: [declaration] }] };
  expect(await says((session) => session.sendContextUpdate({ systemInstruction, tools }))).toEqual(
    asJson(wire.contextUpdate(configuration, null)),
  );
});

test('sends transparent resumption only on request, because the official client refuses it', async () => {
  const { settings } = sessionOf(checkOptions({}));
  expect(settings.transparentResumption).toBe(false);
  await expect(
    official('gemini-3.8-live', { sessionResumption: { transparent: true } }),
  ).rejects.toThrow(/transparent/);
  expect(traitsOf('gemini-3.8-live').family).toBe('3.8 live');
});
