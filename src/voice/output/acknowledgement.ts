// Acknowledges an answer ("Premium. One moment.") or a request for time ("Take your time."). The answer is sent to the
// subagent that asked, and the lead agent does not reply to it. Without an acknowledgement, the user would not know
// whether the answer was understood.
//
//   understood ── afterMs of silence ──▶ said      by a voice, or by the model out of band (aside)
//        ├── the user speaks, other audio plays, or something is due ──▶ not said
//        └── neither can say it: the reply of a model that responds by itself may serve (held-speech)
//
// Owns:     the acknowledgement's text and timing, and which words of a model may serve as one.
// Does not: make the acknowledgement audible (aside, held-speech), or know the effects of the answer.
//
// Invariants
//   ACKNOWLEDGEMENT-1. The acknowledgement repeats the chosen option and asks for a moment. It never claims that
//       something has been done. For an approval, it only asks for a moment.
//   ACKNOWLEDGEMENT-2. It is said at most once per utterance. It is not said if the user is speaking, other audio is
//       playing, or a delivery or another question is due. It is not a delivery, and it is never postponed.

import { z } from 'zod';
import type { WordsToQuestion } from '../../actors/contracts/records.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import { acknowledgementIn } from '../../language/acknowledgement.ts';
import { check } from '../../values/checks.ts';
import type { Transport } from '../connection/transport.ts';
import { checkVoice, type Voice } from '../speech/voice.ts';
import type { Aside } from './aside.ts';
import type { ReplyReader } from './held-speech.ts';

/** The acknowledgement may still start during this time after `afterMs` if the model is busy but silent. */
const PATIENCE_MS = 2000;

/** The runtime's acknowledgements in one language. */
export interface AcknowledgementPhrases {
  /** Acknowledges a chosen option; `{choice}` stands for its label. */
  readonly choice: string;
  /** Acknowledges any other answer. */
  readonly other: string;
  /**
   * Acknowledges a request for time ("let me think"), after which the question stays open. @defaultValue nothing is
   * said
   */
  readonly time?: string;
}

/** When and how the user's answer to a question is acknowledged. */
export interface AcknowledgementOptions {
  /** The acknowledgement is said after this much silence, in milliseconds. @defaultValue 400 */
  readonly afterMs?: number;
  /**
   * The phrases by language, such as `{ it: { choice: '{choice}. Un attimo.', other: 'Un attimo.' } }`, in addition to
   * the built-in ones. A phrase must not promise a result. In a language without phrases, answers are not acknowledged.
   * @defaultValue phrases in English, German, French and Spanish
   */
  readonly say?: Readonly<Record<string, AcknowledgementPhrases>>;
  /**
   * The voice that says the acknowledgement. @defaultValue the voice of the filler or of the transport (`withVoice`);
   * without one, the model, either out of band or with a reply that only acknowledges the answer
   */
  readonly voice?: Voice;
}

/** The validated options, with defaults filled in. */
export interface AcknowledgementSettings {
  readonly afterMs: number;
  readonly say: Readonly<Record<string, AcknowledgementPhrases>>;
  /** Null if the model says the acknowledgement. */
  readonly voice: Voice | null;
}

const DEFAULT_PHRASES: Readonly<Record<string, AcknowledgementPhrases>> = {
  en: { choice: '{choice}. One moment.', other: 'One moment.', time: 'Take your time.' },
  de: {
    choice: '{choice}. Einen Moment.',
    other: 'Einen Moment.',
    time: 'Lassen Sie sich Zeit.',
  },
  fr: {
    choice: '{choice}. Un instant.',
    other: 'Un instant.',
    time: 'Prenez votre temps.',
  },
  es: {
    choice: '{choice}. Un momento.',
    other: 'Un momento.',
    time: 'Tómese su tiempo.',
  },
};

/** The state of the conversation that determines whether an acknowledgement may be said. */
export interface Moment {
  /** Whether neither side is speaking or about to speak. */
  readonly isSilent: boolean;
  /** Whether the user is speaking, the model is audible, or no client is listening. */
  readonly hasOtherSound: boolean;
  readonly isQuestionOpen: boolean;
  readonly isDeliveryDue: boolean;
}

interface Due {
  readonly text: string;
  readonly since: number;
  readonly isForTime: boolean;
}

