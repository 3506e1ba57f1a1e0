// Runs the conformance suite of the Model Context Protocol against `mcpServer`, with the scenarios that need only
// tools. The other scenarios need resources, prompts, logging, sampling, or tools with content and forms that are
// specific to the suite.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { mcpServer } from '../../src/adapters/mcp/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { createRuntime } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';

const SUITE = join(
  import.meta.dirname,
  'node_modules/@modelcontextprotocol/conformance/dist/index.js',
);

test.each([
  'server-initialize',
  'ping',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-error',
  'server-sse-multiple-streams',
  'dns-rebinding-protection',
])('%s', { timeout: 60_000 }, async (scenario) => {
  const server = await mcpServer({
    runtime: createRuntime({ environment: nodeEnvironment() }),
    authorize: () => 'suite',
    // The names of the tools that the suite calls.
    subagents: [
      {
        config: { name: 'test_simple_text', instructions: 'You answer.' },
        description: 'Answers',
      },
      {
        config: { name: 'test_error_handling', instructions: 'You fail.', maxSteps: 1 },
        description: 'Fails',
      },
    ],
    model: scriptedModel({
      scripts: [
        {
          when: 'You answer.',
          script: [{ text: 'This is a simple text response for testing.' }],
        },
        {
          when: 'You fail.',
          script: () => {
            throw new Error('This tool intentionally returns an error for testing');
          },
        },
      ],
    }),
  });
  const http = createServer(server.handle).listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(async () => {
    await server.close();
    http.closeAllConnections();
    http.close();
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  // Rejects unless the suite exits with code 0.
  const { stdout } = await promisify(execFile)(process.execPath, [
    SUITE,
    'server',
    '--url',
    url,
    '--scenario',
    scenario,
  ]);
  expect(stdout).toMatch(/Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings/);
});
