// The server: the voice session and its page. With OPENAI_API_KEY the voice is OpenAI Realtime; without the key it is a
// local voice around the model of model.ts.

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
  model, // the model of the subagents
  agents: [lead],
  subagentConfigs,
});
// To reach users on other machines, call `serve` in your own server, which authenticates them.
const { url } = await serveLocally({
  session,
  page: { folder: `${import.meta.dirname}/voice` },
  port: Number(process.env['PORT'] ?? 3000),
  tokenFile: `${import.meta.dirname}/.token`, // keeps the link the same after a restart
});
console.log('Open', url);
