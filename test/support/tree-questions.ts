// The questions in a story and their answers: P2 and P3, as a user experiences them.

import type { QuestionView } from '../../src/index.ts';
import type { Stage } from './tree-stage.ts';

const OWNING: ReadonlySet<string> = new Set(['presenting', 'open', 'parked']);
const OVER: ReadonlySet<string> = new Set(['answered', 'expired', 'withdrawn', 'superseded']);

interface Question {
  view: QuestionView;
  readonly number: number;
  /** The user's reactions while the question was active, in words or clicks. */
  readonly tried: string[];
  clicksAccepted: number;
}

/** Returns the number of the call that asked the question. */
export function numberOf({ question, action }: Pick<QuestionView, 'question' | 'action'>): number {
  return (action?.input as { k: number } | undefined)?.k ?? Number(/^Q(\d+)/.exec(question)?.[1]);
}

/** The words that select the second of two options. */
export const SECOND = 'the second one';

/** Utterances that approve and say nothing else. */
export const CONSENT: ReadonlySet<string> = new Set(['yes', 'yes, go ahead']);

export class QuestionBook {
  readonly #stage: Stage;
  readonly #questions = new Map<string, Question>();

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  get all(): readonly QuestionView[] {
    return [...this.#questions.values()].map(({ view }) => view);
  }

  get owner(): QuestionView | undefined {
    return this.all.find(({ state }) => OWNING.has(state));
  }

  /** Handles a new view of a question. */
  changed(view: QuestionView): void {
    const stage = this.#stage;
    const { requestId, state } = view;
    const known = this.#questions.get(requestId);
    const before = known?.view.state ?? null;
    if (!known) {
      const question = { view, number: numberOf(view), tried: [], clicksAccepted: 0 };
      this.#questions.set(requestId, question);
      stage.count('questions asked');
      if (view.kind === 'approval') stage.count('approvals asked');
    } else known.view = view;
    if (before === state) return;
    stage.expect(
      before === null || !OVER.has(before),
      'P2',
      () => `${requestId} was ${before} and became ${state}`,
    );
    if (OWNING.has(state) && (before === null || !OWNING.has(before))) this.#granted(view);
    if (!OVER.has(state)) return;
    stage.count(`questions ${state}`);
    if (state === 'answered') this.#answered(view, before);
  }

  /** Records the user's words. */
  said(text: string): void {
    const { owner } = this;
    const question = owner && this.#questions.get(owner.requestId);
    if (!question) return;
    question.tried.push(text);
    if (owner.kind === 'approval' && CONSENT.has(text)) this.#consent(question.number, 1);
  }

  /** Records a click by the user. `give` performs the click and returns whether it counted. */
  clicked(
    requestId: string,
    answer: { readonly optionId: string },
    give: () => Promise<{ readonly accepted: boolean }>,
  ): void {
    const question = this.#questions.get(requestId);
    const state = question?.view.state;
    const number = question?.number ?? 0;
    const label = question?.view.options.find(({ id }) => id === answer.optionId)?.label;
    if (label !== undefined && OWNING.has(state ?? '')) question?.tried.push(label);
    const consent = answer.optionId === 'approve' ? 1 : 0;
    this.#consent(number, consent);
    void give().then(({ accepted }) => {
      const stage = this.#stage;
      stage.count(accepted ? 'clicks accepted' : 'clicks refused');
      if (!accepted) {
        this.#consent(number, -consent);
        return;
      }
      if (!question) {
        stage.expect(
          false,
          'P3',
          () => `a click on ${requestId}, which nobody asked, was accepted`,
        );
        return;
      }
      question.clicksAccepted += 1;
      stage.expect(
        question.clicksAccepted === 1 && state !== undefined && !OVER.has(state),
        'P3',
        () => `${requestId} took click number ${question.clicksAccepted} when it was ${state}`,
      );
      stage.expect(
        question.view.state === 'answered' && question.view.answer === label,
        'P3',
        () =>
          `${requestId} took ${label}, and is ${question.view.state} with ${question.view.answer}`,
      );
    });
  }

  /** Checks the questions of an idle tree: a question in the queue must be waiting for another question. */
  check(): void {
    const waiting = this.all.filter(({ state }) => state === 'queued');
    this.#stage.expect(
      waiting.length === 0 || this.owner !== undefined,
      'P2',
      () => `${waiting[0]?.requestId} waits, and nobody has the floor`,
    );
  }

  /** Checks at the end that each answer is in the ledger of the subagent that asked, and nowhere else. */
  end(): void {
    const stage = this.#stage;
    for (const { view, number } of this.#questions.values()) {
      const { requestId, state, subagentId, answer, kind } = view;
      stage.expect(OVER.has(state), 'P2', () => `${requestId} is ${state} at the end`);
      const entries = stage.people.get(subagentId)?.outcome?.toolLedger.filter(({ input }) => {
        const asked = input as { question?: string; k?: number };
        return kind === 'approval' ? asked.k === number : asked.question === view.question;
      });
      const [entry] = entries ?? [];
      stage.expect(
        entries?.length === 1,
        'P3',
        () => `${requestId} is ${entries?.length} times in the ledger`,
      );
      if (!entry || kind === 'approval') continue;
      const read = (entry.output as { userResponse?: string } | null)?.userResponse;
      if (entry.status === 'ok')
        stage.expect(
          state === 'answered' && read === answer,
          'P3',
          () => `${subagentId} read "${read}" for ${requestId}, which is ${state} with "${answer}"`,
        );
      else if (state === 'answered') {
        stage.count('answered too late for who asked');
        const wasBrokenOff =
          stage.people.get(subagentId)?.outcome?.status !== 'completed' ||
          stage.story.journalMs > 0 ||
          stage.journalBroke;
        stage.expect(
          wasBrokenOff,
          'P3',
          () => `${subagentId} never read the answer to ${requestId}`,
        );
      }
    }
  }

  #granted({ requestId }: QuestionView): void {
    const stage = this.#stage;
    for (const { requestId: other, state } of this.all) {
      if (other === requestId) break;
      stage.expect(state !== 'queued', 'P2', () => `${requestId} overtook ${other}`);
    }
    const owners = this.all.filter(({ state }) => OWNING.has(state));
    stage.expect(
      owners.length === 1,
      'P2',
      () => `${owners.map((each) => each.requestId).join()} have the floor`,
    );
  }

  #answered({ requestId, answer, options, kind }: QuestionView, before: string | null): void {
    const stage = this.#stage;
    stage.expect(
      before !== null && OWNING.has(before),
      'P3',
      () => `${requestId} was answered when ${before}`,
    );
    if (kind === 'approval') return;
    const tried = this.#questions.get(requestId)?.tried ?? [];
    const means = (words: string): boolean =>
      words === answer ||
      options.some(
        ({ label }, at) =>
          label === answer && (words === `${label}, please` || (words === SECOND && at === 1)),
      );
    stage.expect(
      tried.some(means),
      'P3',
      () => `${requestId} was answered with "${answer}", but was told only: ${tried.join(' | ')}`,
    );
  }

  #consent(number: number, more: number): void {
    const { consents } = this.#stage;
    consents.set(number, (consents.get(number) ?? 0) + more);
  }
}
