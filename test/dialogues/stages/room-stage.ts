// The demo's session on the local voice, in simulated time. Synthetic voices are mixed with the room and with the echo
// of the played audio, and the built-in models detect and transcribe them. Time stops while a model computes, and then
// advances as on a quiet machine, so a loaded machine hears the same.
//
//   person, room ─▶ microphone ─▶ session ─▶ local voice: detector, transcriber, lead model, voice
//        ▲                           │
//        └──── echo ◀── loudspeaker ◀┘

import { ruleModel } from '../../../examples/voice-demo/rules/rule-model.ts';
import { defaultHearingOptions } from '../../../src/adapters/local-voice/index.ts';
import { InputAudio } from '../../../src/adapters/local-voice/input-audio.ts';
import { createTextModel } from '../../../src/adapters/local-voice/language-model.ts';
import { RealtimeSession } from '../../../src/adapters/local-voice/realtime-session.ts';
import { createBuiltInEngine } from '../../../src/adapters/local-voice/speech/built-in-engine.ts';
import type { SpeechEngine } from '../../../src/adapters/local-voice/speech/speech-engine.ts';
import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';
import type { WebSocketFactory } from '../../../src/adapters/socket/web-socket.ts';
import { VoiceSession } from '../../../src/voice-session.ts';
import { workingSound } from '../../../src/voice/audio/working-sound.ts';
import { simulatedEnvironment, type SimulatedEnvironment } from '../../../src/testing/index.ts';
import { createSocketPair } from '../../../src/testing/voice-server/hosts/socket-pair.ts';
import { frameDurationMs, type AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import type { PlayoutReport } from '../../../src/voice/spoken-lead.ts';
import { voiceIn } from '../../support/speech/speak.ts';
import type { Dialogue } from '../dialogue.ts';
import type { DialogueStage, Sound } from '../record.ts';
import { ECHO_DB, ECHO_DELAY_MS, ROOM_RATE_HZ, roomSound, voiceOf } from '../room.ts';
import { demoParts } from './demo-parts.ts';

const TICK_MS = 20;
const TICK_SAMPLES = (ROOM_RATE_HZ * TICK_MS) / 1000;
const REPORTED_EVERY_MS = 100;
/** Quieter audio counts as silence, and a shorter silence counts as part of the speech. */
const HEARD_LEVEL = 0.01 * 32_767;
const PAUSE_MS = 250;
/** How long transcription takes on a quiet machine with two cores. */
const TRANSCRIBED_AFTER_MS = 60;
const TRANSCRIBED_SHARE = 0.06;
const SPOKEN_AFTER_MS = 30;

export interface RoomStages {
  open(dialogue: Dialogue): Promise<RoomStage>;
  close(): Promise<void>;
}

export interface RoomStagesOptions {
  /** A Flite voice; the lead agent speaks with another one. @defaultValue 'rms' */
  readonly voice?: string;
  /** The silence before each utterance, in milliseconds; it slightly changes what the models hear. @defaultValue 0 */
  readonly delayMs?: number;
}

/** A stage that also reports its events. */
export interface RoomStage extends DialogueStage {
  /** The events and the utterances, with their times in seconds. */
  readonly story: readonly string[];
}

/** Needs the built-in voice. */
export async function roomStages(options: RoomStagesOptions = {}): Promise<RoomStages> {
  const { voice = 'rms', delayMs = 0 } = options;
  const engine = createBuiltInEngine();
  await engine.start();
  return {
    open: (dialogue) => roomStage(engine, { voice, delayMs }, dialogue),
    close: () => engine.close(),
  };
}

async function roomStage(
  engine: SpeechEngine,
  { voice, delayMs }: Required<RoomStagesOptions>,
  { background, roomFromMs = 0 }: Dialogue,
): Promise<RoomStage> {
  const environment = simulatedEnvironment();
  const beganAt = environment.clock.now();
  const story: string[] = [];
  const tell = (text: string): void =>
    void story.push(`${((environment.clock.now() - beganAt) / 1000).toFixed(2)} ${text}`);
  const timed = timedEngine(engine, environment);
  const { agents, model, subagentConfigs } = demoParts(environment);
  const session = new VoiceSession({
    transport: openaiRealtime({
      apiKey: 'local',
      webSocket: localServer(timed.engine, environment),
      keepAliveMs: null,
    }),
    thinkingSound: { loop: workingSound() },
    filler: {},
    model,
    agents,
    subagentConfigs,
    environment,
  });
  const errors: string[] = [];
  const yielded: number[] = [];
  session.events.subscribe((event) => {
    if (event.type === 'error.reported') errors.push(`${event.code}: ${event.message}`);
    if (event.type === 'playout.clear') {
      loudspeaker.clear();
      yielded.push(environment.clock.now());
    }
    tell(JSON.stringify(event));
  });
  const loudspeaker = new Loudspeaker((report) => session.playout.next(report));
  session.audioOut.subscribe((frame) => loudspeaker.take(frame));

  const room = await roomSound(background);
  const roomFrom = (ROOM_RATE_HZ * roomFromMs) / 1000;
  const echo = new Int16Array((ROOM_RATE_HZ * ECHO_DELAY_MS) / 1000);
  const echoGain = background === 'echo' ? 10 ** (ECHO_DB / 20) : 0;
  const sounds: Sound[] = [];
  let person = new Int16Array(0);
  let samplesHeard = 0;

  const microphone = (): Int16Array => {
    const heard = new Float32Array(TICK_SAMPLES);
    heard.set(person.subarray(0, TICK_SAMPLES));
    person = person.subarray(TICK_SAMPLES);
    for (const index of heard.keys()) {
      const at = samplesHeard + index;
      heard[index] =
        (heard[index] ?? 0) +
        (room?.[(roomFrom + at) % room.length] ?? 0) +
        (echo[at % echo.length] ?? 0) * echoGain;
    }
    return Int16Array.from(heard, (sample) => Math.max(-32_768, Math.min(32_767, sample)));
  };
  const tick = async (): Promise<void> => {
    session.audioIn.next({ samples: microphone(), sampleRateHz: ROOM_RATE_HZ });
    const played = loudspeaker.play();
    for (const [index, sample] of played.entries())
      echo[(samplesHeard + index) % echo.length] = sample;
    samplesHeard += TICK_SAMPLES;
    await environment.advance(TICK_MS);
    await timed.idle();
    const now = environment.clock.now();
    if (played.every((sample) => Math.abs(sample) < HEARD_LEVEL)) return;
    const last = sounds.at(-1);
    if (last && now - last.to <= PAUSE_MS) last.to = now;
    else sounds.push({ from: now - TICK_MS, to: now });
  };
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= TICK_MS) await tick();
  };
  const state = () => session.store.getSnapshot().context;
  const leave = session.attach();
  const started = session.start();
  for (let waited = 0; state().connection !== 'active' && waited < 5000; waited += TICK_MS)
    await tick();
  await started;
  return {
    name: 'room',
    story,
    get state() {
      return state();
    },
    get now() {
      return environment.clock.now();
    },
    get sounds() {
      const last = sounds.at(-1);
      return last !== undefined && environment.clock.now() - last.to < PAUSE_MS;
    },
    pass,
    async says(text) {
      const voiced = await voiceOf(text, voice);
      await pass(delayMs - (delayMs % TICK_MS));
      const delay = (ROOM_RATE_HZ * (delayMs % TICK_MS)) / 1000;
      person = new Int16Array(delay + voiced.length);
      person.set(voiced, delay);
      const startedAt = environment.clock.now();
      const { fromMs, toMs } = voiceIn(person);
      tell(`the person says: ${text}`);
      while (person.length > 0) await tick();
      tell('the person has ended');
      return { beganAt: startedAt + fromMs, endedAt: startedAt + toMs };
    },
    finish: async () => ({
      sounds,
      yielded,
      errors,
      said: state()
        .transcript.filter(({ role, text }) => role === 'assistant' && text !== '')
        .map(({ text }) => text),
    }),
    async close() {
      const closed = session.close();
      for (let waited = 0; waited < 5000; waited += TICK_MS) {
        await environment.advance(TICK_MS);
        await timed.idle();
      }
      await closed;
      leave();
    },
  };
}

