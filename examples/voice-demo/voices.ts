// Which voice the demo talks with: what `TRANSPORT` names, else OpenAI Realtime with a key
// of OpenAI's, else the local voice. A voice that this machine cannot use is refused before
// anything starts, with what it lacks.

import { ConfigurationError, type Transport } from 'offstage';
import { examine, thisMachine, type Machine } from 'offstage/doctor';
import { geminiLive } from 'offstage/gemini-live';
import { openaiLive } from 'offstage/openai-live';
import { openaiRealtime } from 'offstage/openai-realtime';

export type Variables = Readonly<Record<string, string | undefined>>;

/** As the doctor names them, and `offstage/<name>`. */
const VOICES = ['openai-realtime', 'openai-live', 'gemini-live', 'local-voice'] as const;

export type VoiceName = (typeof VOICES)[number];
/** Voices whose model listens, thinks and speaks on a server of its own. */
export type RemoteVoiceName = Exclude<VoiceName, 'local-voice'>;

export interface RemoteVoice {
  /** As people say it. */
  readonly title: string;
  readonly model: string;
}

const remoteVoices: Readonly<Record<RemoteVoiceName, RemoteVoice>> = {
  'openai-realtime': { title: 'OpenAI Realtime', model: 'gpt-realtime-2.1' },
  'openai-live': { title: 'OpenAI Live', model: 'gpt-live-1' },
  'gemini-live': { title: 'Gemini Live', model: 'gemini-3.8-live' },
};

/**
 * The voice that is wanted.
 * @param machine what it must be able to run on. @defaultValue this one
 * @throws {ConfigurationError} `UNKNOWN_TRANSPORT`, or `TRANSPORT_NOT_READY`: something is missing.
 */
export function chooseVoice(variables: Variables, machine: Machine = thisMachine()): VoiceName {
  const name = wantedVoice(variables);
  const [here, voice] = examine({ ...machine, variables }, [name]);
  const missing = [here, voice].flatMap((section) =>
    (section?.findings ?? []).flatMap(({ status, text }) => (status === 'missing' ? [text] : [])),
  );
  if (missing.length === 0) return name;
  throw new ConfigurationError(
    'TRANSPORT_NOT_READY',
    `The demo cannot talk through ${name}:\n${missing.map((text) => `  - ${text}`).join('\n')}\n` +
      `\`npm run doctor ${name}\` says what this machine has and lacks ` +
      `(in an app of yours: \`npx offstage doctor\`).`,
  );
}

function wantedVoice(variables: Variables): VoiceName {
  const wanted = variables['TRANSPORT'] || undefined;
  if (wanted === undefined) {
    // A model of the user's own gets speech around it.
    const isOpenai = Boolean(variables['OPENAI_API_KEY']) && !variables['OPENAI_BASE_URL'];
    return isOpenai ? 'openai-realtime' : 'local-voice';
  }
  const name = VOICES.find((voice) => voice === wanted);
  if (name !== undefined) return name;
  throw new ConfigurationError(
    'UNKNOWN_TRANSPORT',
    `Expected TRANSPORT to be one of ${VOICES.join(', ')}, got ${JSON.stringify(wanted)}`,
  );
}

/** `VOICE_MODEL` names another model than the usual one. */
export function remoteVoice(name: RemoteVoiceName, variables: Variables): RemoteVoice {
  const { title, model } = remoteVoices[name];
  return { title, model: variables['VOICE_MODEL'] || model };
}

/** @throws {ConfigurationError} what the adapter throws */
export function remoteTransport(name: RemoteVoiceName, variables: Variables): Transport {
  const { model } = remoteVoice(name, variables);
  const apiKey = variables['OPENAI_API_KEY'];
  switch (name) {
    case 'openai-realtime':
      return openaiRealtime({ model, apiKey, url: openaiAddress(variables, 'realtime') });
    case 'openai-live':
      return openaiLive({ model, apiKey, url: openaiAddress(variables, 'live/sessions') });
    case 'gemini-live': {
      const baseUrl = variables['GOOGLE_GEMINI_BASE_URL'] || undefined;
      return geminiLive({ model, apiKey: googleKey(variables), baseUrl });
    }
  }
}

/** As the adapter does it: the first one that is set. */
const googleKeys = ['GOOGLE_GENERATIVE_AI_API_KEY', 'GOOGLE_API_KEY', 'GEMINI_API_KEY'];

export function googleKey(variables: Variables): string | undefined {
  return googleKeys.map((name) => variables[name]).find(Boolean);
}

function openaiAddress(variables: Variables, path: string): string | undefined {
  const baseUrl = variables['OPENAI_BASE_URL'] || undefined;
  return baseUrl && `${baseUrl.replace(/\/+$/, '')}/${path}`;
}
