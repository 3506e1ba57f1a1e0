// The server of a telephone number at Twilio. Without TWILIO_AUTH_TOKEN nobody can call, so the terminal acts as the
// telephone (rehearsal.ts). With OPENAI_API_KEY the voice is OpenAI Realtime; without the key it is a local voice.

import { createServer } from 'node:http';
import { VoiceSession } from 'offstage';
import { localVoice } from 'offstage/local-voice';
import { nodeEnvironment } from 'offstage/node';
import { openaiRealtime } from 'offstage/openai-realtime';
import { isTwilioRequest, streamTwiml, twilioCalls, type TwilioCall } from 'offstage/twilio';
import { lead, subagentConfigs } from './agents.ts';
import { model } from './model.ts';
import { rehearse } from './rehearsal.ts';

const environment = nodeEnvironment();
const local = process.env['OPENAI_API_KEY']
  ? null
  : await localVoice({ model, environment }).start();

async function onCall(call: TwilioCall): Promise<VoiceSession> {
  const session = new VoiceSession({
    transport: openaiRealtime(local ? { url: local.url, apiKey: local.apiKey } : {}),
    model, // the model of the subagents
    agents: [lead],
    subagentConfigs,
  });
  call.connect(session); // until then the session keeps the caller's words
  await session.start();
  void call.ended.then(() => session.close());
  return session;
}

const authToken = process.env['TWILIO_AUTH_TOKEN'];
const host = process.env['PUBLIC_HOST']; // the name that Twilio connects to, such as that of a tunnel
if (!authToken || !host) {
  console.log(
    'REHEARSAL: without TWILIO_AUTH_TOKEN and PUBLIC_HOST, what you type is said by the caller.',
  );
  await rehearse(environment, onCall);
} else {
  // Set the number's webhook at Twilio to https://<PUBLIC_HOST>/incoming, method GET.
  const http = createServer((request, response) => {
    const signature = request.headers['x-twilio-signature'];
    const isTrue = isTwilioRequest(authToken, { signature, url: `https://${host}${request.url}` });
    response.writeHead(isTrue ? 200 : 403, { 'content-type': 'text/xml' });
    response.end(isTrue ? streamTwiml(`wss://${host}/call`) : '');
  });
  const calls = await twilioCalls({
    authToken,
    url: `wss://${host}/call`,
    environment,
    onError: console.error,
    onCall: async (call) => void (await onCall(call)),
  });
  http.on('upgrade', (request, socket, head) => void calls.upgrade(request, socket, head));
  // Serves a tunnel on this machine. Set HOST=0.0.0.0 if Twilio reaches this machine directly.
  http.listen(Number(process.env['PORT'] ?? 3000), process.env['HOST'] ?? '127.0.0.1');
}