/** Wraps the engine, so that its work takes simulated time instead of real time. */
function timedEngine(engine: SpeechEngine, environment: SimulatedEnvironment) {
  let busy = 0;
  let finished = (): void => undefined;
  const timed = async <T>(work: Promise<T>, costMs: number): Promise<T> => {
    busy += 1;
    let result: T;
    try {
      result = await work;
    } finally {
      busy -= 1;
      finished();
    }
    if (costMs > 0)
      await new Promise<void>((resolve) => {
        environment.scheduler.schedule(resolve, costMs);
      });
    return result;
  };
  return {
    engine: {
      ...engine,
      createDetector: (sampleRateHz) => {
        const detector = engine.createDetector(sampleRateHz);
        return { ...detector, push: (samples) => timed(detector.push(samples), 0) };
      },
      transcribe: (speech) =>
        timed(
          engine.transcribe(speech),
          TRANSCRIBED_AFTER_MS + TRANSCRIBED_SHARE * frameDurationMs(speech),
        ),
      synthesize: (request, signal) => timed(engine.synthesize(request, signal), SPOKEN_AFTER_MS),
    } satisfies SpeechEngine,
    async idle(): Promise<void> {
      while (busy > 0) {
        await new Promise<void>((resolve) => {
          finished = resolve;
        });
        await environment.settle();
      }
    },
  };
}

