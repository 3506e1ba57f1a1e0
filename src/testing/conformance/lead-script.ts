// The script of the lead model, which is the same for every transport. In the script, the model says its messages word
// for word, so that the suite can determine which of them were heard. It calls tools for the inputs that a case names,
// and repeats any other user input as its reply.
//
// Owns:     the user input that has no reply yet.
// Does not: know whether the user hears the speech.

import { RUNNING_TASK } from '../../actors/session/lead/work.ts';
import { parsedOrText, propertiesOf } from '../../values/json.ts';
import { questionAnswered, readable, spokenOf } from './words.ts';
import type { ConformanceResponder, ConformanceStep, ConformanceTurn } from './stage.ts';

/** A call that the model makes for a certain user input. */
export interface LeadCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** Returns the calls for this input. There are none if the result is undefined or empty. */
type Meant = (words: string) => readonly LeadCall[] | undefined;

export interface LeadScriptOptions {
  /** The delay before the model replies to the user, in milliseconds. */
  readonly thinksMs: number;
  /** The delay before the model speaks a requested message, in milliseconds. */
  readonly tellsAfterMs: number;
  /** The text that the model appends to each reply. */
  readonly adds: string;
  /** The replies to these inputs. The model repeats all other inputs. */
  readonly replies: Readonly<Record<string, string>>;
  /** Whether the model only reports that an action is needed. */
  readonly delegates: () => boolean;
  /** Texts that the model speaks to the user after it has read them. */
  readonly tellable: () => readonly string[];
  /** The results of the model's tool calls. */
  readonly found: () => readonly string[];
}

export class LeadScript {
  readonly #calls: Meant;
  readonly #ports: LeadScriptOptions;
  readonly #called = new Set<string>();
  #made: LeadCall[] = [];
  readonly #told = new Set<string>();
  #unanswered: string[] = [];
  #lastWords: string | null = null;

  constructor(calls: Meant, ports: LeadScriptOptions) {
    this.#calls = calls;
    this.#ports = ports;
  }

  /** Receives a text that the user has spoken or typed. */
  heard(words: string): void {
    this.#unanswered.push(words);
    this.#lastWords = words;
  }

  readonly respond: ConformanceResponder = (turn) => {
    const exactly = exactWordsIn(turn.instructions ?? '');
    if (exactly !== null) return [{ say: exactly }];
    const told = this.#toTell(turn);
    if (told.length > 0) return this.#after(this.#ports.tellsAfterMs, { say: told.join(' ') });
    const calls = this.#callsFor(turn.text);
    if (calls !== null) return calls;
    if (turn.cause === 'result') return [this.#goOn(turn.text) ?? this.#speakTo(turn.text)];
    if (turn.cause === 'utterance' && turn.text !== '') return this.#reply([turn.text]);
    return this.#takeTheFloor(textsOf(turn));
  };

  /** Returns the calls for this input, for a model that only delegates. */
  meaningOf(words: string): readonly LeadCall[] | null {
    return this.#calls(words) ?? null;
  }

  /** Returns what the model does when the runtime answers a call without a result: call again, or add to the task. */
  #goOn(result: string): ConformanceStep | null {
    const output = propertiesOf(parsedOrText(result));
    const words = this.#lastWords ?? '';
    const again = output['status'] === 'not_started' && !isUnfinished(words) && this.#made.shift();
    if (again) this.#made.push(again);
    const next = again || restOf(output, words);
    return next && { call: next.name, arguments: next.input };
  }

  #speakTo(result: string): ConformanceStep {
    const output = this.#ports.found().findLast((found) => readable(result).includes(found));
    if (output !== undefined) return this.#tell(output);
    const message = messageIn(result);
    return message === null ? { say: 'I see.' } : this.#tell(message);
  }

  #toTell(turn: ConformanceTurn): readonly string[] {
    const { cause, text, instructions } = turn;
    const known = this.#ports.tellable();
    const inText = (...read: string[]): string[] => {
      const whole = read.map(readable).join('\n');
      return known.filter((fact) => whole.includes(fact));
    };
    const remembered = textsOf(turn);
    const asked =
      instructions === null ? [] : inText(instructions, ...spokenOf(instructions, remembered));
    if (asked.length > 0) return asked;
    return cause === 'utterance' ? [] : inText(text, ...spokenOf(text, remembered));
  }

  #callsFor(text: string): readonly ConformanceStep[] | null {
    const calls = this.#calls(text);
    if (calls === undefined || this.#called.has(text)) return null;
    this.#called.add(text);
    this.#answered([text]);
    this.#made.push(...calls);
    const steps = calls.map(({ name, input }) => ({ call: name, arguments: input }));
    return this.#ports.delegates() ? steps.slice(0, 1) : steps;
  }

  /** Returns what a model with this memory says in a turn for which no reason is given. */
  #takeTheFloor(memory: readonly string[]): readonly ConformanceStep[] {
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
    const { thinksMs, adds, replies } = this.#ports;
    const reply = replies[words.join(' ')] ?? [replyTo(words.join(' ')), adds].join(' ').trim();
    return this.#after(thinksMs, { say: reply });
  }

  #after(waitMs: number, step: ConformanceStep): readonly ConformanceStep[] {
    return waitMs > 0 ? [{ waitMs }, step] : [step];
  }

  #tell(output: string): ConformanceStep {
    this.#told.add(output);
    return { say: `It says: ${output}.` };
  }

  #answered(words: readonly string[]): void {
    this.#unanswered = this.#unanswered.filter((said) => !words.includes(said));
  }
}

/** The user has not finished, so a model that has not started waits. */
export const isUnfinished = (words: string): boolean => words.startsWith('Do nothing yet');

/** Returns the call that passes the rest of a request to the running task; null if no task has the first part. */
export function restOf({ status, task }: ReturnType<typeof propertiesOf>, words: string) {
  const input = { action: 'tell', task, words };
  return status === 'already_in_progress' ? { name: RUNNING_TASK, input } : null;
}

function textsOf({ memory }: ConformanceTurn): readonly string[] {
  return memory.map(({ text }) => text);
}

/** Returns the text that the model should speak unchanged and outside the conversation. */
function exactWordsIn(instructions: string): string | null {
  const [, quoted] = /Say exactly ("(?:[^"\\]|\\.)*"), and nothing else/.exec(instructions) ?? [];
  return quoted === undefined ? null : (JSON.parse(quoted) as string);
}

/** Returns what the model says while a call is running. */
function messageIn(text: string): string | null {
  return /"message\\?":\s*\\?"([^"\\]*)/.exec(text)?.[1] ?? null;
}

/** Returns the model's reply to user input. */
export function replyTo(words: string): string {
  return `You said: ${words}.`;
}
