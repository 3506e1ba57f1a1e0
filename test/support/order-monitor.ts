// The service from Bodhi's pattern 4 (an order monitor) for scenarios. The data of an event decides what its model
// does, and the test controls its source.
import type { EmitEvent, EventSourceConfig, ExternalEvent } from '../../src/entries/services.ts';
import {
  readTask,
  scriptedModel,
  type Script,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import type { ServiceSubagentConfig } from '../../src/index.ts';

/** Reports the text of `say` in the data. Without `say`, reports that there is no news. */
const report: Script = ({ prompt }) => {
  const data = eventIn(prompt).data as { say?: string; fail?: string };
  if (data.fail !== undefined) return { error: new Error(data.fail) };
  return { text: data.say ?? '{"notify": false}' };
};

/** Returns the event that the model finds in its task. */
export function eventIn(prompt: ScriptedPrompt['prompt']): ExternalEvent {
  const { task = '' } = readTask(prompt) ?? {};
  const [, json = '{}'] = /--- event ---\n(.*)\n--- end of event ---/.exec(task) ?? [];
  return JSON.parse(json) as ExternalEvent;
}

export function orderMonitor(
  config: Partial<Omit<ServiceSubagentConfig, 'agent'>> & {
    readonly script?: Script;
    readonly onModelCall?: (prompt: ScriptedPrompt) => void;
  } = {},
) {
  const { script = report, onModelCall, ...rest } = config;
  let emit: EmitEvent = () => Promise.reject(new Error('The source was not started'));
  let signal: AbortSignal | null = null;
  const source: EventSourceConfig = {
    name: 'order-webhook',
    start(emitEvent, aborted) {
      emit = emitEvent;
      signal = aborted;
    },
  };
  const service: ServiceSubagentConfig = {
    agent: {
      name: 'order_monitor',
      instructions: 'Monitor order status and notify user of important updates.',
      tools: {},
      maxSteps: 3,
      retry: { maxAttempts: 1 },
      model: scriptedModel({
        scripts: [],
        otherwise: (prompt) => {
          onModelCall?.(prompt);
          return script(prompt);
        },
      }),
    },
    eventSources: [source],
    label: 'ORDER UPDATE',
    shouldInvoke: (event) => event.type === 'order.status_changed',
    ...rest,
  };
  return {
    service,
    /** Emits an event from the shop. */
    happens: (
      data: unknown,
      priority: 'normal' | 'urgent' = 'normal',
      type = 'order.status_changed',
    ) => emit({ source: 'webhook', type, data, priority }),
    isOver: () => signal?.aborted === true,
  };
}
