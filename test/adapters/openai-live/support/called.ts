// A connection to an in-memory peer, with logs of its events.

import { openaiLive, type OpenaiLiveOptions } from '../../../../src/adapters/openai-live/index.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';
import type { AudioFrame } from '../../../../src/voice/audio/audio-frame.ts';
import type {
  TransportCommand,
  TransportContext,
  TransportEvent,
} from '../../../../src/voice/connection/transport.ts';
import { configuration } from '../../support/configuration.ts';
import { memorySockets, type Peer } from './peer.ts';

export const API_KEY = 'sk-test-0123456789abcdef';

type EventOf<Type extends TransportEvent['type']> = Extract<TransportEvent, { type: Type }>;

/** Dials; the socket is not open yet. */
export function dial(
  options: OpenaiLiveOptions = {},
  context: Omit<TransportContext, 'environment'> = {},
  /** What the session did at once. */
  react: (event: TransportEvent) => void = () => {},
) {
  const { peers, webSocket } = memorySockets();
  const environment = simulatedEnvironment();
  const transport = openaiLive({ apiKey: API_KEY, webSocket, keepAliveMs: null, ...options });
  const connection = transport.connect(configuration, { environment, ...context });
  const events: TransportEvent[] = [];
  const frames: AudioFrame[] = [];
  let isComplete = false;
  connection.events.subscribe({
    next: (event) => {
      events.push(event);
      react(event);
    },
    complete: () => {
      isComplete = true;
    },
  });
  connection.audio.subscribe((frame) => frames.push(frame));
  const call = {
    environment,
    transport,
    connection,
    peers,
    events,
    frames,
    get peer(): Peer {
      const peer = peers.at(-1);
      if (!peer) throw new Error('Nobody was called');
      return peer;
    },
    get isComplete() {
      return isComplete;
    },
    send: (command: TransportCommand) => connection.send(command),
    advance: (ms: number) => environment.advance(ms),
    of: <Type extends TransportEvent['type']>(type: Type): EventOf<Type>[] =>
      events.filter((event): event is EventOf<Type> => event.type === type),
    /** Returns the events since the last call in short form. */
    news: (): readonly string[] => events.splice(0).map(inShort),
    /** Asks the model to speak. */
    request: (responseKey: string, instructions?: string, insist?: boolean) =>
      connection.send({
        type: 'response.request',
        responseKey,
        ...(instructions !== undefined && { instructions }),
        ...(insist !== undefined && { insist }),
      }),
  };
  return call;
}

export type Call = ReturnType<typeof dial>;

/** A call whose session has started. */
export function startCall(...args: Parameters<typeof dial>) {
  const call = dial(...args);
  call.peer.opens();
  call.peer.starts();
  call.events.splice(0);
  return call;
}

/** Returns 20 ms of the user's audio. */
export function userFrame(level = 1, ms = 20, sampleRateHz = 24_000): AudioFrame {
  return { samples: new Int16Array((ms * sampleRateHz) / 1000).fill(level), sampleRateHz };
}

type InShort = { [Type in TransportEvent['type']]?: (event: EventOf<Type>) => string };

const inShortByType: InShort = {
  'response.started': ({ responseKey }) => `started ${responseKey ?? '-'}`,
  'response.ended': ({ audio, reason, responseKey, status }) => {
    const ms = audio.reduce((sum, { durationMs }) => sum + durationMs, 0);
    const why = reason === null ? '' : ` (${reason})`;
    return `ended ${responseKey ?? '-'} ${status}${why} ${ms}`;
  },
  'assistant.transcribed': ({ text, final }) => `${final ? 'said' : 'says'} "${text}"`,
  'utterance.started': ({ audioStartMs }) => `user begins at ${audioStartMs}`,
  'utterance.ended': () => 'user ends',
  'utterance.transcribed': ({ text, final }) => `user ${final ? 'said' : 'says'} "${text}"`,
  'delegation.created': ({ delegationId }) => `delegates ${delegationId}`,
  'transport.error': ({ code, responseKey }) => `error ${code} ${responseKey ?? '-'}`,
};

function inShort(event: TransportEvent): string {
  const tell = inShortByType[event.type] as ((event: TransportEvent) => string) | undefined;
  return tell?.(event) ?? event.type;
}
