import { describe, expect, test } from 'vitest';
import type { TransportCommand } from '../../../src/voice/connection/transport.ts';
import { API_KEY, Call, startCall } from './support/call.ts';

describe('the URL', () => {
  test('names the API version, and sends the key only in a header', () => {
    const { peer } = new Call();
    expect(peer.url).toBe(
      'wss://generativelanguage.googleapis.com/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent',
    );
    expect(peer.options.headers).toEqual({ 'x-goog-api-key': API_KEY });
  });

  test('accepts an ephemeral token at the endpoint that supports tokens', () => {
    const { peer } = new Call({ ephemeralToken: 'auth_tokens/0123456789' });
    expect(peer.url).toMatch(
      /v1alpha\.GenerativeService\.BidiGenerateContentConstrained\?access_token=auth_tokens\/0123456789$/,
    );
    expect(peer.options.headers).toEqual({});
  });
});

describe('the setup', () => {
  test('comes first, with the fields that every session needs', () => {
    const { peer } = new Call();
    peer.open();
    expect(peer.said).toEqual([
      {
        setup: {
          model: 'models/gemini-3.8-live',
          generationConfig: { responseModalities: ['AUDIO'] },
          systemInstruction: { parts: [{ text: 'Be brief.' }] },
          tools: [
            {
              functionDeclarations: [
                {
                  name: 'book_ride',
                  description: 'Books a ride',
                  parametersJsonSchema: {
                    type: 'object',
                    properties: { to: { type: 'string' }, when: {} },
                  },
                  behavior: 'NON_BLOCKING',
                },
              ],
            },
          ],
          inputAudioTranscription: {},
          outputAudioTranscription: {},
          sessionResumption: {},
          contextWindowCompression: { slidingWindow: {} },
        },
      },
    ]);
    expect(JSON.stringify(peer.said)).not.toContain(API_KEY);
  });

  test('maps every option to its field', () => {
    const { peer } = new Call({
      model: 'models/gemini-2.5-flash-native-audio-preview-12-2025',
      voice: 'Kore',
      language: 'de-DE',
      temperature: 0.5,
      maxOutputTokens: 400,
      thinking: { budget: 0 },
      voiceActivity: {
        startSensitivity: 'low',
        endSensitivity: 'high',
        prefixPaddingMs: 20,
        silenceDurationMs: 400,
        interrupts: false,
        turnCoverage: 'all_input',
      },
      transcription: { languages: ['de-DE'], vocabulary: ['Offstage'] },
      compression: { triggerTokens: 50_000, targetTokens: 20_000 },
      transparentResumption: true,
    });
    peer.open();
    expect(peer.said[0]).toMatchObject({
      setup: {
        model: 'models/gemini-2.5-flash-native-audio-preview-12-2025',
        generationConfig: {
          speechConfig: {
            voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } },
            languageCode: 'de-DE',
          },
          temperature: 0.5,
          maxOutputTokens: 400,
          thinkingConfig: { thinkingBudget: 0 },
        },
        realtimeInputConfig: {
          automaticActivityDetection: {
            startOfSpeechSensitivity: 'START_SENSITIVITY_LOW',
            endOfSpeechSensitivity: 'END_SENSITIVITY_HIGH',
            prefixPaddingMs: 20,
            silenceDurationMs: 400,
          },
          activityHandling: 'NO_INTERRUPTION',
          turnCoverage: 'TURN_INCLUDES_ALL_INPUT',
        },
        inputAudioTranscription: { languageCodes: ['de-DE'], customVocabulary: ['Offstage'] },
        sessionResumption: { transparent: true },
        contextWindowCompression: {
          triggerTokens: '50000',
          slidingWindow: { targetTokens: '20000' },
        },
      },
    });
  });

  test.each(['gemini-3.1-flash-live-preview', 'gemini-9-live'])(
    'omits `behavior` for %s, which may not support it',
    (model) => {
      const { peer } = new Call({ model });
      peer.open();
      expect(JSON.stringify(peer.said[0])).not.toContain('behavior');
    },
  );

  test('requests the lowest thinking level from a model that needs one', () => {
    const { peer } = new Call({ model: 'gemini-3.8-live-extended-thinking' });
    peer.open();
    expect(peer.said[0]).toMatchObject({
      setup: { generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' } } },
    });
  });
});

