// An ACP v1 agent without the SDK whose sessions have options of the kind that its argument names. It reports the
// options that it was asked to set and those that are set.

import process from 'node:process';
import { createInterface } from 'node:readline';

const [, , kind = ''] = process.argv;
const send = (message: object): void => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
};

const MODES = ['auto', 'ask'];
const set: Record<string, unknown> = { mode: 'auto', model: 'large', brief: false };
const told: string[] = [];

const choices = (values: readonly string[]) => values.map((value) => ({ value, name: value }));
const configOptions = () => [
  { type: 'select', id: 'mode', name: 'Mode', currentValue: set['mode'], options: choices(MODES) },
  {
    type: 'select',
    id: 'model',
    name: 'Model',
    currentValue: set['model'],
    options: [
      { group: 'big', name: 'Big', options: choices(['large']) },
      { group: 'little', name: 'Little', options: choices(['small']) },
    ],
  },
  { type: 'boolean', id: 'brief', name: 'Brief', currentValue: set['brief'] },
];
const modes = () => ({
  currentModeId: set['mode'],
  availableModes: MODES.map((id) => ({ id, name: id })),
});

/** Returns the options that an answer contains. */
const said = (): object =>
  ({
    bare: { modes: modes() },
    none: {},
    quiet: {},
    garbage: { configOptions: 'many', modes: { currentModeId: 7 } },
  })[kind] ?? { configOptions: configOptions(), modes: modes() };

const refusal = { code: -32_602, message: 'Invalid params: no such value' };

createInterface({ input: process.stdin }).on('line', (line) => {
  const {
    id,
    method,
    params = {},
  } = JSON.parse(line) as {
    readonly id?: number;
    readonly method?: string;
    readonly params?: Readonly<Record<string, unknown>>;
  };
  if (method === 'initialize')
    send({
      id,
      result: {
        protocolVersion: 1,
        agentCapabilities: { sessionCapabilities: { resume: {} }, loadSession: kind === 'loads' },
      },
    });
  else if (method === 'session/new') send({ id, result: { sessionId: 's', ...said() } });
  else if (method === 'session/resume') send({ id, result: said() });
  else if (method === 'session/set_mode') {
    told.push(`mode=${String(params['modeId'])}`);
    if (!MODES.includes(String(params['modeId']))) return send({ id, error: refusal });
    set['mode'] = params['modeId'];
    send({ id, result: {} });
  } else if (
    method === 'session/set_config_option' &&
    !['bare', 'none', 'garbage'].includes(kind)
  ) {
    const { configId, value, type = 'value' } = params;
    told.push(`${String(configId)}:${String(type)}=${String(value)}`);
    const offered = { mode: MODES, model: ['large', 'small'], brief: [true, false] } as const;
    const values: readonly unknown[] = offered[configId as keyof typeof offered] ?? [];
    if (!values.includes(value)) return send({ id, error: refusal });
    if (kind !== 'stubborn') set[String(configId)] = value;
    // The small model does not ask.
    if (kind === 'entangled' && configId === 'model') set['mode'] = 'auto';
    send({ id, result: { configOptions: configOptions() } });
  } else if (method === 'session/prompt') {
    const content = { type: 'text', text: JSON.stringify({ told, set }) };
    const update = { sessionUpdate: 'agent_message_chunk', content };
    send({ method: 'session/update', params: { sessionId: 's', update } });
    send({ id, result: { stopReason: 'end_turn' } });
  } else if (id !== undefined) send({ id, error: { code: -32_601, message: 'Method not found' } });
});
