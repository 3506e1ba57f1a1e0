// The demo in a real browser, in real time: a synthetic voice speaks into the page's microphone, the built-in
// recogniser transcribes it, and the stage records the page's audio. A room may add noise, an echo or a television.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { playInto } from './microphone.ts';
import { buildTheatre, troubles } from './stage.ts';
import { toWav, voiceIn } from '../../support/speech/speak.ts';
import { frameDurationMs } from '../../../src/voice/audio/audio-frame.ts';
import type { Dialogue } from '../../dialogues/dialogue.ts';
import { ECHO_DB, roomSound, voiceOf } from '../../dialogues/room.ts';
import type { DialogueStage, Sound } from '../../dialogues/record.ts';

const LISTENED_EVERY_MS = 50;
/** A shorter silence counts as part of the speech. */
const PAUSE_MS = 250;
export interface BrowserStages {
  /** Opens the demo's page in a new stage for this dialogue. */
  open(dialogue: Dialogue): Promise<DialogueStage>;
  close(): Promise<void>;
}

export interface BrowserStageOptions {
  /** A Flite voice; the lead agent speaks with another one. @defaultValue 'rms' */
  readonly voice?: string;
  /** The folder for the recordings of failed dialogues. @defaultValue nothing is recorded */
  readonly recordings?: string;
}

/** Needs the built-in voice and `CHROMIUM_PATH`. */
export async function browserStages(options: BrowserStageOptions = {}): Promise<BrowserStages> {
  const { voice = 'rms', recordings } = options;
  // At this pace, the work is still running when its acknowledgement ends.
  const theatre = await buildTheatre(1);
  const open = async ({ name, background: room }: Dialogue): Promise<DialogueStage> => {
    const stage = await theatre.open();
    const { watch } = stage;
    const isRecorded = recordings !== undefined;
    const tab = await stage.visit({ ...(room === 'echo' && { echoDb: ECHO_DB }), isRecorded });
    const { page } = tab;
    await tab.startTalking();
    const around = await roomSound(room);
    if (around) await playInto(page, toWav(around), { isLoop: true });
    await page.evaluate(
      ([everyMs, pauseMs]) => {
        const sounds: { from: number; to: number }[] = [];
        window.__sounds = () => sounds;
        setInterval(() => {
          if (window.__loudness() < 0.01) return;
          const now = Date.now();
          const last = sounds.at(-1);
          if (last && now - last.to <= pauseMs) last.to = now;
          else sounds.push({ from: now, to: now });
        }, everyMs);
      },
      [LISTENED_EVERY_MS, PAUSE_MS] as const,
    );
    let sounds: readonly Sound[] = [];
    const yielded: number[] = [];
    stage.demo.session.events.subscribe(({ type }) => {
      if (type === 'playout.clear') yielded.push(Date.now());
    });
    return {
      name: 'browser',
      get state() {
        return watch.state;
      },
      get now() {
        return Date.now();
      },
      get sounds() {
        const last = sounds.at(-1);
        return last !== undefined && Date.now() - last.to < PAUSE_MS;
      },
      async pass(ms) {
        await after(ms);
        sounds = await page.evaluate(() => window.__sounds());
      },
      async says(text) {
        const speech = await voiceOf(text, voice);
        await playInto(page, toWav(speech));
        // The page decodes the audio before it plays it. Only the end is known, and the start is computed from it.
        const startedAt = Date.now() - frameDurationMs({ samples: speech, sampleRateHz: 24_000 });
        const { fromMs, toMs } = voiceIn(speech);
        return { beganAt: startedAt + fromMs, endedAt: startedAt + toMs };
      },
      finish: async () => ({
        sounds,
        yielded,
        errors: troubles(stage, tab),
        said: watch.state.transcript
          .filter(({ role, text }) => role === 'assistant' && text !== '')
          .map(({ text }) => text),
      }),
      async keep() {
        if (recordings === undefined) return;
        mkdirSync(recordings, { recursive: true });
        const file = join(recordings, name.replaceAll(/[^a-z0-9]+/gi, '-'));
        const sound = await page.evaluate(() => window.__recording());
        writeFileSync(`${file}.webm`, Buffer.from(sound, 'base64'));
        writeFileSync(`${file}.txt`, `${watch.describe()}\n`);
      },
      close: () => stage.close(),
    };
  };
  return { open, close: () => theatre.close() };
}
