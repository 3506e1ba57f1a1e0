// The lead model's mind, the same behind every wire: it passes on what it is told, word for
// word, so that what was heard can be told from what was not; it calls tools for words that a
// case names; and to anything else that the user says it replies with what they said.
//
// Owns:     what the user said and nobody has replied to.
// Does not: know whether it is heard.

import { questionAnswered, readable, spokenOf } from './words.ts';
import type { ConformanceMind, ConformanceStep, ConformanceTurn } from './stage.ts';

/** A call that the model makes for some words. */
export interface MindCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface MindPorts {
  /** Before it replies to the user, in milliseconds. */
  readonly thinksMs: number;
  /** What it adds to each reply. */
  readonly adds: string;
  /** The model only says that something is to be done. */
  readonly delegates: () => boolean;
  /** Texts that the user is to be told, if the model reads them. */
  readonly tellable: () => readonly string[];
  /** What its tools have found. */
  readonly found: () => readonly string[];
  /** All that the model remembers. */
  readonly remembered: () => readonly string[];
}

export class LeadMind {
  readonly #calls: Readonly<Record<string, readonly MindCall[]>>;
  readonly #ports: MindPorts;
  readonly #called = new Set<string>();
  readonly #told = new Set<string>();
  #unanswered: string[] = [];
  #lastWords: string | null = null;

  constructor(calls: Readonly<Record<string, readonly MindCall[]>>, ports: MindPorts) {
    this.#calls = calls;
    this.#ports = ports;
  }

  /** The user has said, or typed, this to the model. */
  heard(words: string): void {
    this.#unanswered.push(words);
    this.#lastWords = words;
  }

  readonly think: ConformanceMind = (turn) => {
    const told = this.#toTell(turn);
    if (told.length > 0) return [{ say: told.join(' ') }];
    const calls = this.#callsFor(turn.text);
    if (calls !== null) return calls;
    if (turn.cause === 'result') return [this.#speakTo(turn.text)];
    if (turn.cause === 'utterance' && turn.text !== '') return this.#reply([turn.text]);
    return this.#takeTheFloor();
  };

  /** For a model that only delegates: what these words mean. */
  meaningOf(words: string): readonly MindCall[] | null {
    return this.#calls[words] ?? null;
  }

  #speakTo(result: string): ConformanceStep {
    const output = this.#ports.found().findLast((found) => readable(result).includes(found));
    if (output !== undefined) return this.#tell(output);
    const message = messageIn(result);
    return message === null ? { say: 'I see.' } : this.#tell(message);
  }

  #toTell({ cause, text, instructions }: ConformanceTurn): readonly string[] {
    const known = this.#ports.tellable();
    const inText = (...read: string[]): string[] => {
      const whole = read.map(readable).join('\n');
      return known.filter((fact) => whole.includes(fact));
    };
    const remembered = this.#ports.remembered();
    const asked =
      instructions === null ? [] : inText(instructions, ...spokenOf(instructions, remembered));
    if (asked.length > 0) return asked;
    return cause === 'utterance' ? [] : inText(text, ...spokenOf(text, remembered));
  }

  #callsFor(text: string): readonly ConformanceStep[] | null {
    const calls = this.#calls[text];
    if (calls === undefined || this.#called.has(text)) return null;
    this.#called.add(text);
    this.#answered([text]);
    const steps = calls.map(({ name, input }) => ({ call: name, arguments: input }));
    return this.#ports.delegates() ? steps.slice(0, 1) : steps;
  }

  /** Nothing was said of what about: what somebody with this memory would speak of now. */
  #takeTheFloor(): readonly ConformanceStep[] {
    const memory = this.#ports.remembered();
    const isForModel = (words: string): boolean =>
      !memory.some((text) => questionAnswered(text, words));
    const owed = this.#unanswered.filter(isForModel);
    if (owed.length > 0) return this.#reply(owed);
    const news = this.#ports
      .found()
      .find(
        (output) =>
          !this.#told.has(output) && memory.some((text) => readable(text).includes(output)),
      );
    if (news !== undefined) return [this.#tell(news)];
    const promise = memory.map(messageIn).findLast((text) => text !== null);
    if (promise && !this.#told.has(promise)) return [this.#tell(promise)];
    const last = this.#lastWords;
    return last !== null && isForModel(last) ? this.#reply([last]) : [{ say: 'Well.' }];
  }

  #reply(words: readonly string[]): readonly ConformanceStep[] {
    this.#answered(words);
    const { thinksMs, adds } = this.#ports;
    const reply = { say: [replyTo(words.join(' ')), adds].join(' ').trim() };
    return thinksMs > 0 ? [{ waitMs: thinksMs }, reply] : [reply];
  }

  #tell(output: string): ConformanceStep {
    this.#told.add(output);
    return { say: `It says: ${output}.` };
  }

  #answered(words: readonly string[]): void {
    this.#unanswered = this.#unanswered.filter((said) => !words.includes(said));
  }
}

/** What the model is to say while a call is at work. */
function messageIn(text: string): string | null {
  return /"message\\?":\s*\\?"([^"\\]*)/.exec(text)?.[1] ?? null;
}

/** What the model says to words of the user. */
export function replyTo(words: string): string {
  return `You said: ${words}.`;
}
