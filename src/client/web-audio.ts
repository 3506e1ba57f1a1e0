// The part of the Web Audio and media APIs of a browser that a client uses, and what opens them. Declared here, because
// the rest of the package does without the types of a browser.

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

/** A microphone that the user may choose. */
export interface MicrophoneDevice {
  readonly deviceId: string;
  /** Empty until the user has allowed the microphone. */
  readonly label: string;
}

interface BrowserAudio {
  /** False on a page from `http:` that is not this machine: its browser gives no microphone, and no audio thread. */
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

/** Its own types in a browser have more. */
const host: object = globalThis;
export const browser = host as BrowserAudio;

/**
 * The file of the audio thread. `no-inline`: Vite would make a `data:` address of a small file, which a strict
 * Content-Security-Policy forbids.
 */
export function defaultWorkletUrl(): URL {
  return new URL('./worklet.js?no-inline', import.meta.url);
}

/** Opens a context with the processors of the worklet. Rejects where there is no sound. */
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
 * Calls back when the browser pauses a running context (a hidden page, a call on iOS), and when it runs again. A paused one
 * is resumed by itself where the browser allows it, at once or as the page is seen again; elsewhere a gesture is needed.
 * Returns what ends the watch.
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
    // `interrupted` in Safari, `suspended` elsewhere.
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

/** Closes a context, also one that is closed already. */
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
