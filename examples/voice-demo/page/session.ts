// The client of the session, and the page's other requests to the server.

import { connect } from 'offstage/client';

// The fragment never reaches the server, so the token is in no log.
const token = location.hash.slice(1);
export const client = connect({ url: '/offstage', token, transport: 'websocket' });
// After a restart of the demo, only the fragment of the link changes, and a tab does not reload for that.
addEventListener('hashchange', () => location.reload());

/** Begins the conversation by voice or by keyboard (without audio), or changes between the two. */
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

/** Calls a route of the server; null: the server gave no answer, because it was killed. */
export async function request(path: string, body?: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}` };
  const posted = body && { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(path, { headers, ...posted }).catch(() => null);
  return response?.ok ? response.json() : null;
}

// After a reload the conversation continues by voice, if the browser lets the page play audio.
const started = sessionStorage.getItem('started');
if (started !== null) void start(started === 'voice');
