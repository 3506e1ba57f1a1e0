// The session at this page: the client, its state as signals, and what the user does.

import { computed, effect, signal } from '@preact/signals';
import type { QuestionView } from 'offstage';
import { connect, type ClientAnswer, type WatchableValue } from 'offstage/client';
import type { About } from './about.ts';

// The fragment never reaches the server, so the token is in no log.
const token = location.hash.slice(1);
export const client = connect({
  url: '/offstage',
  token: token || 'none',
  transport: 'websocket',
  workletUrl: '/offstage/src/client/worklet.ts',
});

function signalOf<T>(watched: WatchableValue<T>) {
  const its = signal(watched.get());
  watched.subscribe((value) => {
    its.value = value;
  });
  return its;
}

export const link = signalOf(client.status);
export const microphone = signalOf(client.microphone.status);
export const speaker = signalOf(client.speaker.status);
export const session = signal(client.store.get().context);
/** The user has begun, by voice or, silently, by keyboard. */
export const mode = signal<'none' | 'voice' | 'text'>('none');
export const about = signal<About | null>(null);
/** The server's time. */
export const now = signal(Date.now());
/** Something went wrong; shown for a while. */
export const trouble = signal<string | null>(null);
/** When a question ended, by its id: it stays in sight for a moment. */
export const endedAt = signal<ReadonlyMap<string, number>>(new Map());
/** When a button here answered it: nobody said these words. */
export const answeredAt = signal<ReadonlyMap<string, number>>(new Map());
/** The refusal of an answer, by question. */
export const refusals = signal<ReadonlyMap<string, string>>(new Map());
/** Light or dark: what the system says, until the user says otherwise. */
const isDark = matchMedia('(prefers-color-scheme: dark)');
const wanted = (): string => localStorage.getItem('theme') ?? (isDark.matches ? 'dark' : 'light');
export const theme = signal(wanted());

export const isOver = ({ state }: QuestionView): boolean =>
  ['answered', 'expired', 'withdrawn', 'superseded'].includes(state);
/** The one that is asked comes first; the others in the order of asking. */
export const openQuestions = computed(() =>
  session.value.questions
    .filter((question) => !isOver(question))
    .toSorted(
      (a, b) =>
        Number(a.state === 'queued') - Number(b.state === 'queued') || a.askedAt - b.askedAt,
    ),
);

const refusalWords: Readonly<Record<string, string>> = {
  not_allowed: 'You may not answer this question.',
  queued: 'It is not its turn yet.',
  not_presented: 'It is not being asked right now.',
  over: 'This question is closed.',
  unclear: 'That did not fit. Please say it in other words, or press a button.',
};

export function begin(): void {
  client.store.subscribe(({ context }) => {
    session.value = context;
  });
  client.events.subscribe((event) => {
    if (event.type === 'question.changed' && isOver(event.question))
      endedAt.value = new Map(endedAt.value).set(event.question.requestId, Date.now());
    if (event.type === 'error.reported') trouble.value = event.message;
    if (event.type === 'tool.in_doubt')
      trouble.value = `Nobody knows whether "${event.toolName}" was done: look before you repeat it.`;
    if (event.type === 'utterance.unanswered')
      trouble.value = 'There is no answer to that. Please say it again.';
  });
  effect(() => void (link.value.state === 'open' && readAbout()));
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value;
  });
  isDark.addEventListener('change', () => (theme.value = wanted()));
  setInterval(() => {
    now.value = client.serverNow();
  }, 250);
  // The link of a new start, in the same tab, differs in its fragment only.
  addEventListener('hashchange', () => location.reload());
  // After a reload the conversation goes on, if the browser lets it sound.
  const started = sessionStorage.getItem('started');
  if (started) void start(started === 'voice');
}

/** Begins, by voice or by text, or changes between them. */
export async function start(speaks: boolean): Promise<void> {
  sessionStorage.setItem('started', speaks ? 'voice' : 'text');
  if ((await client.speaker.start({ silent: !speaks })) === 'blocked') return;
  mode.value = speaks ? 'voice' : 'text';
  const talks = localStorage.getItem('talk-mode') === 'push' ? 'push' : 'open';
  if (speaks) await client.microphone.start({ mode: talks });
}

export function toggleMute(): void {
  if (microphone.value.isMuted) client.microphone.unmute();
  else client.microphone.mute();
}

export async function say(text: string): Promise<void> {
  if (mode.value === 'none') await start(false);
  await client.send(text).catch((error: Error) => (trouble.value = error.message));
}

export async function answer({ requestId }: QuestionView, given: ClientAnswer): Promise<void> {
  const receipt = await client
    .answer(requestId, given)
    .catch((error: Error) => ({ accepted: false as const, reason: error.message }));
  if (receipt.accepted)
    answeredAt.value = new Map(answeredAt.value).set(requestId, client.serverNow());
  const words = receipt.accepted ? '' : (refusalWords[receipt.reason] ?? receipt.reason);
  refusals.value = new Map(refusals.value).set(requestId, words);
}

export function choose(question: QuestionView, index: number): void {
  const option = question.options[index];
  if (option) void answer(question, { optionId: option.id });
}

/** Asks the server for something beside the session. */
export function request(path: string, body?: object): Promise<Response | null> {
  const headers = { authorization: `Bearer ${token}` };
  // A server that was killed gives no answer.
  return fetch(path, {
    headers,
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  }).catch(() => null);
}

async function readAbout(): Promise<void> {
  const response = await request('/about');
  if (!response?.ok) return;
  about.value = (await response.json()) as About;
}

/** `ride_booker` → `ride booker`. */
export const humanName = (name: string): string => name.replaceAll('_', ' ');
