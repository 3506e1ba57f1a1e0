// Plays a conversation in which readers answer for the models. The recording answers each call, and playback stops at
// the first call without an answer.
//
// Owns: the order of the calls, and the part of each that its reader receives. Does not: write files or ask for answers
// (`main.ts`).
//
// A recorded answer applies to the call of the same model with the same index if the text is the same. With
// `isCarried`, the answer applies to any text.

import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { LanguageModel } from 'ai';
import type { SessionState } from '../../src/index.ts';
import { scriptedModel, type SimulatedEnvironment } from '../../src/testing/index.ts';
import type { VoiceResponder, VoiceStep, VoiceWire } from '../../src/testing/voice-server/index.ts';
import type { DialogueStage } from '../dialogues/record.ts';
import { textStage, type StageParts } from '../dialogues/stages/text-stage.ts';
import { wireStage } from '../dialogues/stages/wire-stage.ts';
import { blocksOf, inputOfTurn, type ModelInput } from './call-text.ts';
import type { ReadingAnswer, Recording, RecordedCall, Reads } from './recording.ts';

/** The parts of the session that a conversation defines. */
export type Cast = Omit<ReturnType<StageParts>, 'model'>;

/** The tools with which a conversation builds its session. */
export interface Crew {
  readonly environment: SimulatedEnvironment;
  /** Returns the model of this name, whose calls the reader answers. */
  model(who: string): LanguageModel;
  /** Resolves with the value after this time. */
  takes<Value>(ms: number, value: Value): Promise<Value>;
  /** Records an action of a tool. */
  did(what: string): void;
}

/** The person in a conversation. */
export interface Person {
  readonly state: SessionState;
  /** The actions of the tools, in order. */
  readonly done: readonly string[];
  /** Returns everything that the person heard or read. */
  said(): string;
  says(text: string): Promise<void>;
  /** Lets time pass. */
  waits(ms: number): Promise<void>;
  /** Lets time pass until the condition holds, but no longer than this. */
  waitsUntil(isSo: () => boolean, maxMs?: number): Promise<void>;
  /** Waits until a question is open whose text matches. */
  isAsked(words: RegExp): Promise<void>;
  /** States a condition that must hold now. */
  expect(what: string, isSo: boolean): void;
}

export interface Conversation {
  readonly name: string;
  /** A summary of the conversation. */
  readonly about: string;
  /** @defaultValue text */
  readonly wire?: VoiceWire;
  cast(crew: Crew): Cast;
  play(person: Person): Promise<void>;
}

/** A call that has no answer. */
export interface Waiting extends Reads {
  readonly input: ModelInput;
  /** The call had an answer, but its text has changed since. */
  readonly isStale: boolean;
}

export interface Played {
  /** The answered calls, in order. */
  readonly calls: readonly RecordedCall[];
  /** Empty if the conversation reached its end. */
  readonly waiting: readonly Waiting[];
  /** The stated conditions that did not hold. */
  readonly failed: readonly string[];
  readonly transcript: readonly string[];
}

/** The time until a model's first word. */
const THINKING_MS = 1200;
const TICK_MS = 100;
const LONGEST_WAIT_MS = 120_000;

class Readers {
  readonly answered: RecordedCall[] = [];
  readonly waiting: Waiting[] = [];
  /** The blocks of all calls, by number. */
  readonly #seen: { readonly who: string; readonly blocks: readonly string[] }[] = [];
  readonly #turns = new Map<string, number>();
  readonly #recording: Recording;
  readonly #isCarried: boolean;

  constructor(recording: Recording, isCarried: boolean) {
    this.#recording = recording;
    this.#isCarried = isCarried;
  }

  /** Returns the answer, or null if the call is still waiting for one. */
  answer(who: string, input: ModelInput): ReadingAnswer | null {
    const blocks = blocksOf(input);
    const reads = this.#readsOf(who, blocks);
    this.#seen.push({ who, blocks });
    const turn = this.#turns.get(who) ?? 0;
    this.#turns.set(who, turn + 1);
    const known = this.#recording.calls.filter((call) => call.who === who)[turn];
    const isSame = known !== undefined && isSameText(known, reads);
    if (known && (isSame || this.#isCarried)) {
      // A later call reads the changed text again, among the blocks that both calls share.
      const isAfter =
        this.#isCarried && this.answered.some((call) => call.who === who && call.carried);
      const isCarried = known.carried === true || !isSame || isAfter;
      const { answer } = known;
      this.answered.push({ ...reads, answer, ...(isCarried && { carried: true as const }) });
      return answer;
    }
    this.waiting.push({ ...reads, input, isStale: known !== undefined });
    return null;
  }

  #readsOf(who: string, blocks: readonly string[]): Reads {
    let keeps = 0;
    let after: number | null = null;
    for (const [number, seen] of this.#seen.entries()) {
      const shared = seen.who === who ? sharedLength(seen.blocks, blocks) : 0;
      if (shared < Math.max(1, keeps)) continue;
      keeps = shared;
      after = number;
    }
    return { who, after, keeps, reads: blocks.slice(keeps).flatMap((block) => block.split('\n')) };
  }
}

function sharedLength(left: readonly string[], right: readonly string[]): number {
  const at = left.findIndex((block, index) => block !== right[index]);
  return at < 0 ? left.length : at;
}

function isSameText(left: Reads, right: Reads): boolean {
  return (
    left.after === right.after &&
    left.keeps === right.keeps &&
    left.reads.join('\n') === right.reads.join('\n')
  );
}

