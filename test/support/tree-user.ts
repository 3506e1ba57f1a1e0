// The user in a story of a tree, with a screen and, in a voice session, a loudspeaker. The user speaks, clicks,
// interrupts, leaves and comes back. In a story about a program, the program takes the user's place.

import type { GivenAnswer } from '../../src/actors/subagent/ask-user.ts';
import type { AskedQuestion } from '../../src/actors/contracts/records.ts';
import { optionsOf } from './tree-model.ts';
import { CONSENT, numberOf, SECOND, type QuestionBook } from './tree-questions.ts';
import type { Place } from './tree-scene.ts';
import type { Stage } from './tree-stage.ts';

const OTHER_WORDS = [
  'what time is it?',
  'wait',
  'no',
  'banana',
  'tell me about the weather instead',
] as const;
const CONSENTS = [...CONSENT];

export class TreeUser {
  readonly #stage: Stage;
  readonly #book: QuestionBook;
  readonly #place: Place;
  #leave: (() => void) | null = null;
  /** The item that the loudspeaker has not yet played. */
  #unplayed: string | null = null;
  #utterances = 0;

  constructor(stage: Stage, book: QuestionBook, place: Place) {
    this.#stage = stage;
    this.#book = book;
    this.#place = place;
    const { session } = place;
    session?.events.subscribe(({ type }) => {
      if (type === 'playout.clear') this.#unplayed = null;
    });
    if (!session) return;
    if ('parts' in session) session.parts.subscribe();
    else
      session.audioOut.subscribe(({ itemId }) => {
        this.#unplayed = itemId ?? null;
      });
  }

  attach(): void {
    if (!this.#stage.isClosing) this.#leave ??= this.#place.session?.attach() ?? null;
  }

  detach(): void {
    if (this.#leave) this.#stage.count('detached');
    this.#leave?.();
    this.#leave = null;
  }

  /** Says something that may be about the current question. */
  speaks(n: number): void {
    const { owner } = this.#book;
    const [first, second] = owner?.options ?? [];
    const about =
      owner?.kind === 'approval'
        ? [...CONSENTS, 'no', 'yes', 'maybe']
        : first && second
          ? [`${first.label}, please`, second.label, SECOND, `something like ${n} would be best`]
          : [`I want ${n} of them`, `number ${n} it is`];
    const words = n % 4 === 3 ? OTHER_WORDS[n % OTHER_WORDS.length] : about[n % about.length];
    this.#say(words ?? 'hello');
  }

  /** Interrupts the lead agent if it is speaking. */
  breaksIn(): void {
    if (this.#unplayed === null) {
      this.#model?.begin('And so it goes on.', 3000);
      if (this.#unplayed === null) return;
    }
    this.#stage.count('barge-ins');
    this.#say('hold on a second please');
  }

  clicks(n: number, how: 'now' | 'late' | 'wrong'): void {
    const { all, owner } = this.#book;
    const asked = how === 'late' ? all[n % Math.max(1, all.length)] : owner;
    const { session } = this.#place;
    if (!asked || !session) return;
    const optionId = how === 'wrong' ? 'none' : (asked.options[n % 2]?.id ?? 'none');
    const { requestId } = asked;
    const click = (): void =>
      this.#book.clicked(requestId, { optionId }, () => session.answer(requestId, { optionId }));
    click();
    // A second click at the same moment. Only one of the two counts.
    if (n % 5 === 0) click();
  }

  /** Plays all audio to the end and lets the voice model speak the requested messages. */
  listens(): void {
    const { session } = this.#place;
    if (!session || 'parts' in session) return;
    if (this.#unplayed !== null) {
      const itemId = this.#unplayed;
      this.#unplayed = null;
      session.playout.next({ itemId, playedMs: 1000 });
    }
    this.#model?.speak('Some words.', 1000);
    const { owner } = this.#book;
    if (owner) session.questionShown(owner.requestId);
  }

  get #model() {
    const { transport } = this.#place;
    if (!transport || transport.connections.length === 0) return null;
    const { current } = transport;
    return current.isClosed || current.openRequests.length === 0 ? null : current;
  }

  /** Returns the answer that a program gives in the user's place. */
  async answers(question: AskedQuestion, signal: AbortSignal): Promise<GivenAnswer | null> {
    const stage = this.#stage;
    const number = numberOf(question);
    const chance = Math.floor(stage.environment.random.next() * 8);
    stage.count('program asked');
    if (chance === 0) return null;
    if (chance === 1) return new Promise(() => {});
    if (chance > 4) await stage.takes(chance * 500);
    if (signal.aborted) return null;
    if (question.kind === 'approval') {
      const approved = chance % 2 === 0;
      if (approved) stage.consents.set(number, 1);
      return { approved };
    }
    const [option] = optionsOf(number);
    return question.options.length > 0 ? { optionId: option?.id ?? '' } : { text: `T${number}` };
  }

  #say(text: string): void {
    const { session, transport } = this.#place;
    if (!session || this.#stage.isClosing) return;
    this.#book.said(text);
    this.#stage.count('utterances');
    if (transport) {
      // An utterance during the lead agent's speech, or just before it, interrupts the speech.
      for (const person of this.#stage.live) if (person.wantsBargeIn) person.blamed.add('barge-in');
      this.#utterances += 1;
      transport.current.utterance(text, `said_${this.#utterances}`);
    } else void session.sendText(text);
  }
}
