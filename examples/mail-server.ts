// A server of the Model Context Protocol on standard input and output, for 20-mail-assistant.ts. Its tool writes a
// mail, asks which person is meant, and asks for approval before it sends the mail. Sending appends a line to the file
// that the first argument names.

import { appendFileSync } from 'node:fs';
import process from 'node:process';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const [outbox = ''] = process.argv.slice(2);
const people = [
  { address: 'berg@example.com', name: 'Bob Berg' },
  { address: 'stein@example.com', name: 'Bob Stein' },
];

const server = new McpServer({ name: 'mail', version: '1' });

server.registerTool(
  'write_mail',
  { description: 'Writes a mail, and sends it', inputSchema: { task: z.string() } },
  async () => {
    const whom = await server.server.elicitInput({
      message: 'Which Bob?',
      requestedSchema: {
        type: 'object',
        properties: {
          person: {
            type: 'string',
            oneOf: people.map(({ address, name }) => ({ const: address, title: name })),
          },
        },
        required: ['person'],
      },
    });
    const to = whom.content?.['person'];
    if (whom.action !== 'accept' || typeof to !== 'string') return said('Not sent: to whom?');
    const mail = { to, subject: 'Lunch', text: 'Lunch at noon?' };
    const consent = await server.server.elicitInput({
      message: 'Send this mail',
      requestedSchema: {
        type: 'object',
        properties: { send: { type: 'boolean', title: 'Send it' } },
        required: ['send'],
      },
      // The user sees the mail itself and approves exactly this mail.
      _meta: { 'offstage/input': mail },
    });
    if (consent.action !== 'accept' || consent.content?.['send'] !== true)
      return said('Not sent: you did not want it.');
    appendFileSync(outbox, `${mail.to}: ${mail.text}\n`);
    return said(`Sent to ${mail.to}.`);
  },
);

function said(text: string) {
  return { content: [{ type: 'text' as const, text }] };
}

await server.connect(new StdioServerTransport());
