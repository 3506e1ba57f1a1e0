// `POST /v1/messages` of Anthropic's API on 127.0.0.1, without a model: it performs the acts in the last prompt, and
// the acts between two tools form one answer.

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { actsIn, type RelayAct } from '../../../src/testing/doubles/relay-acts.ts';

export interface MessagesEndpoint {
  readonly url: string;
  /** The received prompts, each once. */
  readonly prompts: ReadonlySet<string>;
  /** The results of its tools and questions, in order. */
  readonly results: readonly string[];
  /** Called for each request to the model's API, before the response. @defaultValue does nothing */
  onRequest: () => void;
  close(): void;
}

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly content?: unknown;
  readonly is_error?: boolean;
}

interface Body {
  readonly model: string;
  readonly stream?: boolean;
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly {
    readonly role: string;
    readonly content: string | readonly Block[];
  }[];
}

interface Reply {
  readonly text: string;
  readonly tool?: { readonly name: string; readonly input: unknown };
  readonly hangs?: boolean;
  readonly refuses?: boolean;
}

export interface MessagesEndpointOptions {
  /** The acts for a prompt that names none. @defaultValue it repeats the prompt */
  readonly acts?: readonly RelayAct[];
}

export async function messagesEndpoint(
  options: MessagesEndpointOptions = {},
): Promise<MessagesEndpoint> {
  const prompts = new Set<string>();
  const results: string[] = [];
  let count = 0;
  const endpoint = {
    url: '',
    prompts,
    results,
    onRequest() {},
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  const server = createServer((request, response) => {
    void (async () => {
      let raw = '';
      for await (const chunk of request) raw += String(chunk);
      const { pathname } = new URL(request.url ?? '', 'http://x');
      if (request.method !== 'POST' || !pathname.startsWith('/v1/messages')) {
        response.writeHead(request.method === 'HEAD' ? 200 : 404).end();
        return;
      }
      if (pathname.endsWith('count_tokens')) {
        response.setHeader('content-type', 'application/json').end('{"input_tokens":10}');
        return;
      }
      count += 1;
      endpoint.onRequest();
      const body = JSON.parse(raw) as Body;
      reply(response, body, count, next(body, prompts, results, options));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  endpoint.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return endpoint;
}

function reply(response: ServerResponse, body: Body, number: number, answer: Reply): void {
  const { text, tool, hangs = false, refuses = false } = answer;
  if (refuses) {
    const error = { type: 'error', error: { type: 'invalid_request_error', message: 'refused' } };
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(error));
    return;
  }
  const send = (type: string, data: object): void => {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  };
  const message = {
    id: `msg_${number}`,
    type: 'message',
    role: 'assistant',
    model: body.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1 },
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send('message_start', { message });
  let index = 0;
  const block = (content_block: object, delta: object): void => {
    send('content_block_start', { index, content_block });
    send('content_block_delta', { index, delta });
    send('content_block_stop', { index });
    index += 1;
  };
  if (text !== '' || (!tool && !hangs))
    block({ type: 'text', text: '' }, { type: 'text_delta', text: text || ' ' });
  // The response stays open until the client disconnects.
  if (hangs) return;
  if (tool)
    block(
      { type: 'tool_use', id: `toolu_${number}_${Date.now()}`, name: tool.name, input: {} },
      { type: 'input_json_delta', partial_json: JSON.stringify(tool.input) },
    );
  const stop_reason = tool ? 'tool_use' : 'end_turn';
  send('message_delta', {
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 5 },
  });
  send('message_stop', {});
  response.end();
}

function blocksOf(content: string | readonly Block[]): readonly Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** Returns the next part of the last prompt's acts. */
function next(
  { messages, tools = [] }: Body,
  prompts: Set<string>,
  ends: string[],
  { acts }: MessagesEndpointOptions,
): Reply {
  if (tools.length === 0) return { text: 'title' };
  const at = acts
    ? messages.findIndex(({ role }) => role === 'user')
    : messages.findLastIndex(
        ({ role, content }) =>
          role === 'user' && blocksOf(content).some(({ text }) => text?.includes('acts:') === true),
      );
  const prompt = at < 0 ? '' : (blocksOf(messages[at]?.content ?? '').at(-1)?.text ?? '');
  prompts.add(prompt);
  const stretches = stretchesOf(acts ?? actsIn(prompt));
  const done = messages
    .slice(at + 1)
    .filter(({ role, content }) => role === 'assistant' && hasTool(content)).length;
  const before = stretches[done - 1]?.at(-1);
  // Reminders from the program may follow the result in separate messages.
  const results = messages
    .slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1)
    .flatMap(({ content }) => blocksOf(content).filter(({ type }) => type === 'tool_result'));
  let text = before ? outcomeOf(before, results.at(-1)) : '';
  if (text !== '') ends.push(text);
  for (const act of stretches[done] ?? []) {
    if ('say' in act) text += act.say;
    else if ('flood' in act) text += 'flood '.repeat(act.flood);
    else if ('permission' in act)
      return { text, tool: { name: 'mcp__stage__ask', input: act.permission.input } };
    else if ('tool' in act) {
      const name = act.untilCancelled === true ? 'hang' : act.fails === true ? 'fail' : 'run';
      return { text, tool: { name: `mcp__stage__${name}`, input: act.tool.input } };
    } else if ('question' in act)
      return { text, tool: { name: 'AskUserQuestion', input: questionOf(act) } };
    else if ('die' in act) return { text, tool: { name: 'mcp__stage__die', input: {} } };
    else if ('untilCancelled' in act) return { text, hangs: true };
    else if ('end' in act) return { text, refuses: act.end !== 'completed' };
  }
  return { text };
}

function hasTool(content: string | readonly Block[]): boolean {
  return blocksOf(content).some(({ type }) => type === 'tool_use');
}

function stretchesOf(acts: readonly RelayAct[]): readonly (readonly RelayAct[])[] {
  const stretches: RelayAct[][] = [[]];
  for (const act of acts) {
    stretches.at(-1)?.push(act);
    if ('permission' in act || 'tool' in act || 'question' in act || 'die' in act)
      stretches.push([]);
  }
  return stretches;
}

function questionOf({ question, options = [] }: Extract<RelayAct, { readonly question: string }>) {
  const labels = options.length > 0 ? options.map(({ label }) => label) : ['Now', 'Later'];
  return {
    questions: [
      {
        question,
        header: 'Ask',
        multiSelect: false,
        options: labels.map((label) => ({ label, description: label })),
      },
    ],
  };
}

function outcomeOf(act: RelayAct, result: Block | undefined): string {
  // A request without a result comes from the program, which asks for suggestions for the user's next message.
  if (!result) return '';
  const said = typeof result.content === 'string' ? result.content : JSON.stringify(result.content);
  // Claude closed the call because its input was closed: the program that used it had been killed.
  if (said.includes("doesn't want to take this action right now")) return 'cut off. ';
  if ('permission' in act) {
    if (said.includes('done')) return 'permitted. ';
    if (said.includes('Nobody')) return 'cancelled. ';
    return /ot permit|taken back|refused permission/.test(said)
      ? 'denied. '
      : `unexpected: ${said}`;
  }
  if (!('question' in act)) return '';
  const [, answer] = /\\?"=\\?"(.*?)\\?"/.exec(said) ?? [];
  // CLAUDE-SESSION-2: the question was withdrawn in a turn that has ended.
  if (answer === undefined)
    return /Nobody|taken back|aborted/.test(said) ? 'no answer. ' : `unexpected: ${said}`;
  return `answer: ${act.options?.find(({ label }) => label === answer)?.id ?? answer}. `;
}
