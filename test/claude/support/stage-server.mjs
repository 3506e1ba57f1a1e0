// An MCP server on standard input and output, with the tools of an agent that acts: `run` and `ask` report success,
// `fail` fails, `hang` never ends, and `die` kills its process group. The server records its actions in the file
// given as its argument, if any.

import { appendFileSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';

const send = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const tools = ['run', 'ask', 'fail', 'hang', 'die'].map((name) => ({
  name,
  description: name,
  inputSchema: { type: 'object', additionalProperties: true },
}));

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize')
    send({
      id,
      result: {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'stage', version: '1' },
      },
    });
  else if (method === 'tools/list') send({ id, result: { tools } });
  else if (method === 'tools/call') {
    const { name, arguments: given = {} } = params;
    const [, , log] = process.argv;
    if (log) appendFileSync(log, `${name} ${JSON.stringify(given)}\n`);
    if (name === 'die') process.kill(0, 'SIGKILL');
    else if (name !== 'hang')
      send({ id, result: { content: [{ type: 'text', text: 'done' }], isError: name === 'fail' } });
  } else send({ id, error: { code: -32601, message: 'no such method' } });
});
