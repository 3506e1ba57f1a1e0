// The client of the session, and the page's other requests to the server.

import { connect } from 'offstage/client';

// The fragment never reaches the server, so the token is not logged.
const token = location.hash.slice(1);
export const client = connect({ url: '/offstage', token, transport: 'websocket' });
// After the demo restarts, only the fragment of the link changes, which does not reload the tab.
addEventListener('hashchange', () => location.reload());

/** Starts the conversation by voice or by keyboard (without audio), or switches between the two. */
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

/** Calls a route of the server; null if the server was killed and did not answer. */
export async function request(path: string, body?: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}` };
  const posted = body && { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(path, { headers, ...posted }).catch(() => null);
  return response?.ok ? response.json() : null;
}

// After a reload, the conversation continues by voice if the browser lets the page play audio.
const started = sessionStorage.getItem('started');
if (started !== null) void start(started === 'voice');
