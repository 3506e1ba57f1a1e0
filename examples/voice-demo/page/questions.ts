// Questions of the subagents: one is asked at a time, the others stand in line.

import { html as view } from 'htm/preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { QuestionView } from 'offstage';
import { Icon } from './frame.ts';
import {
  answer,
  choose,
  client,
  endedAt,
  humanName,
  isOver,
  now,
  openQuestions,
  refusals,
  session,
} from './session.ts';

/** The end of a question stays visible for this time. */
const ENDED_MS = 5000;

export function Questions() {
  const open = openQuestions.value;
  // `now` is read so that they go away in time.
  const since = now.value && Date.now() - ENDED_MS;
  const closed = session.value.questions.filter(
    (each) => isOver(each) && (endedAt.value.get(each.requestId) ?? 0) > since,
  );
  return view`<section class="questions" aria-label="Questions for you" hidden=${open.length + closed.length === 0}>
    <h2 class="section-title">For you ${open.length > 1 && view`<small>one at a time, first come first served</small>`}</h2>
    <ol class="cards" aria-live="polite">
      ${closed.map((question) => view`<${Closed} key=${question.requestId} question=${question} />`)}
      ${open.map((question, index) => view`<${Card} key=${question.requestId} question=${question} place=${index + 1} />`)}
    </ol>
  </section>`;
}

function Card({ question, place }: { question: QuestionView; place: number }) {
  const { requestId, subagentName, kind, state, options, action } = question;
  const isAsked = state === 'presenting' || state === 'open';
  useEffect(() => {
    if (isAsked) void client.questionShown(requestId);
  }, [requestId, state]);
  const box = useRef<HTMLLIElement>(null);
  // The button that had the focus goes away with its question: the keyboard shall not start anew at the top.
  useLayoutEffect(() => {
    const element = box.current;
    return () => {
      if (element?.contains(document.activeElement))
        document.querySelector<HTMLElement>('.transcript')?.focus({ preventScroll: true });
    };
  }, []);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const text = new FormData(event.currentTarget as HTMLFormElement).get('text');
    if (typeof text === 'string' && text.trim() !== '')
      void answer(question, { text: text.trim() });
  };
  const turns: Partial<Record<QuestionView['state'], string>> = {
    presenting: 'is being asked',
    open: 'say it or press it',
    parked: 'waits for you to come back',
    queued: `${ordinal(place)} in line`,
  };
  const refusal = refusals.value.get(requestId);
  return view`<li ref=${box}><article class=${`card question ${isAsked ? 'question-asked' : 'question-queued'}`} aria-labelledby=${`q-${requestId}`}>
    <header class="card-head"><span class="card-from">${humanName(subagentName)}</span><span class="card-turn">${turns[state]}</span></header>
    <h3 id=${`q-${requestId}`}>${wordsOf(question)}</h3>
    ${kind === 'approval' && view`<p class="hint">It does this only if you allow it.</p>`}
    ${
      action &&
      view`<dl class="action">${fieldsOf(action.input).map(
        ([name, value]) =>
          view`<div key=${name}><dt>${humanName(name)}</dt><dd>${value}</dd></div>`,
      )}</dl>`
    }
    <div class="options">${options.map(
      (
        { id, label, description },
        index,
      ) => view`<button class="option" type="button" key=${id} disabled=${!isAsked} onClick=${() => choose(question, index)}>
      <span class="option-label">${label}</span>${description && view`<span class="option-detail">${description}</span>`}
      ${isAsked && view`<kbd aria-hidden="true">${index + 1}</kbd>`}</button>`,
    )}</div>
    ${
      options.length === 0 &&
      isAsked &&
      view`<form class="say" onSubmit=${submit}>
      <input type="text" name="text" autocomplete="off" aria-label="Your answer" placeholder="Your answer" />
      <button class="icon-button" type="submit" aria-label="Answer" title="Answer"><${Icon} name="send" /></button></form>`
    }
    ${refusal && view`<p class="problem" role="alert">${refusal}</p>`}
    ${isAsked && view`<${Clock} question=${question} />`}
  </article></li>`;
}

/** The words of a question; of an approval without the call, which its card shows below. */
const wordsOf = ({ question, action }: QuestionView): string =>
  action ? question.replace(` with ${JSON.stringify(action.input)}`, '') : question;

/** The arguments of a call in lines. */
function fieldsOf(input: unknown): readonly (readonly [string, string])[] {
  const text = (value: unknown): string =>
    typeof value === 'string' ? value : JSON.stringify(value);
  const isRecord = typeof input === 'object' && input !== null && !Array.isArray(input);
  if (!isRecord) return [['input', text(input)]];
  return Object.entries(input).map(([name, value]) => [name, text(value)]);
}

function Clock({ question: { dueAt, timeoutMs } }: { question: QuestionView }) {
  if (dueAt === null) return view`<p class="clock">The clock starts when you have heard it.</p>`;
  const left = Math.min(timeoutMs, Math.max(0, dueAt - now.value));
  const seconds = Math.ceil(left / 1000);
  return view`<p class=${`clock ${left < 15_000 ? 'clock-late' : ''}`}>
    <progress max=${timeoutMs} value=${left} aria-label="Time to answer"></progress>
    <time>${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}</time></p>`;
}

function Closed({ question: { state, answer: given, question } }: { question: QuestionView }) {
  const ends: Partial<Record<QuestionView['state'], string>> = {
    answered: `You answered: ${given ?? ''}`,
    expired: 'No answer came in time',
    withdrawn: 'Not needed any more',
    superseded: 'Asked anew',
  };
  return view`<li><p class="card question-over"><${Icon} name=${state === 'answered' ? 'check' : 'close'} />
    <span><span class="visually-hidden">${question} </span>${ends[state]}</span></p></li>`;
}

/** `2nd`. */
function ordinal(place: number): string {
  return `${place}${(place > 10 && place < 14) || place % 10 > 3 ? 'th' : (['th', 'st', 'nd', 'rd'][place % 10] ?? 'th')}`;
}
