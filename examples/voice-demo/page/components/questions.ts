// Questions of the subagents: one is asked at a time, the others stand in line.

import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type {
  QuestionOption,
  QuestionView,
} from '../../../../src/actors/contracts/session-views.ts';
import { countdown, humanName, ordinal } from '../format.ts';
import { answerProblems, endedAt, isOver, now, openQuestions, questions } from '../store.ts';
import { send } from '../voice.ts';
import { Icon } from './icon.ts';

/** The end of a question stays visible for this time. */
const ENDED_MS = 5000;

export function Questions() {
  const open = openQuestions.value;
  const closed = justClosed();
  return html`
    <section
      class="questions"
      aria-label="Questions for you"
      hidden=${open.length + closed.length === 0}
    >
      <h2 class="section-title">
        For you ${open.length > 1 && html`<small>one at a time, first come first served</small>`}
      </h2>
      <ol class="cards" aria-live="polite">
        ${closed.map((question) => html`<${Closed} key=${question.requestId} question=${question} />`)}
        ${open.map(
          (question, index) =>
            html`<${Card} key=${question.requestId} question=${question} place=${index + 1} />`,
        )}
      </ol>
    </section>
  `;
}

function justClosed(): readonly QuestionView[] {
  // `now` is read so that they go away in time.
  const since = now.value && Date.now() - ENDED_MS;
  return questions.value.filter(
    ({ requestId, state }) => isOver(state) && (endedAt.value.get(requestId) ?? 0) > since,
  );
}

function Card({ question, place }: { question: QuestionView; place: number }) {
  const { requestId, subagentName, kind, state, options } = question;
  const isAsked = state === 'presenting' || state === 'open';
  useEffect(() => {
    if (isAsked) send({ type: 'question.shown', requestId });
  }, [requestId, state]);
  const problem = answerProblems.value.get(requestId);
  const titleId = `question-${requestId}`;
  const box = useRef<HTMLLIElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    return () => {
      if (element?.contains(document.activeElement)) readOn();
    };
  }, []);
  return html`
    <li ref=${box}>
      <article
        class=${`card question ${isAsked ? 'question-asked' : 'question-queued'}`}
        aria-labelledby=${titleId}
      >
        <header class="card-head">
          <span class="card-from">${humanName(subagentName)}</span>
          <${Turn} state=${state} place=${place} />
        </header>
        <h3 id=${titleId}>${question.question}</h3>
        ${kind === 'approval' && html`<p class="hint">It does this only if you allow it.</p>`}
        <div class="options">
          ${options.map(
            (option, index) => html`
              <${Option}
                key=${option.id}
                option=${option}
                number=${isAsked ? index + 1 : null}
                disabled=${!isAsked}
                onChoose=${() => answer(question, option, index)}
              />
            `,
          )}
        </div>
        ${options.length === 0 && isAsked && html`<${FreeAnswer} requestId=${requestId} />`}
        ${problem !== undefined && html`<p class="problem" role="alert">${problem}</p>`}
        ${isAsked && html`<${Clock} question=${question} />`}
      </article>
    </li>
  `;
}

/** The button that had the focus goes away with its question: the keyboard shall not start anew at the top. */
function readOn(): void {
  document.querySelector<HTMLElement>('.transcript')?.focus({ preventScroll: true });
}

function Turn({ state, place }: { state: QuestionView['state']; place: number }) {
  const words: Partial<Record<QuestionView['state'], string>> = {
    presenting: 'is being asked',
    open: 'say it or press it',
    parked: 'waits for you to come back',
    queued: `${ordinal(place)} in line`,
  };
  return html`<span class="card-turn">${words[state] ?? ''}</span>`;
}

function Option({
  option: { label, description },
  number,
  disabled,
  onChoose,
}: {
  option: QuestionOption;
  number: number | null;
  disabled: boolean;
  onChoose: () => void;
}) {
  return html`
    <button class="option" type="button" disabled=${disabled} onClick=${onChoose}>
      <span class="option-label">${label}</span>
      ${description && html`<span class="option-detail">${description}</span>`}
      ${number !== null && html`<kbd aria-hidden="true">${number}</kbd>`}
    </button>
  `;
}

function answer({ requestId, kind }: QuestionView, { id }: QuestionOption, index: number): void {
  // An approval has two buttons, and the first one allows.
  send({
    type: 'question.answer',
    requestId,
    answer: kind === 'approval' ? { approved: index === 0 } : { optionId: id },
  });
}

function FreeAnswer({ requestId }: { requestId: string }) {
  const [text, setText] = useState('');
  const submit = (event: Event): void => {
    event.preventDefault();
    const said = text.trim();
    if (said !== '') send({ type: 'question.answer', requestId, answer: { text: said } });
  };
  return html`
    <form class="say" onSubmit=${submit}>
      <input
        type="text"
        autocomplete="off"
        aria-label="Your answer"
        placeholder="Your answer"
        value=${text}
        onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) =>
          setText(currentTarget.value)}
      />
      <button class="icon-button" type="submit" aria-label="Answer" title="Answer">
        <${Icon} name="send" />
      </button>
    </form>
  `;
}

function Clock({ question: { dueAt, timeoutMs } }: { question: QuestionView }) {
  if (dueAt === null) return html`<p class="clock">The clock starts when you have heard it.</p>`;
  const left = Math.min(timeoutMs, Math.max(0, dueAt - now.value));
  return html`
    <p class=${`clock ${left < 15_000 ? 'clock-late' : ''}`}>
      <progress max=${timeoutMs} value=${left} aria-label="Time to answer"></progress>
      <time>${countdown(left)}</time>
    </p>
  `;
}

function Closed({ question: { state, answer: given, question } }: { question: QuestionView }) {
  const words: Partial<Record<QuestionView['state'], string>> = {
    answered: `You answered: ${given ?? ''}`,
    expired: 'No answer came in time',
    withdrawn: 'Not needed any more',
    superseded: 'Asked anew',
  };
  return html`
    <li>
      <p class="card question-over">
        <${Icon} name=${state === 'answered' ? 'check' : 'close'} />
        <span><span class="visually-hidden">${question} </span>${words[state] ?? ''}</span>
      </p>
    </li>
  `;
}
