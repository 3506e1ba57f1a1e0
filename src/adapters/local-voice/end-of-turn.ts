// Judges during a pause whether the user has finished. The judgement uses the words so far, the open question, and an
// app function (`endOfTurn`) such as a model that listens to intonation.
//
// END-OF-TURN-1. If the words answer the open question or are a command in reply to it, the turn ends without a call to
//     the app's function, so that no model delays a "yes".
// END-OF-TURN-2. If the function throws, takes too long or returns a value other than a number from 0 to 1, the failure
//     is reported and the list of unfinished words decides.

import type { Scheduler } from '../../actors/ports/environment.ts';
import { matchAnswer } from '../../language/match-answer.ts';
import type { AnswerableQuestion, Match } from '../../language/match.ts';
import { isUnfinished } from '../../language/backchannel.ts';
import { messageOf } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';

/** A question that the user has not answered yet. */
export type OpenQuestion = AnswerableQuestion;

/**
 * Returns the probability that the user has finished, from 0 to 1. If it is below 0.5, the server continues to wait.
 * Called in each pause with the audio of the utterance so far (at most its last 8 seconds), its words, and the open
 * question.
 */
export type EndOfTurn = (
  audio: AudioFrame,
  text: string,
  openQuestion: OpenQuestion | null,
) => number | PromiseLike<number>;

/** The words determine `answered` and `unfinished`; `finished` means that the words may be complete. */
export type TurnEnd = 'answered' | 'finished' | 'unfinished';

/** The kinds of match that settle an open question or are a command in reply to it. */
const ANSWERS: ReadonlySet<Match['kind']> = new Set(['approved', 'denied', 'repeat', 'hold']);
const LIKELY = 0.5;
const LONGEST_SOUND_MS = 8_000;
const TIMEOUT_MS = 500;

/** The pause to judge. */
export interface Pause {
  readonly audio: AudioFrame;
  readonly text: string;
  readonly question: OpenQuestion | null;
  /** The language of the words. */
  readonly language: string;
}

export interface Judge {
  /** The app's function. @defaultValue none: the words decide */
  readonly endOfTurn?: EndOfTurn | undefined;
  readonly scheduler: Scheduler;
  readonly failed: (message: string) => void;
}

/** Judges a pause. Never rejects. */
export async function judgeTurn(judge: Judge, pause: Pause): Promise<TurnEnd> {
  const { text, question, language } = pause;
  const byWords = endByWords(text, question, language);
  if (judge.endOfTurn === undefined || byWords === 'answered') return byWords;
  const sure = await ask(judge.endOfTurn, judge, pause);
  if (sure === null) return byWords;
  return sure >= LIKELY ? 'finished' : 'unfinished';
}

/** Judges by the words alone. */
export function endByWords(text: string, question: OpenQuestion | null, language: string): TurnEnd {
  if (isUnfinished(text, language)) return 'unfinished';
  if (question === null) return 'finished';
  const match = matchAnswer(question, text, { language });
  if (ANSWERS.has(match.kind)) return 'answered';
  if (match.kind !== 'option') return 'finished';
  // A near match, or an option surrounded by other words, may be the start of something else.
  const isDoubtful = match.how === 'sound' || match.how === 'spelling' || match.doubt === true;
  return isDoubtful ? 'finished' : 'answered';
}

function ask(endOfTurn: EndOfTurn, judge: Judge, pause: Pause): Promise<number | null> {
  const { scheduler, failed } = judge;
  return new Promise((resolve) => {
    let isOver = false;
    const end = (sure: number | null, failure: string | null): void => {
      if (isOver) return;
      isOver = true;
      cancel();
      if (failure !== null) failed(`\`endOfTurn\` ${failure}`);
      resolve(sure);
    };
    const cancel = scheduler.schedule(
      () => end(null, `took longer than ${TIMEOUT_MS} ms`),
      TIMEOUT_MS,
      { isBackground: true },
    );
    const threw = (error: unknown): void => end(null, `threw: ${messageOf(error)}`);
    try {
      const asked = endOfTurn(lastOf(pause.audio), pause.text, pause.question);
      Promise.resolve(asked).then((sure: unknown) => {
        if (typeof sure === 'number' && sure >= 0 && sure <= 1) end(sure, null);
        else end(null, `gave ${String(sure)}: expected a number from 0 to 1`);
      }, threw);
    } catch (error) {
      threw(error);
    }
  });
}

function lastOf({ samples, sampleRateHz }: AudioFrame): AudioFrame {
  const longest = (LONGEST_SOUND_MS * sampleRateHz) / 1000;
  return { samples: samples.slice(Math.max(0, samples.length - longest)), sampleRateHz };
}