export type Acknowledgement = ReturnType<typeof acknowledgementOf>;

export function acknowledgementOf(
  core: LeadSession,
  moment: Moment,
  aside: Aside,
  settings: AcknowledgementSettings,
  canSpeak: boolean,
) {
  let dueFor: Due | null = null;
  let saidForTime = false;
  let cancel: () => void = () => {};
  const languageNow = (): string => core.agents.current.language ?? 'en';
  const now = (): number => core.host.environment.clock.now();

  function stop(): void {
    cancel();
    dueFor = null;
  }

  function say(): void {
    const due = dueFor;
    if (!due) return;
    const isLate = now() - due.since > settings.afterMs + PATIENCE_MS;
    if (isLate || moment.hasOtherSound || isOtherDue(due.isForTime)) stop();
    else if (moment.isSilent && !aside.isUnderWay) {
      stop();
      saidForTime = due.isForTime;
      aside.say(due.text, self);
    }
  }

  /**
   * Returns whether any other speech is due. A question is not counted while the user is still thinking about it.
   */
  function isOtherDue(isForTime: boolean): boolean {
    return moment.isDeliveryDue || (moment.isQuestionOpen && !isForTime);
  }

  const self = {
    /** Schedules the acknowledgement of words that answer a question. */
    understood(were: NonNullable<WordsToQuestion>): void {
      if (!canSpeak) return;
      const phrases = phrasesIn(settings.say, languageNow());
      const text = phrases && phraseFor(were, phrases);
      if (text === undefined) return;
      stop();
      const { clock, scheduler } = core.host.environment;
      dueFor = { text, since: clock.now(), isForTime: were === 'time' };
      cancel = scheduler.schedule(() => say(), settings.afterMs);
    },
    /** Returns a reader for the model's own reply to the words; undefined if the runtime acknowledges them itself. */
    readerFor(were: NonNullable<WordsToQuestion>): ReplyReader | undefined {
      if (canSpeak) return undefined;
      const language = languageNow();
      const to =
        typeof were === 'object' ? were : { choice: null, isApproval: false, asksFor: were };
      return {
        read: (text) => acknowledgementIn(text, { ...to, language }),
        // After a request to repeat the question, the question follows the reply, so the open question does not make
        // the reply obsolete.
        isLate: () => were !== 'repeat' && isOtherDue(were === 'time'),
      };
    },
    /** Called after a change: decides again whether to say the acknowledgement. */
    update(): void {
      if (aside.owner === self && isOtherDue(saidForTime)) aside.noMore();
      if (!dueFor) return;
      if (moment.hasOtherSound || isOtherDue(dueFor.isForTime)) stop();
      else if (now() - dueFor.since > settings.afterMs) say();
    },
    stop,
  };
  return self;
}

const phrase = z.string().trim().min(1);

const optionsSchema = z.strictObject({
  afterMs: z.number().nonnegative().optional(),
  say: z
    .record(
      z.string().min(1),
      z.strictObject({ choice: phrase, other: phrase, time: phrase.optional() }),
    )
    .optional(),
  voice: z.custom<Voice>().optional(),
});

/** @throws {ConfigurationError} `INVALID_OPTION`. */
export function checkedAcknowledgement(
  options: AcknowledgementOptions,
  transport: Transport,
): AcknowledgementSettings {
  check('acknowledgement', optionsSchema, options);
  const { afterMs = 400, say = {} } = options;
  const voice = options.voice ?? transport.voice ?? null;
  if (voice !== null) checkVoice('acknowledgement.voice', voice);
  return { afterMs, say: { ...DEFAULT_PHRASES, ...say }, voice };
}

function phraseFor(
  were: NonNullable<WordsToQuestion>,
  phrases: AcknowledgementPhrases,
): string | undefined {
  // The repeated question follows immediately, so no acknowledgement is needed.
  if (were === 'repeat') return undefined;
  if (were === 'time') return phrases.time;
  const { choice } = were;
  return choice === null ? phrases.other : phrases.choice.replace('{choice}', () => choice);
}

function phrasesIn(
  say: AcknowledgementSettings['say'],
  tag: string,
): AcknowledgementPhrases | undefined {
  const language = tag.toLowerCase();
  const [code = language] = language.split(/[-_]/);
  return say[tag] ?? say[language] ?? say[code];
}
