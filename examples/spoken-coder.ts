// A voice session whose lead agent delegates to a third-party agent, for 22-agent-by-voice.ts and
// 23-claude-by-voice.ts. A fake server, on the OpenAI Realtime wire, is the voice model, and a script speaks for the
// user. In your program, use a transport such as `openaiRealtime()` and a microphone.

import { defineSubagent, defineTool, type QuestionView, VoiceSession } from 'offstage';
import { nodeEnvironment } from 'offstage/node';
import { openaiRealtime } from 'offstage/openai-realtime';
import type { Relay } from 'offstage/subagents';
import { readNotes, scriptedModel } from 'offstage/testing';
import { createVoiceServer, type VoiceResponder } from 'offstage/testing/voice-server';
import { z } from 'zod';

export interface SpokenCoder {
  readonly relay: Relay;
  readonly instructions: string;
  /** Returns the user's answer to a question that they have heard. */
  readonly answer: (question: QuestionView) => string;
  readonly log: (line: string) => void;
}

/** The lead agent: it passes tasks on, cancels them, and says what a note contains. */
const lead: VoiceResponder = ({ cause, instructions, model }) => {
  if (instructions !== null) {
    const texts = model.items.map((item) =>
      'text' in item ? item.text : 'output' in item ? String(item.output) : '',
    );
    const notes = readNotes(texts.join('\n'));
    const note = notes.find(({ mark, text }) => text && instructions.includes(`note ${mark}`));
    return [{ say: note?.text ?? 'One moment.' }];
  }
  if (cause.type !== 'utterance') return [];
  if (/\b(?:cancel|stop)\b/i.test(cause.text)) return [{ call: 'cancel_coder', arguments: {} }];
  if (/\b(?:fix|put)\b/i.test(cause.text))
    return [{ say: 'I pass it on.' }, { call: 'ask_coder', arguments: { task: cause.text } }];
  return [];
};

export async function spokenCoder({ relay, instructions, answer, log }: SpokenCoder) {
  const environment = nodeEnvironment();
  const server = createVoiceServer({ environment, respond: lead });
  const session: VoiceSession = new VoiceSession({
    environment,
    transport: openaiRealtime({ apiKey: 'a-key', webSocket: server.webSocket }),
    model: scriptedModel({}),
    agents: [
      {
        name: 'lead',
        instructions: 'You talk to the user; the coder changes files.',
        tools: [
          defineTool({
            name: 'ask_coder',
            description: 'Let the coding agent change files',
            parameters: z.object({ task: z.string() }),
            execution: 'background',
          }),
          defineTool({
            name: 'cancel_coder',
            description: 'Cancel what the coding agent does',
            parameters: z.object({}),
            execution: 'inline',
            execute: () => {
              for (const { id } of session.subagents.list()) session.subagents.cancel(id);
              return 'cancelled';
            },
          }),
        ],
      },
    ],
    subagentConfigs: { ask_coder: defineSubagent({ name: 'coder', instructions, relay }) },
  });
  const say = async (text: string): Promise<void> => {
    log(`user (by voice): ${text}`);
    await server.connections[0]?.user.says(text, { durationMs: 400 });
  };
  // A loudspeaker that plays everything at once.
  const played = new Map<string, number>();
  session.audioOut.subscribe(({ itemId = '', samples, sampleRateHz }) => {
    const playedMs = (played.get(itemId) ?? 0) + (samples.length * 1000) / sampleRateHz;
    played.set(itemId, playedMs);
    session.playout.next({ itemId, playedMs });
  });
  session.transcript.subscribe(({ role, text, final }) => {
    if (role === 'assistant' && final) log(`lead (by voice): ${text}`);
  });
  const answered = new Set<string>();
  session.questions.subscribe((question) => {
    if (question.state !== 'open' || answered.has(question.requestId)) return;
    answered.add(question.requestId);
    void say(answer(question));
  });
  session.attach();
  await session.start();
  return {
    session,
    say,
    async close(): Promise<void> {
      await session.close();
      await server.close();
    },
  };
}
