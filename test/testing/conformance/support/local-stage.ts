// A conformance stage for the server of `localVoice`, in memory. The session, the transcriber and the text model of
// that server are the real ones; the language model and the speech engine are scripted.

import { createTextModel } from '../../../../src/adapters/local-voice/language-model.ts';
import { InputAudio } from '../../../../src/adapters/local-voice/input-audio.ts';
import {
  defaultHearingOptions,
  type SpeechEngine,
} from '../../../../src/adapters/local-voice/index.ts';
import { RealtimeSession } from '../../../../src/adapters/local-voice/realtime-session.ts';
import { openaiRealtime } from '../../../../src/adapters/openai-realtime/index.ts';
import type { WebSocketFactory } from '../../../../src/adapters/socket/web-socket.ts';
import {
  scriptedModel,
  type ConformanceResponder,
  type ConformanceModel,
  type ConformanceSetup,
  type ConformanceTranscript,
  type ScriptedPrompt,
  type SimulatedEnvironment,
} from '../../../../src/testing/index.ts';
import { createSocketPair } from '../../../../src/testing/voice-server/hosts/socket-pair.ts';

const SAMPLE_RATE_HZ = 24_000;
const WINDOW_MS = 20;
const LOUD = 4000;
const MS_PER_CHARACTER = 60;
/**
 * Transcription is this many times as fast as speech. A reply that was cut resumes before the words that cut it are
 * known.
 */
const SPEED = 100;

export function localStage(): ConformanceSetup {
  return {
    name: 'local-voice',
    shows: ['late_transcripts', 'silence', 'failure'],
    open({ environment, respond }) {
      const connections: LocalConnection[] = [];
      const webSocket: WebSocketFactory = () => {
        const connection = new LocalConnection(environment, respond);
        connections.push(connection);
        return connection.client;
      };
      return {
        transport: openaiRealtime({ apiKey: 'some-key', webSocket, keepAliveMs: null }),
        models: connections,
      };
    },
  };
}

class LocalConnection implements ConformanceModel {
  readonly client;
  readonly replies = [];
  readonly #environment: SimulatedEnvironment;
  readonly #respond: ConformanceResponder;
  readonly #session: RealtimeSession;
  readonly #drop: () => void;
  /** The words of the utterances to come. The last ones are repeated if more speech is heard. */
  readonly #words: { text: string; transcript: ConformanceTranscript }[] = [];
  #isSilent = false;
  #isFailing = false;
  #isOpen = true;

  constructor(environment: SimulatedEnvironment, respond: ConformanceResponder) {
    this.#environment = environment;
    this.#respond = respond;
    const pair = createSocketPair();
    const model = scriptedModel({ environment, otherwise: (prompt) => this.#answer(prompt) });
    const engine = this.#engine();
    this.#session = new RealtimeSession({
      environment,
      engine,
      createInput: (events) =>
        new InputAudio({ environment, engine, ...defaultHearingOptions }, events),
      textModel: createTextModel(model, environment),
      defaultVoice: 'slt',
      model: 'local-voice',
      send: (text) => pair.link.send(text),
      whenReady: () =>
        new Promise((resolve) => {
          environment.scheduler.schedule(resolve, 0);
        }),
    });
    this.client = pair.client;
    this.#drop = () => pair.link.terminate();
    pair.accept(
      {
        receive: (text) => this.#session.receive(text),
        lost: () => {
          this.#isOpen = false;
          this.#session.close();
        },
      },
      () => this.#session.open(),
    );
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get memory(): ConformanceModel['memory'] {
    return this.#session.items.map(({ remembered }) => {
      if (remembered.kind === 'call')
        return { kind: 'call', text: `${remembered.name} ${remembered.arguments}` };
      if (remembered.kind === 'answer') return { kind: 'result', text: remembered.output };
      const texts = remembered.parts.map((part) => {
        if (part.type === 'text') return part.text;
        return part.type === 'speech' ? part.words.text() : '';
      });
      return { kind: remembered.role, text: texts.join('') };
    });
  }

  readonly user: ConformanceModel['user'] = {
    says: (text, { durationMs, transcript }) => {
      this.#words.push({ text, transcript });
      return new Promise((resolve) => {
        this.#environment.scheduler.schedule(resolve, durationMs);
      });
    },
  };

  drop(): void {
    this.#drop();
  }

  strike(fault: string, on = true): void {
    if (fault === 'failure') this.#isFailing = on;
    else this.#isSilent = on;
  }

  /** Passes the language model's prompt to the conformance script as a turn. */
  async #answer({ prompt, results, signal }: ScriptedPrompt) {
    if (this.#isSilent)
      await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }));
    if (this.#isFailing) throw new Error('You exceeded your current quota');
    const last = prompt.at(-1);
    const text = textOf(last?.content);
    // Notes also have the role `user`.
    const isTold = last?.role === 'user' && !text.startsWith('[') ? 'utterance' : 'message';
    const [first] = prompt;
    const steps = this.#respond({
      cause: last?.role === 'tool' ? 'result' : isTold,
      text: last?.role === 'tool' ? String(results.at(-1)) : text,
      // The session's instructions, with those of the response if it has any.
      instructions: first?.role === 'system' ? first.content : null,
      memory: this.memory,
    });
    const delayMs = steps.reduce((sum, step) => sum + ('waitMs' in step ? step.waitMs : 0), 0);
    return {
      ...(delayMs > 0 && { delayMs }),
      text: steps.flatMap((step) => ('say' in step ? [step.say] : [])).join(' '),
      calls: steps.flatMap((step) =>
        'call' in step ? [{ name: step.call, input: step.arguments }] : [],
      ),
    };
  }

  #engine(): SpeechEngine {
    return {
      voices: ['slt'],
      start: async () => {},
      close: async () => {},
      createDetector: () => {
        let rest: number[] = [];
        return {
          windowMs: WINDOW_MS,
          push: (samples) => {
            rest.push(...samples);
            const size = (SAMPLE_RATE_HZ * WINDOW_MS) / 1000;
            const windows: number[] = [];
            for (; rest.length >= size; rest = rest.slice(size))
              windows.push((rest[size / 2] ?? 0) >= LOUD ? 0.9 : 0.01);
            return Promise.resolve(windows);
          },
          close: () => {},
        };
      },
      transcribe: async ({ samples, sampleRateHz }) => {
        const { text, transcript } = this.#words.shift() ?? { text: '', transcript: 'prompt' };
        const soundMs = (samples.length * 1000) / sampleRateHz;
        const lateMs = typeof transcript === 'object' ? transcript.lateMs : soundMs / SPEED;
        await new Promise((resolve) => {
          this.#environment.scheduler.schedule(() => resolve(null), lateMs);
        });
        return text;
      },
      synthesize: async ({ text }) => ({
        samples: new Int16Array((text.length * MS_PER_CHARACTER * SAMPLE_RATE_HZ) / 1000).fill(
          3000,
        ),
        sampleRateHz: SAMPLE_RATE_HZ,
      }),
    };
  }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (part as { readonly text?: string }).text ?? '').join('');
}