/** Plays the conversation as far as there are answers. */
export async function play(
  { wire, cast, play: script }: Conversation,
  recording: Recording,
  isCarried = false,
): Promise<Played> {
  const readers = new Readers(recording, isCarried);
  const done: string[] = [];
  const failed: string[] = [];
  const transcript: string[] = [];
  const parts: StageParts = (environment) => {
    const crew: Crew = {
      environment,
      model: (who) => modelOf(who, readers, environment),
      takes: (ms, value) =>
        new Promise((resolve) => {
          environment.scheduler.schedule(() => resolve(value), ms);
        }),
      did: (what) => done.push(what),
    };
    return { model: crew.model('lead'), ...cast(crew) };
  };
  const stage = await (wire === undefined
    ? textStage(parts)
    : wireStage(wire, parts, voiceOf(readers)));
  let stopped = (): void => {};
  const stop = new Promise<'stopped'>((resolve) => {
    stopped = () => resolve('stopped');
  });
  const checkWaiting = async (): Promise<void> => {
    if (readers.waiting.length === 0) return;
    stopped();
    await new Promise<never>(() => {});
  };
  const note = noting(stage, transcript, wire === undefined);
  const person = personOf(stage, { checkWaiting, done, failed, transcript, note });
  const ended = await Promise.race([
    checkWaiting()
      .then(() => script(person))
      .then(() => 'ended' as const),
    stop,
  ]);
  if (ended === 'ended') {
    const { errors } = await stage.finish();
    failed.push(...errors.map((error) => `no error, but ${error}`));
    note();
    await stage.close();
  }
  return { calls: readers.answered, waiting: readers.waiting, failed, transcript };
}

/**
 * Returns a function that records everything that was said since its last call. The voice speaks the questions if there
 * is a wire.
 */
function noting(stage: DialogueStage, transcript: string[], showsQuestions: boolean): () => void {
  const noted = new Set<string>();
  return () => {
    const { transcript: items, questions } = stage.state;
    const lines = items
      .filter(({ role, text }) => role === 'assistant' && text !== '')
      .map(({ id, text, at }) => ({ id, at, line: `assistant: ${text}` }));
    if (showsQuestions)
      for (const { requestId: id, askedAt: at, state, question, putAgain } of questions) {
        if (state !== 'queued') lines.push({ id, at, line: `asks: ${question}` });
        if (putAgain)
          lines.push({
            id: `${id} ${putAgain.times}`,
            at: Infinity,
            line: `asks: ${putAgain.text}`,
          });
      }
    for (const { id, line } of lines.toSorted((a, b) => a.at - b.at)) {
      if (!noted.has(id)) transcript.push(line);
      noted.add(id);
    }
  };
}

function personOf(
  stage: DialogueStage,
  {
    checkWaiting,
    done,
    failed,
    transcript,
    note,
  }: {
    readonly checkWaiting: () => Promise<void>;
    readonly done: readonly string[];
    readonly failed: string[];
    readonly transcript: string[];
    readonly note: () => void;
  },
): Person {
  const heard = (): readonly string[] =>
    stage.state.transcript
      .filter(({ role, text }) => role === 'assistant' && text !== '')
      .map(({ text }) => text);
  const waits = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= TICK_MS) {
      await stage.pass(Math.min(TICK_MS, left));
      await checkWaiting();
    }
  };
  const waitsUntil = async (isSo: () => boolean, maxMs = LONGEST_WAIT_MS): Promise<void> => {
    for (let waited = 0; waited < maxMs && !isSo(); waited += TICK_MS) await waits(TICK_MS);
  };
  return {
    get state() {
      return stage.state;
    },
    done,
    said: () => heard().join('\n'),
    async says(text) {
      note();
      transcript.push(`user: ${text}`);
      await stage.says(text);
      await checkWaiting();
    },
    waits,
    waitsUntil,
    isAsked: (words) =>
      waitsUntil(() =>
        stage.state.questions.some(
          ({ state, question }) => state === 'open' && words.test(question),
        ),
      ),
    expect(what, isSo) {
      if (!isSo) failed.push(what);
    },
  };
}

/** A model that answers after a delay, as a real one does. */
function modelOf(
  who: string,
  readers: Readers,
  environment: SimulatedEnvironment,
): LanguageModelV4 {
  const inputs = new WeakMap<object, ModelInput>();
  const scripted = scriptedModel({
    environment,
    otherwise: async ({ prompt }) => {
      const answer = readers.answer(who, inputs.get(prompt) ?? { prompt });
      if (answer === null) return new Promise<never>(() => {});
      const { text, calls } = answer;
      return calls === undefined || calls.length === 0
        ? { text: text ?? '', delayMs: THINKING_MS }
        : {
            calls: calls.map(({ name, input }) => ({ name, input })),
            ...(text === undefined ? {} : { text }),
            delayMs: THINKING_MS,
          };
    },
  });
  return {
    ...scripted,
    doGenerate(options: LanguageModelV4CallOptions) {
      inputs.set(options.prompt, options);
      return scripted.doGenerate(options);
    },
    doStream(options: LanguageModelV4CallOptions) {
      inputs.set(options.prompt, options);
      return scripted.doStream(options);
    },
  };
}

/** OpenAI Live uses pauses to separate replies. */
const LIVE_PAUSE_MS = 1000;

function voiceOf(readers: Readers): VoiceResponder {
  return (turn) => {
    const answer = readers.answer('voice', inputOfTurn(turn));
    if (answer === null) return [{ until: new Promise(() => {}) }];
    const { text = '', calls = [], delegate } = answer;
    const steps: VoiceStep[] = [
      { waitMs: turn.model.wire === 'openai-live' ? LIVE_PAUSE_MS : THINKING_MS },
      ...(text === '' ? [] : [{ say: text }]),
      ...calls.map(({ name, input }) => ({ call: name, arguments: input })),
      ...(delegate ? [{ delegate } as const] : []),
    ];
    return steps;
  };
}
