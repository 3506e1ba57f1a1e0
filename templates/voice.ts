// The server: the session that speaks and listens, and its page. With OPENAI_API_KEY through OpenAI Realtime; without, a
// voice on this machine around the model of model.ts.

import { VoiceSession } from 'offstage';
import { localVoice } from 'offstage/local-voice';
import { nodeEnvironment } from 'offstage/node';
import { openaiRealtime } from 'offstage/openai-realtime';
import { serveLocally } from 'offstage/serve';
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
// For users on other machines: `serve` in a server of your own, which knows who is who.
const { url } = await serveLocally({
  session,
  page: { folder: `${import.meta.dirname}/voice` },
  port: Number(process.env['PORT'] ?? 3000),
  tokenFile: `${import.meta.dirname}/.token`, // the link stays the same
});
console.log('Open', url);
