// A server with scripted parts, and its clients, all of which are closed when the test ends.

import { expect, onTestFinished } from 'vitest';
import {
  localVoice,
  type LocalVoiceAddress,
  type LocalVoiceOptions,
} from '../../../../src/adapters/local-voice/index.ts';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import { scriptedModel, type ModelStep, type ScriptedModel } from './scripted-model.ts';
import { scriptedSpeech, type ScriptedSpeech } from './scripted-speech.ts';
import { WireClient } from './wire-client.ts';

export interface Harness {
  readonly address: LocalVoiceAddress;
  readonly model: ScriptedModel;
  readonly speech: ScriptedSpeech;
  /** Adds a client. The official schemas check its events when the test ends. */
  connect(): Promise<WireClient>;
}

export interface HarnessOptions extends Partial<LocalVoiceOptions> {
  readonly answers?: ModelStep[][];
  /** The words that each loudness stands for. */
  readonly words?: Readonly<Record<number, string>>;
}

export async function startHarness({
  answers = [],
  words,
  ...options
}: HarnessOptions = {}): Promise<Harness> {
  const model = scriptedModel(...answers);
  const speech = scriptedSpeech(words);
  const voice = localVoice({ model, speech, environment: nodeEnvironment(), ...options });
  const clients: WireClient[] = [];
  onTestFinished(async () => {
    await voice.close();
    for (const client of clients) expect(client.invalid).toEqual([]);
  });
  const address = await voice.start();
  return {
    address,
    model,
    speech,
    connect: async () => {
      const client = await WireClient.connect(address);
      clients.push(client);
      return client;
    },
  };
}

/** A promise and its key. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** The session that most tests use: no automatic actions, and text instead of audio. */
export const textOnly = {
  type: 'session.update',
  session: { type: 'realtime', output_modalities: ['text'] },
} as const;

export function userSays(text: string): Record<string, unknown> {
  return {
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
  };
}