describe('a connection', () => {
  test('becomes ready at setupComplete, and then sends buffered audio and messages', async () => {
    const call = new Call();
    call.peer.open();
    call.hears();
    call.connection.send({ type: 'message.add', itemId: 'n', role: 'system', text: 'Rain.' });
    await call.settle();
    expect(call.peer.said).toHaveLength(1);
    call.says({ setupComplete: {} });
    await call.settle();
    expect(call.events).toEqual([{ type: 'transport.ready' }]);
    expect(call.peer.frames[1]).toMatch(
      /^\{"realtimeInput":\{"audio":\{"data":"A+=*","mimeType":"audio\/pcm;rate=16000"\}\}\}$/,
    );
    expect(call.peer.news().slice(1)).toEqual([
      {
        clientContent: {
          turns: [{ role: 'user', parts: [{ text: '[note] Rain.' }] }],
          turnComplete: false,
        },
      },
    ]);
  });

  test('closes with a retryable error when it is not ready in time', async () => {
    const call = new Call({ connectTimeoutMs: 500 });
    call.peer.open();
    await call.advance(500);
    expect(call.events).toEqual([
      expect.objectContaining({ type: 'transport.closed', retryable: true }),
    ]);
  });
});

describe('the conversation so far', () => {
  const past: readonly TransportCommand[] = [
    { type: 'message.add', itemId: 'u1', role: 'user', text: 'A taxi to the airport.' },
    { type: 'tool.recall', callId: 'c1', name: 'book_ride', arguments: '{"to":"airport"}' },
    { type: 'tool.recall', callId: 'c2', name: 'weather', arguments: '{}' },
    { type: 'tool.answer', callId: 'c2', output: 'Rain.' },
    { type: 'message.add', itemId: 'a1', role: 'assistant', text: 'I am on it.' },
  ];

  async function reconnected(model: string) {
    const call = new Call({ model }, { history: () => past });
    call.peer.open();
    call.hears();
    call.says({ setupComplete: {} });
    await call.settle();
    return call;
  }

  test('arrives as a complete turn before any audio, with open calls as text', async () => {
    const { peer, events } = await reconnected('gemini-3.1-flash-live-preview');
    expect(peer.said[0]).toMatchObject({
      setup: { historyConfig: { initialHistoryInClientContent: true } },
    });
    const [, history, audio] = peer.said;
    expect(history).toMatchObject({
      clientContent: {
        turnComplete: true,
        turns: [
          { role: 'user', parts: [{ text: 'A taxi to the airport.' }] },
          { role: 'user', parts: [{ text: expect.stringMatching(/c1.*book_ride.*airport/) }] },
          { role: 'user', parts: [{ text: expect.stringMatching(/c2.*weather/) }] },
          { role: 'user', parts: [{ text: expect.stringMatching(/c2.*weather.*Rain/) }] },
          { role: 'model', parts: [{ text: 'I am on it.' }] },
        ],
      },
    });
    expect(audio).toHaveProperty('realtimeInput.audio');
    expect(events).toEqual([{ type: 'transport.ready', told: true }]);
  });

  test('leaves the turn open for a model that does not wait for the history', async () => {
    const { peer } = await reconnected('gemini-2.5-flash-native-audio-latest');
    expect(peer.said[0]).not.toHaveProperty('setup.historyConfig');
    expect(peer.said[1]).toHaveProperty('clientContent.turnComplete', false);
  });

  test('does not need a message if it is empty', () => {
    const { peer } = new Call({}, { history: () => [] });
    peer.open();
    peer.says({ setupComplete: {} });
    expect(peer.said).toHaveLength(1);
    expect(peer.said[0]).not.toHaveProperty('setup.historyConfig');
  });

  test('TOOL-CALLS-4: includes the answer to an earlier call as text', async () => {
    const call = await reconnected('gemini-3.8-live');
    call.peer.news();
    const said = await call.sends({ type: 'tool.answer', callId: 'c1', output: 'Booked.' });
    expect(JSON.stringify(said)).toMatch(/c1.*book_ride.*Booked/);
    expect(said[0]).toHaveProperty('clientContent.turnComplete', false);
  });
});

