// A stage for the conformance suite that uses the fake voice server. It is for transports that use one of this server's
// protocols.

import type { Transport } from '../../voice/connection/transport.ts';
import { z } from 'zod';
import { check, type ChecksOf } from '../../values/checks.ts';
import type {
  ConformanceFault,
  ConformanceMemory,
  ConformanceModel,
  ConformanceSetup,
  ConformanceStep,
} from '../conformance/stage.ts';
import type { WebSocketFactory } from '../../adapters/socket/web-socket.ts';
import type {
  FakeItem,
  FakeVoiceModel,
  VoiceCause,
  VoiceStep,
  VoiceWire,
} from './engine/control.ts';
import { createVoiceServer } from './voice-server.ts';

/** The faults of the real servers that the fake can simulate in every protocol. */
const common = [
  'late_transcripts',
  'duplicated_transcripts',
  'expiry',
  'server_error',
  'silence',
  'failure',
  'deltas_after_cancel',
  'duplicated_calls',
] as const satisfies readonly ConformanceFault[];

const faults: Readonly<Record<VoiceWire, readonly ConformanceFault[]>> = {
  'openai-realtime': common,
  'openai-live': common,
  'gemini-live': [...common, 'cancelled_calls'],
};

/** The error text in Realtime's `response.done` and in Gemini's close frame. */
const QUOTA_IS_SPENT =
  'You exceeded your current quota, please check your plan and billing details.';
/** The time between Gemini's announcement and the end of the connection. */
const NOTICE_MS = 10_000;

/** The options for `voiceServerStage`. */
export interface VoiceServerStageOptions {
  /** @defaultValue the name of the protocol */
  readonly name?: string;
  /** The protocol under test. */
  readonly wire: VoiceWire;
  /** Creates the transport. The transport must open its sockets with this factory and must not send pings. */
  readonly transport: (webSocket: WebSocketFactory) => Transport;
}

const optionsSchema = z.strictObject({
  name: z.string().min(1).optional(),
  wire: z.enum(['openai-realtime', 'openai-live', 'gemini-live']),
  transport: z.custom<VoiceServerStageOptions['transport']>(
    (value) => typeof value === 'function',
    'expected a function that makes a transport',
  ),
} satisfies ChecksOf<VoiceServerStageOptions>);

/** Returns the setup of a conformance stage on which a transport talks to the in-memory fake of `wire`. */
export function voiceServerStage(options: VoiceServerStageOptions): ConformanceSetup {
  const { wire, name = wire, transport } = check('voiceServerStage', optionsSchema, options);
  return {
    name,
    shows: faults[wire],
    open({ environment, respond }) {
      const failing = new WeakMap<FakeVoiceModel, boolean>();
      const server = createVoiceServer({
        environment,
        respond: ({ cause, instructions, model }) =>
          failing.get(model)
            ? [{ fail: QUOTA_IS_SPENT }]
            : respond({
                cause: cause.type,
                text: textOf(cause),
                instructions,
                memory: model.items.flatMap(toMemory),
              }).map(toStep),
      });
      return {
        transport: transport(server.webSocket),
        get models() {
          return server.connections.map((model) => modelOf(model, failing));
        },
        close: () => server.close(),
      };
    },
  };
}

function modelOf(
  model: FakeVoiceModel,
  failing: WeakMap<FakeVoiceModel, boolean>,
): ConformanceModel {
  const { user, faults: fault } = model;
  return {
    user,
    get isOpen() {
      return model.isOpen;
    },
    get replies() {
      return model.replies;
    },
    get memory() {
      return model.items.flatMap(toMemory);
    },
    drop: () => fault.drop(),
    strike(wanted, on = true) {
      if (wanted === 'silence') fault.silence(on);
      else if (wanted === 'failure') failing.set(model, on);
      else if (wanted === 'deltas_after_cancel') fault.deltasAfterCancel(on);
      else if (wanted === 'duplicated_calls') fault.duplicateCalls(on);
      else if (wanted === 'cancelled_calls') fault.cancelCalls();
      else if (wanted === 'expiry' && model.wire === 'gemini-live') fault.goAway(NOTICE_MS);
      else if (wanted === 'expiry') fault.expire();
      else if (wanted === 'server_error') {
        if (model.wire === 'gemini-live') fault.forgetHandles();
        if (model.wire === 'openai-live') fault.forgetSessions();
        fault.close(1011, 'Internal error encountered.');
      }
    },
  };
}

function toStep(step: ConformanceStep): VoiceStep {
  return 'call' in step ? { call: step.call, arguments: step.arguments } : step;
}

function textOf(cause: VoiceCause): string {
  switch (cause.type) {
    case 'utterance':
    case 'message':
      return cause.text;
    case 'result':
      return typeof cause.output === 'string' ? cause.output : JSON.stringify(cause.output);
    case 'nothing':
      return '';
  }
}

function toMemory(item: FakeItem): readonly ConformanceMemory[] {
  switch (item.kind) {
    case 'message':
      return [{ kind: item.role, text: item.text }];
    case 'call':
      return [{ kind: 'call', text: `${item.name} ${item.arguments}` }];
    case 'result': {
      const { output } = item;
      return [
        { kind: 'result', text: typeof output === 'string' ? output : JSON.stringify(output) },
      ];
    }
    case 'image':
      return [];
  }
}
