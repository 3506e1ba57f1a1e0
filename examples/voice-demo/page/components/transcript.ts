// The words of both sides, and between them the starts and ends of subagents.

import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import type {
  SubagentView,
  TranscriptItem,
} from '../../../../src/actors/contracts/session-views.ts';
import { humanName, taskTitle } from '../format.ts';
import { answeredHere, calls, floor, questions, subagents, transcript } from '../store.ts';
import { isListening } from '../voice.ts';

type Line =
  | { readonly type: 'speech'; readonly at: number; readonly item: TranscriptItem }
  | { readonly type: 'direction'; readonly at: number; readonly id: string; readonly text: string };

/** Closer to the end than this, the page follows what is said. */
const NEAR_END_PX = 120;

export function Transcript() {
  const box = useRef<HTMLDivElement>(null);
  const lines = script();
  const last = lines.at(-1);
  const length = last?.type === 'speech' ? last.item.text.length : 0;
  const follows = useRef(true);
  useEffect(() => {
    const element = box.current;
    if (element && follows.current) element.scrollTop = element.scrollHeight;
  }, [lines.length, length]);
  // A keyboard on the screen, a turned phone: the end stays in sight.
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (follows.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const onScroll = ({ currentTarget }: { currentTarget: HTMLElement }): void => {
    const { scrollHeight, scrollTop, clientHeight } = currentTarget;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  };
  return html`
    <div
      class="transcript"
      ref=${box}
      onScroll=${onScroll}
      role="region"
      tabindex="0"
      aria-label="What was said"
    >
      <div class="script">
        ${lines.length === 0 && html`<p class="direction">The stage is yours.</p>`}
        ${lines.map((line) =>
          line.type === 'speech'
            ? html`<${Speech} key=${line.item.id} item=${line.item} />`
            : html`<p class="direction" key=${line.id}>${line.text}</p>`,
        )}
        <${Floor} />
      </div>
      <${Announcer} />
    </div>
  `;
}

function Speech({ item: { role, text, final, interrupted } }: { item: TranscriptItem }) {
  const classes = ['speech', `speech-${role}`, final ? '' : 'speech-partial'];
  return html`
    <p class=${classes.join(' ')}>
      <b class="speaker">${role === 'user' ? 'You' : 'Lead'}</b>
      <span
        >${text}${interrupted && html`<span class="cut" title="You broke in here"> —</span>`}</span
      >
    </p>
  `;
}

/** The subagents that the lead agent waits for. */
function Floor() {
  if (isListening.value && floor.value === 'user')
    return html`<p class="direction" aria-hidden="true"><${Dots} /> listening</p>`;
  return null;
}

function Dots() {
  return html`<span class="dots"><i></i><i></i><i></i></span>`;
}

/** For screen readers: each line once, when it is whole. Reading every partial word would help nobody. */
function Announcer() {
  const whole = transcript.value.findLast(({ final, text }) => final && text.trim() !== '');
  return html`
    <p class="visually-hidden" role="log" aria-live="polite">
      ${whole ? `${whole.role === 'user' ? 'You' : 'Lead'}: ${whole.text}` : ''}
    </p>
  `;
}

function script(): readonly Line[] {
  const lines: Line[] = transcript.value
    .filter(({ text }) => text.trim() !== '')
    .map((item) => ({ type: 'speech', at: item.at, item }));
  for (const subagent of subagents.value) {
    const { id, startedAt, endedAt } = subagent;
    lines.push({ type: 'direction', at: startedAt, id: `${id}:enter`, text: entrance(subagent) });
    if (endedAt !== null)
      lines.push({ type: 'direction', at: endedAt, id: `${id}:exit`, text: exit(subagent) });
  }
  for (const { requestId, subagentName, answer } of questions.value) {
    const at = answeredHere.value.get(requestId);
    if (at === undefined || answer === null) continue;
    const text = `You answered the ${humanName(subagentName)}: ${answer}.`;
    lines.push({ type: 'direction', at, id: `${requestId}:answer`, text });
  }
  return lines.toSorted((a, b) => a.at - b.at);
}

function entrance(subagent: SubagentView): string {
  const title = taskTitle(subagent, calls.value.get(subagent.callId ?? ''));
  return `The ${humanName(subagent.name)} goes to work: ${title.charAt(0).toLowerCase()}${title.slice(1)}.`;
}

function exit({ name, state, outcome }: SubagentView): string {
  const who = `The ${humanName(name)}`;
  if (state === 'completed') return `${who} is done.`;
  if (state === 'cancelled') return `${who} was stopped.`;
  return `${who} gave up${outcome?.error ? `: ${outcome.error.message}` : ''}.`;
}