describe('the end of a connection', () => {
  test.each([
    [1000, 'bye', false],
    [1006, '', true],
    [1007, 'Request contains an invalid argument', true],
    [1008, 'Operation is not implemented', true],
    [1011, 'Internal error', true],
  ])('reports whether code %i after ready is retryable: %s', async (code, reason, retryable) => {
    const call = await startCall();
    call.peer.close(code, reason);
    expect(call.events.at(-1)).toMatchObject({ type: 'transport.closed', code, retryable });
  });

  test.each([
    [1007, 'API key not valid. Please pass a valid API key.', false],
    [1008, 'models/gemini-0 is not found', false],
    [1011, 'Internal error', true],
  ])('reports code %i before ready as: %s', (code, reason, retryable) => {
    const call = new Call();
    call.peer.open();
    call.peer.close(code, reason);
    expect(call.events.at(-1)).toMatchObject({ type: 'transport.closed', code, retryable });
  });

  test('SOCKET-CONNECTION-5: hides a key that the server quotes', () => {
    const call = new Call();
    call.peer.open();
    call.peer.close(1007, `API key ${API_KEY} not valid`);
    expect(JSON.stringify(call.events)).not.toContain(API_KEY);
    expect(JSON.stringify(call.events)).toContain('[redacted]');
  });

  test('remains retryable after a goAway message', async () => {
    const call = await startCall();
    call.says({ goAway: { timeLeft: '9.5s' } });
    expect(call.news()).toEqual([{ type: 'transport.expiring', inMs: 9_500 }]);
    call.peer.close(1000);
    expect(call.events.at(-1)).toMatchObject({ type: 'transport.closed', retryable: true });
  });
});

describe('unknown messages', () => {
  test('reports an unknown field once, and reads the rest of the message', async () => {
    const call = await startCall();
    const strange = '{"newThing":{},"serverContent":{"odd":1,"outputTranscription":{"text":"Hi"}}}';
    call.peer.saysRaw(strange);
    call.peer.saysRaw(strange);
    const errors = call.events.filter(({ type }) => type === 'transport.error');
    expect(errors.map((error) => 'message' in error && error.message)).toEqual([
      expect.stringContaining('`newThing`'),
      expect.stringContaining('`serverContent.odd`'),
    ]);
    expect(call.last('assistant.transcribed')).toMatchObject({ text: 'Hi' });
  });

  test.each(['no json', '[]', '{"toolCall":{"functionCalls":[{"id":7}]}}'])(
    'SOCKET-CONNECTION-1: reports %s without closing the connection',
    async (frame) => {
      const call = await startCall();
      call.peer.saysRaw(frame);
      expect(call.news()).toEqual([
        expect.objectContaining({ type: 'transport.error', code: 'MALFORMED_EVENT' }),
      ]);
    },
  );

  test('reports audio that cannot be decoded', async () => {
    const call = await startCall();
    call.says({
      serverContent: {
        modelTurn: {
          parts: [
            { inlineData: { data: 'AAA=', mimeType: 'audio/pcm' } },
            { inlineData: { data: 'A' } },
          ],
        },
      },
    });
    expect(call.frames).toHaveLength(1);
    call.says({ serverContent: { modelTurn: { parts: [{ inlineData: { data: 'AAAA' } }] } } });
    expect(call.last('transport.error')).toMatchObject({ code: 'MALFORMED_AUDIO' });
  });
});

describe('the microphone', () => {
  test('informs the server only once when the microphone has been silent for a second', async () => {
    const call = await startCall();
    call.hears();
    await call.advance(900);
    call.hears();
    await call.advance(999);
    expect(call.peer.news()).toEqual([]);
    await call.advance(1);
    expect(call.peer.news()).toEqual([{ realtimeInput: { audioStreamEnd: true } }]);
    await call.advance(5_000);
    expect(call.peer.news()).toEqual([]);
    call.hears();
    await call.advance(1_000);
    expect(call.peer.news()).toEqual([{ realtimeInput: { audioStreamEnd: true } }]);
  });
});
