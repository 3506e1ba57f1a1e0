// The parts of the browser's Web Audio and media APIs that a client uses, and functions that open devices and audio
// contexts. The types are declared here because the rest of the package is compiled without browser types.

import { screen } from './screen.ts';

interface Port {
  postMessage(message: unknown, transfer?: readonly ArrayBufferLike[]): void;
  addEventListener(type: 'message', listener: (event: { readonly data: never }) => void): void;
  start(): void;
}

interface AudioNode {
  connect(to: unknown): void;
  disconnect(): void;
}

export interface WorkletNode extends AudioNode {
  readonly port: Port;
}

export interface AudioContextLike {
  readonly sampleRate: number;
  readonly state: string;
  readonly destination: unknown;
  readonly audioWorklet: { addModule(url: string | URL): Promise<void> };
  createMediaStreamSource(stream: MediaStreamLike): AudioNode;
  addEventListener(type: 'statechange', listener: () => void): void;
  resume(): Promise<void>;
  close(): Promise<void>;
}

export interface MediaStreamLike {
  getAudioTracks(): readonly {
    stop(): void;
    addEventListener(type: 'ended', listener: () => void): void;
  }[];
}

/** A microphone that the user can choose. */
export interface MicrophoneDevice {
  /** The device id to pass to `start`. */
  readonly deviceId: string;
  /** Empty until the user has granted access to the microphone. */
  readonly label: string;
}

interface BrowserAudio {
  /** False on an `http:` page that is not on localhost, because browsers offer no microphone or audio worklet there. */
  readonly isSecureContext?: boolean;
  readonly AudioContext?: new (options?: object) => AudioContextLike;
  readonly AudioWorkletNode?: new (
    context: AudioContextLike,
    name: string,
    options?: object,
  ) => WorkletNode;
  readonly navigator?: {
    readonly mediaDevices?: {
      getUserMedia(wanted: object): Promise<MediaStreamLike>;
      enumerateDevices(): Promise<readonly (MicrophoneDevice & { readonly kind: string })[]>;
    };
  };
}

/** In a browser, the type of `globalThis` has more members than `BrowserAudio`. */
const host: object = globalThis;
export const browser = host as BrowserAudio;

/**
 * Returns the URL of the worklet's file. `no-inline`: Vite would inline a small file as a `data:` URL, which a strict
 * Content-Security-Policy forbids.
 */
export function defaultWorkletUrl(): URL {
  return new URL('./worklet.js?no-inline', import.meta.url);
}

/** Opens a context with the worklet's processors. Rejects if the host has no audio. */
export async function openContext(
  workletUrl: string | URL,
  sampleRate?: number,
): Promise<AudioContextLike> {
  const { AudioContext } = browser;
  if (!AudioContext) throw new TypeError('This host has no AudioContext');
  const context = new AudioContext({
    latencyHint: 'interactive',
    ...(sampleRate !== undefined && { sampleRate }),
  });
  try {
    await context.audioWorklet.addModule(workletUrl);
    return context;
  } catch (error) {
    await context.close();
    throw error;
  }
}

/**
 * Calls the listener when the browser pauses a running context (for a hidden page, or for a call on iOS), and when the
 * context runs again. A paused context is resumed immediately and again when the page becomes visible, if the browser
 * allows it. Otherwise, a user gesture is needed. Returns a function that stops watching.
 */
export function watchContext(
  context: AudioContextLike,
  changed: (runs: boolean) => void,
): () => void {
  let runs = true;
  let isWatched = true;
  const resume = (): void => {
    if (!runs && isWatched) context.resume().catch(() => undefined);
  };
  context.addEventListener('statechange', () => {
    // The state is `interrupted` in Safari and `suspended` elsewhere.
    const runsNow = context.state === 'running';
    if (!isWatched || runsNow === runs) return;
    runs = runsNow;
    changed(runs);
    resume();
  });
  const unwatch = screen.onVisible(() => {
    if (screen.isVisible()) resume();
  });
  return () => {
    isWatched = false;
    unwatch();
  };
}

/** Closes a context. A second call has no effect. */
export function closeContext(context: AudioContextLike): void {
  context.close().catch(() => undefined);
}

export function workletNode(context: AudioContextLike, name: string, options: object): WorkletNode {
  const { AudioWorkletNode } = browser;
  if (!AudioWorkletNode) throw new TypeError('This host has no AudioWorkletNode');
  const node = new AudioWorkletNode(context, name, options);
  node.port.start();
  return node;
}
