// The bridges between a device and a voice model: an Offstage session; and the floor, a bare relay of the same
// frames that answers each event at once and keeps no state.

import { generateText } from 'ai';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { createRuntime, defineTool } from '../../src/index.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import { openaiRealtime } from '../../src/adapters/openai-realtime/index.ts';
import { decodePcm16, encodePcm16 } from '../../src/voice/index.ts';
import { SAMPLES_PER_MS, textOf, type FromDevice, type ToDevice } from './voice-frames.ts';
import type { Bridge } from './voice-stage.ts';
import { INSTRUCTIONS, model, TASK, text, type Model } from './workload.ts';

const errandTool = defineTool({
  name: 'run_errand',
  description: 'Runs an errand in the background',
  parameters: z.object({ what: z.string() }),
  execution: 'background',
});

/** Creates a model that answers when the device tells it to. */
function waitingModel(): { readonly chosen: Model; finish(): void } {
  let isDue = false;
  let answer: (() => void) | null = null;
  const next = (): void => {
    if (!isDue || !answer) return;
    answer();
    isDue = false;
    answer = null;
  };
  return {
    chosen: model(async () => {
      await new Promise<void>((resolve) => {
        answer = resolve;
        next();
      });
      return [text('It is done.')];
    }),
    finish() {
      isDue = true;
      next();
    },
  };
}

/** Sends messages to the device, and the id of each item that begins. */
function deviceLine(device: WebSocket) {
  let current: string | undefined;
  const tell = (message: ToDevice): void => device.send(JSON.stringify(message));
  return {
    tell,
    sound(itemId: string, bytes: Uint8Array): void {
      if (itemId !== current) tell({ type: 'item', itemId });
      current = itemId;
      device.send(bytes);
    },
  };
}

/** A `VoiceSession` for each device; all share a runtime, as in a server. */
export function offstageBridge(): Bridge {
  // As with the floor, a subagent waits only for the device, not for another subagent to end.
  const runtime = createRuntime({ maxTotalActive: Infinity });
  return (device, modelUrl) => {
    const errands = waitingModel();
    const line = deviceLine(device);
    const session = new VoiceSession({
      runtime,
      transport: openaiRealtime({ url: modelUrl, apiKey: 'bench' }),
      agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [errandTool] }],
      subagentConfigs: {
        run_errand: { name: 'errand runner', instructions: INSTRUCTIONS, model: errands.chosen },
      },
      hooks: { onError: failed },
    });
    // The app watches the screen.
    session.store.subscribe(() => {});
    session.audioOut.subscribe(({ itemId = '', samples }) =>
      line.sound(itemId, encodePcm16(samples)),
    );
    session.events.subscribe((event) => {
      if (event.type === 'playout.clear') line.tell({ type: 'clear' });
      if (event.type === 'delivery.changed' && event.delivery.state === 'delivered')
        line.tell({ type: 'told' });
    });
    device.on('message', (data, isBinary) => {
      if (isBinary) {
        const samples = decodePcm16(data as Buffer);
        session.audioIn.next({ samples, sampleRateHz: SAMPLES_PER_MS * 1000 });
        return;
      }
      const message = JSON.parse(textOf(data)) as FromDevice;
      if (message.type === 'finish') errands.finish();
      else session.playout.next(message);
    });
    session.attach();
    session.start().catch(failed);
  };
}

/** The fields of a server event that a relay reads. */
interface ServerEvent {
  readonly type: string;
  readonly delta: string;
  readonly item_id: string;
}

/** The floor: no session, and the AI SDK for the background work. */
export function relayBridge(): Bridge {
  return (device, modelUrl) => {
    const errands = waitingModel();
    const line = deviceLine(device);
    const upstream = new WebSocket(modelUrl, { perMessageDeflate: false });
    const say = (event: object): void => upstream.send(JSON.stringify(event));
    const respond = (): void => say({ type: 'response.create' });
    const runErrand = async (): Promise<void> => {
      const { text: words } = await generateText({
        model: errands.chosen,
        instructions: INSTRUCTIONS,
        prompt: TASK,
      });
      const item = { type: 'function_call_output', call_id: 'call', output: words };
      say({ type: 'conversation.item.create', item });
      respond();
      line.tell({ type: 'told' });
    };
    upstream.on('open', () => say({ type: 'session.update', session: { type: 'realtime' } }));
    upstream.on('message', (data) => {
      const event = JSON.parse(textOf(data)) as ServerEvent;
      switch (event.type) {
        case 'response.output_audio.delta':
          line.sound(event.item_id, Buffer.from(event.delta, 'base64'));
          break;
        case 'input_audio_buffer.speech_started':
          line.tell({ type: 'clear' });
          say({ type: 'response.cancel' });
          break;
        case 'conversation.item.input_audio_transcription.completed':
          respond();
          break;
        case 'response.function_call_arguments.done':
          runErrand().catch(failed);
          break;
        default:
          break;
      }
    });
    device.on('message', (data, isBinary) => {
      if (isBinary) {
        const audio = (data as Buffer).toString('base64');
        upstream.send(`{"type":"input_audio_buffer.append","audio":"${audio}"}`);
      } else if ((JSON.parse(textOf(data)) as FromDevice).type === 'finish') errands.finish();
    });
  };
}

/** Ends the process, because figures measured after a failure are meaningless. */
function failed(error: unknown): void {
  console.error(error);
  process.exit(1);
}
