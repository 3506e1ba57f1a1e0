// The server: the session that speaks and listens, and its page. With OPENAI_API_KEY through OpenAI Realtime; without, a
// voice on this machine around the model of model.ts.

import { createServer } from 'node:http';
import { VoiceSession } from 'offstage';
import { localVoice } from 'offstage/local-voice';
import { nodeEnvironment } from 'offstage/node';
import { openaiRealtime } from 'offstage/openai-realtime';
import { serve } from 'offstage/serve';
import { createServer as createVite } from 'vite';
import { lead, subagentConfigs } from './agents.ts';
import { model } from './model.ts';

const local = process.env['OPENAI_API_KEY']
  ? null
  : await localVoice({ model, environment: nodeEnvironment() }).start();
const session = new VoiceSession({
  transport: openaiRealtime(local ? { url: local.url, apiKey: local.apiKey } : {}),
  model, // of the subagents
  agents: [lead],
  subagentConfigs,
});
const web = serve({
  session: () => session,
  // Everybody on this machine is the same user. In your app: who has this cookie or token?
  authorize: () => ({ sessionId: session.id, user: 'me', role: 'user' }),
});
const http = createServer();
const vite = await createVite({
  root: `${import.meta.dirname}/voice`,
  server: { middlewareMode: true, ws: { server: http } },
  // The client finds its audio worklet beside itself.
  optimizeDeps: { exclude: ['offstage'] },
});
http.on('request', (request, response) =>
  web.handle(request, response, () => vite.middlewares(request, response)),
);
http.on('upgrade', web.upgrade);
http.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log('Open', `http://127.0.0.1:${(http.address() as { port: number }).port}`);
});
