// The session at this page: its client, and what the page does beside it.

import { connect } from 'offstage/client';

// The fragment never reaches the server, so the token is in no log.
const token = location.hash.slice(1);
export const client = connect({ url: '/offstage', token, transport: 'websocket' });
// The link of a new start, in the same tab, differs in its fragment only.
addEventListener('hashchange', () => location.reload());

/** Begins, by voice or, silently, by keyboard, or changes between them. */
export async function start(speaks: boolean): Promise<void> {
  sessionStorage.setItem('started', speaks ? 'voice' : 'text');
  if ((await client.speaker.start({ silent: !speaks })) === 'blocked' || !speaks) return;
  const mode = localStorage.getItem('talk-mode') === 'push' ? 'push' : 'open';
  await client.microphone.start({ mode });
}

export async function say(text: string): Promise<void> {
  if (client.speaker.status.get().state === 'off') await start(false);
  await client.send(text);
}

/** Asks a route of the server; null: it gives no answer, because it was killed. */
export async function request(path: string, body?: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}` };
  const posted = body && { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(path, { headers, ...posted }).catch(() => null);
  return response?.ok ? response.json() : null;
}

// After a reload the conversation goes on, if the browser lets it sound.
const started = sessionStorage.getItem('started');
if (started !== null) void start(started === 'voice');
