// The left side: the words of both sides, between them what subagents and buttons did, and the controls to speak and type.

import { html as view } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { SubagentView, TranscriptItem } from 'offstage';
import { Icon } from './frame.ts';
import {
  answeredAt,
  client,
  humanName,
  link,
  microphone,
  mode,
  say,
  session,
  speaker,
  start,
  toggleMute,
} from './session.ts';

/** Closer to the end than this, the page follows what is said. */
const NEAR_END_PX = 120;
/** The longest words of each line: who reads has read them, though the voice was cut off. */
const read = new Map<string, string>();

export function Conversation() {
  return view`<section class="stage" aria-label="Conversation"><${Transcript} /><${Composer} /></section>`;
}

function Transcript() {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const toEnd = (): void => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useEffect(toEnd);
  // A keyboard on the screen, a turned phone: the end stays in sight.
  useEffect(() => {
    const observer = new ResizeObserver(toEnd);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const onScroll = ({
    currentTarget: { scrollHeight, scrollTop, clientHeight },
  }: {
    currentTarget: HTMLElement;
  }): void => {
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  };
  const { transcript, floor } = session.value;
  const lines = script();
  const cut = transcript.findLast(({ interrupted }) => interrupted);
  const whole = transcript.findLast(({ final, text }) => final && text.trim() !== '');
  return view`<div class="transcript" ref=${box} onScroll=${onScroll} role="region" tabindex="0" aria-label="What was said">
    <div class="script">
      ${lines.length === 0 && view`<p class="direction">The stage is yours.</p>`}
      ${lines.map(({ id, item, text }) => (item ? view`<${Speech} key=${id} item=${item} isCut=${item === cut} />` : view`<p class="direction" key=${id}>${text}</p>`))}
      ${microphone.value.isOpen && floor === 'user' && view`<p class="direction" aria-hidden="true"><span class="dots"><i></i><i></i><i></i></span> listening</p>`}
    </div>
    ${/* Each line once, when it is whole: to hear every partial word would help nobody. */ ''}
    <p class="visually-hidden" role="log" aria-live="polite">${whole && `${whole.role === 'user' ? 'You' : 'Lead'}: ${whole.text}`}</p>
  </div>`;
}

function Speech({
  item: { role, final, interrupted, ...item },
  isCut,
}: {
  item: TranscriptItem;
  isCut: boolean;
}) {
  const text = wordsOf(item);
  return view`<p class=${`speech speech-${role} ${final ? '' : 'speech-partial'}`}>
    <b class="speaker">${role === 'user' ? 'You' : 'Lead'}</b>
    <span>${text}${interrupted && view`<span class="cut" title="You broke in here"> —</span>`}
      ${isCut && view` <button class="link-button" type="button" onClick=${() => void say('Say that again, please.')}>Say it again</button>`}</span>
  </p>`;
}

function wordsOf({ id, text }: Pick<TranscriptItem, 'id' | 'text'>): string {
  if (mode.value === 'text' && text.length > (read.get(id)?.length ?? 0)) read.set(id, text);
  return read.get(id) ?? text;
}

interface Line {
  readonly at: number;
  readonly id: string;
  readonly item?: TranscriptItem;
  readonly text?: string;
}

function script(): readonly Line[] {
  const { transcript, subagents, questions } = session.value;
  return [
    ...transcript
      .filter((item) => wordsOf(item).trim() !== '')
      .map((item): Line => ({ at: item.at, id: item.id, item })),
    ...subagents.flatMap((each): Line[] => {
      const { id, name, title, startedAt, endedAt } = each;
      const text = `The ${humanName(name)} goes to work: ${title.charAt(0).toLowerCase()}${title.slice(1)}.`;
      const enters = { at: startedAt, id: `${id}:enter`, text };
      return endedAt === null
        ? [enters]
        : [enters, { at: endedAt, id: `${id}:exit`, text: exit(each) }];
    }),
    ...questions.flatMap(({ requestId, subagentName, answer }): Line[] => {
      const at = answeredAt.value.get(requestId);
      const text = `You answered the ${humanName(subagentName)}: ${answer}.`;
      return at === undefined || answer === null ? [] : [{ at, id: `${requestId}:answer`, text }];
    }),
  ].toSorted((a, b) => a.at - b.at);
}

function exit({ name, state, outcome }: SubagentView): string {
  const who = `The ${humanName(name)}`;
  if (state === 'completed') return `${who} is done.`;
  if (state === 'cancelled') return `${who} was stopped.`;
  return `${who} gave up${outcome?.error ? `: ${outcome.error.message}` : ''}.`;
}

function Composer() {
  return view`<div class="composer">
    <div class="composer-row"><${TalkButton} /><${TextField} /></div>
    <div class="composer-row composer-modes">${microphone.value.state === 'on' && view`<${Modes} />`}<p class="hint" role="status">${hint()}</p></div>
  </div>`;
}

function TalkButton() {
  const ring = useRef<HTMLSpanElement>(null);
  // Fifty times a second: past the renderer, straight to the style.
  useEffect(() => {
    const levels = client.microphone.level.subscribe((level) =>
      ring.current?.style.setProperty('--level', microphone.peek().isOpen ? level.toFixed(2) : '0'),
    );
    return () => levels.unsubscribe();
  }, []);
  const { state, mode: talks, isMuted, isOpen } = microphone.value;
  const isOn = state === 'on';
  const pushes = isOn && talks === 'push';
  const label = !isOn
    ? 'Turn the microphone on'
    : pushes
      ? 'Hold to talk'
      : `${isMuted ? 'Unmute' : 'Mute'} the microphone`;
  const press = (): void => (!isOn ? void start(true) : pushes ? undefined : toggleMute());
  const release = (): void => client.microphone.release();
  const hold = (event: Event): void => {
    if (
      !pushes ||
      (event instanceof KeyboardEvent && (event.repeat || ![' ', 'Enter'].includes(event.key)))
    )
      return;
    event.preventDefault();
    client.microphone.hold();
  };
  return view`<button class=${`talk ${isOpen ? 'talk-live' : ''}`} type="button" aria-pressed=${isOpen} aria-label=${label} title=${label}
    aria-keyshortcuts="Space" onClick=${press} onPointerDown=${hold} onPointerUp=${release} onPointerLeave=${release}
    onPointerCancel=${release} onKeyDown=${hold} onKeyUp=${release}>
    <span class="talk-ring" ref=${ring} aria-hidden="true"></span><${Icon} name=${!isOn || isMuted ? 'mic-off' : 'mic'} />
  </button>`;
}

function Modes() {
  const choice = (talks: 'open' | 'push', label: string) => view`<label class="mode">
    <input type="radio" name="talk-mode" checked=${microphone.value.mode === talks} onChange=${() => {
      localStorage.setItem('talk-mode', talks);
      void client.microphone.start({ mode: talks });
    }} /><span>${label}</span></label>`;
  return view`<fieldset class="modes"><legend class="visually-hidden">How you talk</legend>
    ${choice('open', 'Open microphone')}${choice('push', 'Push to talk')}
    <label class="mode"><input type="checkbox" checked=${microphone.value.isMuted} aria-keyshortcuts="M" onChange=${toggleMute} />
      <span>Mute</span></label></fieldset>`;
}

function hint(): string {
  const { state, isMuted, mode: talks } = microphone.value;
  if (link.value.state !== 'open') return 'Waiting for the connection.';
  if (!link.value.ownsVoice) return 'You are heard in another tab; typing works here too.';
  if (mode.value === 'text') return 'Nothing is spoken. Press the microphone to talk.';
  if (state === 'asking') return 'The browser asks whether this page may listen.';
  if (state === 'denied')
    return 'The microphone was refused: type, or allow it in the address bar.';
  if (state === 'missing') return 'There is no microphone: type instead.';
  if (speaker.value.state === 'silent') return 'This browser has no sound; read along.';
  if (state === 'off') return 'Press the microphone to talk.';
  if (isMuted) return 'You are muted.';
  return talks === 'push' ? 'Hold the button or Space, and speak.' : 'Just speak.';
}

function TextField() {
  const [text, setText] = useState('');
  const field = useRef<HTMLInputElement>(null);
  // The button that was pressed to type is gone: the keyboard goes on here.
  useEffect(() => {
    if (mode.peek() === 'text') field.current?.focus();
  }, []);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (text.trim() === '') return;
    void say(text.trim());
    setText('');
  };
  return view`<form class="say" onSubmit=${submit}>
    <label class="visually-hidden" for="say">Type to the lead agent</label>
    <input id="say" ref=${field} type="text" autocomplete="off" maxlength="2000" placeholder="Or type here" aria-keyshortcuts="/"
      value=${text} onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setText(currentTarget.value)} />
    <button class="icon-button" type="submit" aria-label="Send" title="Send" disabled=${link.value.state !== 'open' || text.trim() === ''}>
      <${Icon} name="send" /></button>
  </form>`;
}
