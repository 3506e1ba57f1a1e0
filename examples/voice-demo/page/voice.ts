// Brings speaker, microphone and connection together: who may speak when, and what the
// server is told of it.

import { computed, effect, signal } from '@preact/signals';
import type { ClientMessage } from '../shared/protocol.ts';
import { KeptSound } from './audio/kept-sound.ts';
import { openMicrophone, type Microphone, type MicrophoneProblem } from './audio/microphone.ts';
import { openSpeaker, type Speaker } from './audio/speaker.ts';
import { Connection } from './connection.ts';
import { applyMessage, link, ownsVoice } from './store.ts';

/** How the user speaks: all the time, or while a button is held. */
export type TalkMode = 'open' | 'push';

/** `idle`: nothing was started. `blocked`: the browser wants a click before there is sound. */
export const stage = signal<'idle' | 'starting' | 'on' | 'blocked'>('idle');
export const microphone = signal<'off' | 'asking' | 'on' | MicrophoneProblem>('off');
export const talkMode = signal<TalkMode>(stored('talk-mode') === 'push' ? 'push' : 'open');
export const isMuted = signal(false);
export const isPushing = signal(false);
/** Loudness of the user, 0 to 1. */
export const level = signal(0);
export const isSilent = signal(false);

/** The microphone is open. */
export const isListening = computed(
  () =>
    microphone.value === 'on' &&
    ownsVoice.value &&
    link.value.state === 'open' &&
    !isMuted.value &&
    (talkMode.value === 'open' || isPushing.value),
);

let speaker: Speaker | null = null;
/** The user's voice, while no server listens. */
const kept = new KeptSound();
/** The connection knows of our microphone. */
let isIntroduced = false;
let device: Microphone | null = null;
/** Another page has not taken the voice from us. */
let wantsVoice = true;

// The fragment never reaches the server, so the token is in no log.
export const token = location.hash.slice(1);

const server = new Connection(token, {
  link(state) {
    link.value = state;
    if (state.state !== 'open') {
      isIntroduced = false;
      ownsVoice.value = false;
      speaker?.clear();
    }
  },
  message(message) {
    applyMessage(message);
    if (message.type === 'welcome') introduce();
    if (message.type === 'voice.owner') {
      wantsVoice = message.own;
      if (!message.own) speaker?.clear();
    }
    if (message.type === 'session.event' && message.event.type === 'playout.clear')
      speaker?.clear();
  },
  audio(itemId, samples) {
    speaker?.play(itemId, samples);
  },
});

export function send(message: ClientMessage): boolean {
  return server.send(message);
}

export function connect(): void {
  server.open();
  // The link of a new start, in the same tab, differs in its fragment only.
  addEventListener('hashchange', () => location.reload());
  effect(() => {
    const isOpen = isListening.value;
    device?.setOpen(isOpen);
  });
  effect(() => localStorage.setItem('talk-mode', talkMode.value));
  // After a reload the conversation goes on, if the browser lets it sound.
  if (sessionStorage.getItem('started')) void start(sessionStorage.getItem('started') === 'voice');
}

export function reconnect(): void {
  server.retryNow();
}

/** Begins, or goes on where the browser had to wait for a click. */
export async function start(withMicrophone: boolean): Promise<void> {
  sessionStorage.setItem('started', withMicrophone ? 'voice' : 'text');
  if (stage.value === 'starting') return;
  if (speaker === null) {
    stage.value = 'starting';
    const opened = await openSpeaker(({ itemId, playedMs }) => {
      send({ type: 'playout.report', itemId, playedMs });
    });
    if (opened === 'needs_gesture') {
      stage.value = 'blocked';
      return;
    }
    speaker = opened;
    isSilent.value = opened.isSilent;
  }
  stage.value = 'on';
  takeVoice();
  if (withMicrophone) await askForMicrophone();
}

/** This page shall be the one that speaks and listens. */
export function takeVoice(): void {
  wantsVoice = true;
  send({ type: 'client.attach' });
}

export async function askForMicrophone(): Promise<void> {
  if (microphone.value === 'on' || microphone.value === 'asking') return;
  microphone.value = 'asking';
  const opened = await openMicrophone({
    frame(frame) {
      level.value = frame.level;
      if (isIntroduced) server.sendAudio(frame.samples);
      else if (device) kept.push(frame.samples, device.sampleRateHz);
    },
    ended() {
      device = null;
      microphone.value = 'missing';
    },
  });
  if (typeof opened === 'string') {
    microphone.value = opened;
    return;
  }
  device = opened;
  microphone.value = 'on';
  sessionStorage.setItem('started', 'voice');
  announceMicrophone();
  opened.setOpen(isListening.value);
}

/** Says to a fresh connection what this page can do. */
function introduce(): void {
  announceMicrophone();
  const isOurs = stage.value === 'on' && wantsVoice;
  if (isOurs) takeVoice();
  const frames = kept.take();
  isIntroduced = true;
  if (isOurs) for (const samples of frames) server.sendAudio(samples);
}

function announceMicrophone(): void {
  if (device) send({ type: 'microphone.open', sampleRateHz: device.sampleRateHz });
}

function stored(name: string): string | null {
  return localStorage.getItem(name);
}