/** A local voice without a socket, a port or a thread. */
function localServer(engine: SpeechEngine, environment: SimulatedEnvironment): WebSocketFactory {
  const textModel = createTextModel(ruleModel({ environment, thinkingMs: 150 }), environment);
  return () => {
    const { client, link, accept } = createSocketPair();
    const session = new RealtimeSession({
      environment,
      engine,
      textModel,
      defaultVoice: engine.voices[0] ?? 'slt',
      model: 'local-voice',
      createInput: (events) =>
        new InputAudio({ environment, engine, ...defaultHearingOptions }, events),
      send: (text) => link.send(text),
      whenReady: () =>
        new Promise<void>((resolve) => {
          environment.scheduler.schedule(resolve, 0);
        }),
    });
    accept({ receive: (text) => session.receive(text), lost: () => session.close() }, () =>
      session.open(),
    );
    return client;
  };
}

/** Plays audio in the order in which it arrives, and reports what it has played. */
class Loudspeaker {
  readonly #report: (report: PlayoutReport) => void;
  #queue: { readonly itemId: string | undefined; samples: Int16Array }[] = [];
  /** The current item. */
  #itemId: string | undefined;
  #playedMs = 0;
  #reportedMs = 0;

  constructor(report: (report: PlayoutReport) => void) {
    this.#report = report;
  }

  take({ samples, itemId }: AudioFrame): void {
    this.#queue.push({ itemId, samples });
  }

  /** Returns the audio for the next tick. */
  play(): Int16Array {
    const played = new Int16Array(TICK_SAMPLES);
    for (let at = 0; at < TICK_SAMPLES;) {
      const next = this.#queue[0];
      if (!next) break;
      if (next.itemId !== this.#itemId) this.#turnTo(next.itemId);
      const part = next.samples.subarray(0, TICK_SAMPLES - at);
      played.set(part, at);
      at += part.length;
      this.#playedMs += (part.length * 1000) / ROOM_RATE_HZ;
      if (part.length === next.samples.length) this.#queue.shift();
      else next.samples = next.samples.subarray(part.length);
    }
    if (this.#queue.length === 0 || this.#playedMs - this.#reportedMs >= REPORTED_EVERY_MS)
      this.#tell();
    return played;
  }

  clear(): void {
    const waiting = new Set(this.#queue.map(({ itemId }) => itemId));
    this.#queue = [];
    this.#tell(true);
    for (const itemId of waiting)
      if (itemId !== undefined && itemId !== this.#itemId) this.#report({ itemId, playedMs: 0 });
  }

  #turnTo(itemId: string | undefined): void {
    this.#tell();
    this.#itemId = itemId;
    this.#playedMs = 0;
    this.#reportedMs = 0;
  }

  #tell(again = false): void {
    const itemId = this.#itemId;
    if (itemId === undefined || (this.#playedMs === this.#reportedMs && !again)) return;
    this.#reportedMs = this.#playedMs;
    this.#report({ itemId, playedMs: this.#playedMs });
  }
}
