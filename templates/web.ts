// The server: the session, the WebSocket of the page, and the page itself.

import { createServer } from 'node:http';
import { TextSession } from 'offstage';
import { serve } from 'offstage/serve';
import { createServer as createVite } from 'vite';
import { lead, subagentConfigs } from './agents.ts';
import { model } from './model.ts';

const session = new TextSession({ model, agents: [lead], subagentConfigs });
const web = serve({
  session: () => session,
  // Everybody on this machine is the same user. In your app: who has this cookie or token?
  authorize: () => ({ sessionId: session.id, user: 'me', role: 'user' }),
});
const http = createServer();
const vite = await createVite({
  root: `${import.meta.dirname}/web`,
  server: { middlewareMode: true, ws: { server: http } },
});
http.on('request', (request, response) =>
  web.handle(request, response, () => vite.middlewares(request, response)),
);
http.on('upgrade', web.upgrade);
http.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log('Open', `http://127.0.0.1:${(http.address() as { port: number }).port}`);
});
