// `@google/genai` holds a conversation with the fake over a real socket, both with an API key and with a token that it
// has created.

import { GoogleGenAI, Modality, type LiveServerMessage, type Session } from '@google/genai';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createCollector, type Collector } from './support/collector.ts';
import { API_KEY, listening, silence } from './support/listening.ts';

const MODEL = 'gemini-3.8-live';

interface Call {
  readonly session: Session;
  readonly next: <Field extends keyof LiveServerMessage>(
    field: Field,
  ) => Promise<NonNullable<LiveServerMessage[Field]>>;
  readonly collector: Collector<LiveServerMessage>;
}

async function call(
  client: GoogleGenAI,
  config: Parameters<GoogleGenAI['live']['connect']>[0]['config'] = {},
): Promise<Call> {
  const collector = createCollector<LiveServerMessage>();
  const session = await client.live.connect({
    model: MODEL,
    config: {
      responseModalities: [Modality.AUDIO],
      inputAudioTranscription: {},
      outputAudioTranscription: {},
      sessionResumption: {},
      ...config,
    },
    callbacks: { onmessage: collector.add, onerror: () => undefined },
  });
  onTestFinished(() => session.close());
  return {
    session,
    collector,
    next: async (field) => {
      const message = await collector.next(field, (candidate) => candidate[field] !== undefined);
      return message[field] as never;
    },
  };
}

/** The transcript of the model's speech. */
function spoken({ collector }: Call): string {
  return collector.events
    .map(({ serverContent }) => serverContent?.outputTranscription?.text ?? '')
    .join('');
}

function turnEnd({ collector }: Call): Promise<LiveServerMessage> {
  return collector.next('end of turn', (message) => message.serverContent?.turnComplete === true);
}

test('handles a non-blocking call, silence, its result when idle and an interruption', async () => {
  const { server, address } = await listening();
  const client = new GoogleGenAI({
    apiKey: API_KEY,
    httpOptions: { baseUrl: address.baseUrl },
  });
  const { session, ...rest } = await call(client, {
    systemInstruction: 'You book rides.',
    tools: [{ functionDeclarations: [{ name: 'book_ride', description: 'Books.' }] }],
    contextWindowCompression: { triggerTokens: '25600', slidingWindow: {} },
  });
  const live = { session, ...rest };
  const model = await server.nextConnection();
  expect(model).toMatchObject({ wire: 'gemini-live', instructions: 'You book rides.' });
  expect(model.tools).toMatchObject([{ name: 'book_ride', description: 'Books.' }]);

  session.sendRealtimeInput({
    audio: { mimeType: 'audio/pcm;rate=16000', data: silence(200, 16_000) },
  });
  model.willAnswer(
    { call: 'book_ride', arguments: { to: 'airport' } },
    { say: 'On it.', durationMs: 100 },
  );
  await model.user.says('book me a ride', { durationMs: 10 });
  expect(model.heardMs).toBe(200);
  const { functionCalls } = await live.next('toolCall');
  expect(functionCalls).toEqual([
    { id: expect.any(String), name: 'book_ride', args: { to: 'airport' } },
  ]);
  const heard = live.collector.events
    .map(({ serverContent }) => serverContent?.inputTranscription?.text ?? '')
    .join('');
  expect(heard).toBe('book me a ride');
  expect((await turnEnd(live)).serverContent?.interactionStatus).toBe('IN_PROGRESS');
  expect(spoken(live)).toBe('On it.');

  const id = functionCalls?.[0]?.id ?? '';
  const answer = { id, name: 'book_ride', response: { output: 'Ada comes' } };
  session.sendToolResponse({
    functionResponses: [{ ...answer, scheduling: 'SILENT', willContinue: true } as never],
  });
  session.sendToolResponse({
    functionResponses: [{ ...answer, scheduling: 'WHEN_IDLE' } as never],
  });
  const end = await turnEnd(live);
  expect(end.serverContent?.interactionStatus).toBe('IDLE');
  expect(end.usageMetadata?.totalTokenCount).toBeGreaterThan(0);
  expect(spoken(live)).toBe('On it.The result is: {"output":"Ada comes"}');
  expect(model.items.filter(({ kind }) => kind === 'result')).toMatchObject([
    { scheduling: 'SILENT' },
    { scheduling: 'WHEN_IDLE' },
  ]);

  const long = model.answers({ say: 'A long story.', durationMs: 60_000 });
  await live.collector.next('sound', ({ serverContent }) => serverContent?.modelTurn !== undefined);
  model.user.begins();
  await live.collector.next(
    'interrupted',
    (message) => message.serverContent?.interrupted === true,
  );
  await turnEnd(live);
  expect(long.status).toBe('cancelled');
  model.user.ends('stop');
  await turnEnd(live);
  expect(spoken(live)).toContain('You said: stop');
  expect(await live.next('sessionResumptionUpdate')).toMatchObject({ resumable: true });
});

test('handles content, changed instructions and tools, and a resumption', async () => {
  const { server, address } = await listening();
  const client = new GoogleGenAI({ apiKey: API_KEY, httpOptions: { baseUrl: address.baseUrl } });
  const first = await call(client);
  const model = await server.nextConnection();
  first.session.sendClientContent({ turns: ['The user likes tea.'], turnComplete: false });
  first.session.sendClientContent({ turns: ['What does he like?'] });
  await turnEnd(first);
  expect(spoken(first)).toBe('What does he like?');
  first.session.sendContextUpdate({
    systemInstruction: 'Be brief.',
    tools: { tools: [{ functionDeclarations: [{ name: 'end_call' }] }] },
  });
  await model.next('contextUpdate');
  expect(model.instructions).toBe('Be brief.');
  expect(model.tools.map(({ name }) => name)).toEqual(['end_call']);
  const handles = first.collector.events.flatMap(
    ({ sessionResumptionUpdate }) => sessionResumptionUpdate?.newHandle ?? [],
  );
  first.session.close();

  const second = await call(client, { sessionResumption: { handle: handles.at(-1) ?? '' } });
  const resumed = await server.nextConnection();
  expect(resumed.items.map((item) => ('text' in item ? item.text : item.kind))).toEqual([
    'The user likes tea.',
    'What does he like?',
    'What does he like?',
  ]);
  second.session.sendRealtimeInput({ text: 'Hello.' });
  await turnEnd(second);
  expect(spoken(second)).toBe('Hello.');
});

test('restricts the session with a token that opens it only once', async () => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue(undefined);
  onTestFinished(() => warn.mockRestore());
  const { server, address } = await listening();
  const httpOptions = { baseUrl: address.baseUrl, apiVersion: 'v1alpha' };
  const minter = new GoogleGenAI({ apiKey: API_KEY, httpOptions });
  const token = await minter.authTokens.create({
    config: {
      uses: 1,
      liveConnectConstraints: { model: MODEL, config: { systemInstruction: 'Be kind.' } },
    },
  });
  expect(token.name).toMatch(/^auth_tokens\//);
  const browser = new GoogleGenAI({ apiKey: token.name ?? '', httpOptions });
  await call(browser, { systemInstruction: 'Be rude.' });
  const model = await server.nextConnection();
  expect(model.instructions).toBe('Be kind.');
  await expect(call(browser)).rejects.toThrow(/1007.*too many times/s);
});
