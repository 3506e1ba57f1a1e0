// The server: the session, its page, and a link that lets in whoever has it.

import { TextSession } from 'offstage';
import { serveLocally } from 'offstage/serve';
import { lead, subagentConfigs } from './agents.ts';
import { model } from './model.ts';

const session = new TextSession({ model, agents: [lead], subagentConfigs });
// For users on other machines: `serve` in a server of your own, which knows who is who.
const { url } = await serveLocally({
  session,
  page: { folder: `${import.meta.dirname}/web` },
  port: Number(process.env['PORT'] ?? 3000),
  tokenFile: `${import.meta.dirname}/.token`, // the link stays the same
});
console.log('Open', url);
