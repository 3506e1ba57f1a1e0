// The page that a relay serves: it shows an inspector in a frame and forwards the messages of the WebSocket
// to it. The token is in the fragment of its address, which browsers do not send.
//
// Invariants
//   RELAY-PAGE-1. Only the frame with the inspector receives the stream and may request it: both are checked
//       by origin.
//   RELAY-PAGE-2. Whenever the inspector (re)connects, the stream begins anew, with all actors.

export interface RelayPage {
  readonly html: string;
  readonly script: string;
  readonly contentSecurityPolicy: string;
}

/** `inspectorUrl` is shown in the frame; `host` is the relay's own `name:port`. */
export function relayPage(inspectorUrl: string, host: string): RelayPage {
  const { origin } = new URL(inspectorUrl);
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Offstage in the Stately Inspector</title>
<link rel="stylesheet" href="/page.css">
<p id="state" role="status">Waiting for the inspector at ${escaped(origin)} (this needs the network)</p>
<iframe id="inspector" title="Stately Inspector" src="${escaped(inspectorUrl)}"></iframe>
<script src="/page.js" data-origin="${escaped(origin)}"></script>
</html>
`;
  const contentSecurityPolicy = [
    `default-src 'none'`,
    `script-src 'self'`,
    `style-src 'self'`,
    `connect-src ws://${host}`,
    `frame-src ${origin}`,
    `frame-ancestors 'none'`,
    `base-uri 'none'`,
    `form-action 'none'`,
  ].join('; ');
  return { html, script, contentSecurityPolicy };
}

export const relayStyle = `html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; font: 14px system-ui, sans-serif; }
p { margin: 0; padding: 6px 12px; }
iframe { flex: 1; border: 0; }
`;

const script = `const { origin } = document.currentScript.dataset;
const frame = document.getElementById('inspector');
const state = document.getElementById('state');
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
let socket;
function connect() {
  socket?.close();
  const opened = new WebSocket('ws://' + location.host + '/stream?token=' + encodeURIComponent(token));
  socket = opened;
  opened.onopen = () => { state.textContent = 'Connected'; };
  opened.onmessage = ({ data }) => frame.contentWindow.postMessage(JSON.parse(data), origin);
  opened.onclose = () => {
    if (socket !== opened) return;
    state.textContent = 'Not connected: the program has ended, or this address is an old one';
    setTimeout(() => { if (socket === opened) connect(); }, 2000);
  };
}
addEventListener('message', (event) => {
  if (event.origin !== origin || event.source !== frame.contentWindow) return;
  if (event.data?.type === '@statelyai.connected') connect();
});
`;

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
