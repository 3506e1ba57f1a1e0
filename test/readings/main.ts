// `npm run readings`: conversations in which readers answer for the models (see README.md here).
//
//   (nothing)          lists the conversations, and how far each one is read
//   play NAME          reads the written answer, continues, and prints the next call without an answer
//   play NAME --model  lets a real model answer: READINGS_MODEL names it (`anthropic/claude-…` through the AI Gateway,
//                      with AI_GATEWAY_API_KEY)
//   show NAME          prints the conversation and what the tools did
//   carry NAME         keeps the answers although texts have changed, and marks them: they must be read again
//   forget NAME        deletes the recording

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { gateway } from 'ai';
import { conversations } from './conversations/index.ts';
import { play, type Conversation, type Played, type Waiting } from './play.ts';
import { parseAnswer, readRecording, writeRecording, type ReadingAnswer } from './recording.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { model: { type: 'boolean', default: false } },
});
const [command = 'list', name = ''] = positionals;

if (command === 'list') await list();
else if (command === 'play') await playOn(conversationOf(name));
else if (command === 'show') show(await play(conversationOf(name), readRecording(name)));
else if (command === 'carry') await carry(conversationOf(name));
else if (command === 'forget')
  writeRecording(conversationOf(name).name, { calls: [], isComplete: false });
else throw new Error(`Expected list, play, show, carry or forget, got ${command}`);

function conversationOf(wanted: string): Conversation {
  const found = conversations.find((each) => each.name === wanted);
  if (found) return found;
  const names = conversations.map((each) => each.name).join(', ');
  throw new Error(`Expected one of ${names}; got "${wanted}"`);
}

async function list(): Promise<void> {
  for (const conversation of conversations) {
    const { calls, waiting, failed } = await play(conversation, readRecording(conversation.name));
    const carried = calls.filter((call) => call.carried).length;
    const state =
      waiting.length === 0
        ? failed.length === 0
          ? 'read'
          : `went wrong: ${failed.join('; ')}`
        : waiting.some(({ isStale }) => isStale)
          ? 'stale: a text has changed'
          : calls.length === 0
            ? 'not read'
            : 'begun';
    const again = carried === 0 ? '' : `, ${carried} to be read again`;
    console.log(
      `${conversation.name.padEnd(24)} ${String(calls.length).padStart(3)} calls, ${state}${again}`,
    );
    console.log(`${' '.repeat(25)}${conversation.about}`);
  }
}

/** Uses the recorded answers and continues until it reaches a call without an answer. */
async function playOn(conversation: Conversation): Promise<void> {
  const callFile = fileOf(conversation.name, 'call.txt');
  for (;;) {
    const played = await play(conversation, readRecording(conversation.name));
    const [waiting] = played.waiting;
    const isComplete = waiting === undefined;
    writeRecording(conversation.name, { calls: [...played.calls], isComplete });
    if (waiting === undefined) {
      rmSync(callFile, { force: true });
      show(played);
      return;
    }
    const answerFile = fileOf(conversation.name, `${played.calls.length}-${waiting.who}.json`);
    const answer = await answerTo(waiting, answerFile);
    if (answer === null) {
      const text = callText(conversation, played, waiting, answerFile);
      writeFileSync(callFile, text);
      console.log(text);
      return;
    }
    const { input: _input, isStale: _isStale, ...reads } = waiting;
    writeRecording(conversation.name, {
      calls: [...played.calls, { ...reads, answer }],
      isComplete: false,
    });
  }
}

async function answerTo(waiting: Waiting, answerFile: string): Promise<ReadingAnswer | null> {
  if (values.model) return askModel(waiting);
  if (!existsSync(answerFile)) return null;
  const answer = parseAnswer(readFileSync(answerFile, 'utf8'));
  rmSync(answerFile);
  return answer;
}

async function askModel({ input }: Waiting): Promise<ReadingAnswer> {
  const id = process.env['READINGS_MODEL'];
  if (id === undefined) throw new Error('Expected READINGS_MODEL to name a model');
  const { content } = await gateway(id).doGenerate(input);
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  const calls = content.flatMap((part) =>
    part.type === 'tool-call'
      ? [{ name: part.toolName, input: JSON.parse(part.input) as unknown }]
      : [],
  );
  return { ...(text !== '' && { text }), ...(calls.length > 0 && { calls }) };
}

function fileOf(conversation: string, file: string): string {
  const folder = fileURLToPath(new URL(`open/${conversation}/`, import.meta.url));
  mkdirSync(folder, { recursive: true });
  return `${folder}${file}`;
}

function callText(
  { name: conversation, wire }: Conversation,
  { calls }: Played,
  { who, after, keeps, reads }: Waiting,
  answerFile: string,
): string {
  const beginning =
    after === null
      ? 'All that it reads:'
      : `It reads the first ${keeps} blocks of call ${after} of this conversation again (blocks begin with <<…>>), then:`;
  const format =
    wire === 'openai-live' && who === 'voice'
      ? '{ "text": "what it says aloud" } or { "text": "…", "delegate": true } to hand over that an action is needed'
      : '{ "text": "what it says", "calls": [{ "name": "a_tool", "input": { … } }] }; leave out what there is not';
  return [
    `==== ${conversation}, call ${calls.length}: the model "${who}" ====`,
    beginning,
    ...reads,
    `==== Write the answer of "${who}" to ${answerFile}, as ${format}. Then run the same command again. ====`,
  ].join('\n');
}

function show({ transcript, failed, waiting }: Played): void {
  console.log(transcript.join('\n'));
  if (waiting.length > 0) console.log(`(waits for the model "${waiting[0]?.who}")`);
  else if (failed.length === 0) console.log('The conversation is read, and came out as it should.');
  for (const each of failed) console.log(`WRONG: expected that ${each}`);
}

/** Keeps the answers although their texts have changed. */
async function carry(conversation: Conversation): Promise<void> {
  const played = await play(conversation, readRecording(conversation.name), true);
  writeRecording(conversation.name, {
    calls: [...played.calls],
    isComplete: played.waiting.length === 0,
  });
  show(played);
}
