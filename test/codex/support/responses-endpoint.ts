// `POST /v1/responses` of OpenAI's API on 127.0.0.1, without a model: it performs the acts in the last prompt, and the
// acts between two tools form one answer. A permission is represented by a command that writes to a file outside the
// sandbox.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { actsIn, type RelayAct } from '../../../src/testing/doubles/relay-acts.ts';

export interface ResponsesEndpoint {
  readonly url: string;
  /** The received prompts, each once, in order. */
  readonly prompts: ReadonlySet<string>;
  /** The received requests, such as `POST /v1/responses`. */
  readonly requests: ReadonlySet<string>;
  /** Called for each request to the model's API, before the response. @defaultValue does nothing */
  onRequest: () => void;
  close(): void;
}

interface Item {
  readonly type: string;
  readonly role?: string;
  readonly content?: readonly { readonly text?: string }[];
}

const textOf = ({ content = [] }: Item): string => content.map(({ text = '' }) => text).join('');

/** `log`: the file that the permitted commands write to. */
export async function responsesEndpoint(log: string): Promise<ResponsesEndpoint> {
  const prompts = new Set<string>();
  const requests = new Set<string>();
  let count = 0;
  const endpoint = {
    url: '',
    prompts,
    requests,
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
      requests.add(`${request.method} ${request.url}`);
      if (request.method !== 'POST' || request.url !== '/v1/responses') {
        response.writeHead(404).end();
        return;
      }
      endpoint.onRequest();
      const { input = [] } = JSON.parse(raw) as { readonly input?: readonly Item[] };
      count += 1;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const send = (type: string, data: object): void => {
        response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
      };
      send('response.created', { response: { id: `r${count}` } });
      const item = next(input, count, prompts, log);
      // The response stays open until the client disconnects.
      if (item === null) return;
      send('response.output_item.done', { item });
      const usage = {
        input_tokens: 10,
        input_tokens_details: null,
        output_tokens: 5,
        output_tokens_details: null,
        total_tokens: 15,
      };
      send('response.completed', { response: { id: `r${count}`, usage } });
      response.end();
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  endpoint.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return endpoint;
}

/** Returns the next output of the model, or null if the model keeps working. */
function next(
  input: readonly Item[],
  count: number,
  prompts: Set<string>,
  log: string,
): object | null {
  const isPrompt = (item: Item): boolean =>
    item.role === 'user' && !textOf(item).startsWith('<') && textOf(item) !== '';
  const at = input.findLastIndex(isPrompt);
  const prompt = at < 0 ? '' : textOf(input[at] ?? { type: '' });
  prompts.add(prompt);
  const done = input.slice(at + 1).filter(({ type }) => type === 'function_call').length;
  let text = '';
  for (const act of stretchesOf(actsIn(prompt))[done] ?? []) {
    if ('say' in act) text += act.say;
    else if ('question' in act) text += act.question;
    else if ('untilCancelled' in act) return null;
    else if ('permission' in act) {
      const { path } = act.permission.input as { readonly path: string };
      return {
        type: 'function_call',
        id: `f${count}`,
        call_id: `c${count}`,
        name: 'exec_command',
        arguments: JSON.stringify({
          cmd: `echo ${path} >> ${log}`,
          sandbox_permissions: 'require_escalated',
          justification: act.permission.title,
        }),
      };
    }
  }
  const content = [{ type: 'output_text', text: text || 'Nothing.' }];
  return { type: 'message', role: 'assistant', id: `m${count}`, content };
}

function stretchesOf(acts: readonly RelayAct[]): readonly (readonly RelayAct[])[] {
  const stretches: RelayAct[][] = [[]];
  for (const act of acts) {
    stretches.at(-1)?.push(act);
    if ('permission' in act) stretches.push([]);
  }
  return stretches;
}
