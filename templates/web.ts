// The server: the session, its page, and a link. Anyone who has the link can open the page.

import { TextSession } from 'offstage';
import { serveLocally } from 'offstage/serve';
import { lead, subagentConfigs } from './agents.ts';
import { model } from './model.ts';

const session = new TextSession({ model, agents: [lead], subagentConfigs });
// To reach users on other machines, call `serve` in your own server, which authenticates them.
const { url } = await serveLocally({
  session,
  page: { folder: `${import.meta.dirname}/web` },
  port: Number(process.env['PORT'] ?? 3000),
  tokenFile: `${import.meta.dirname}/.token`, // keeps the link the same after a restart
});
console.log('Open', url);
