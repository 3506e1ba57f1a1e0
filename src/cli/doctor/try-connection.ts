// Opens one connection to a voice model and closes it again, since only a trial shows whether key, model and
// network are right. It sends no words and no sound.

import { nodeEnvironment } from '../../adapters/node/index.ts';
import { messageOf } from '../../values/errors.ts';
import type { Transport } from '../../voice/connection/transport.ts';
import type { Finding } from './findings.ts';

/** Makes a transport with the defaults of its adapter. Throws the errors of the adapter. */
export type MakeTransport = () => Promise<Transport>;

/** The transports that need only a key and a network. */
export const CONNECTABLE: ReadonlyMap<string, MakeTransport> = new Map([
  [
    'openai-realtime',
    async () => (await import('../../adapters/openai-realtime/index.ts')).openaiRealtime(),
  ],
  ['openai-live', async () => (await import('../../adapters/openai-live/index.ts')).openaiLive()],
  ['gemini-live', async () => (await import('../../adapters/gemini-live/index.ts')).geminiLive()],
]);

const configuration = { instructions: 'Say nothing.', tools: [] };

/** Never rejects. */
export async function tryConnection(make: MakeTransport): Promise<Finding> {
  const environment = nodeEnvironment();
  try {
    const transport = await make();
    const since = environment.clock.now();
    const connection = transport.connect(configuration, { environment });
    connection.audio.subscribe();
    return await new Promise<Finding>((resolve) => {
      connection.events.subscribe((event) => {
        if (event.type === 'transport.ready') {
          const text = `Connected in ${Math.round(environment.clock.now() - since)} ms`;
          void connection.close().then(() => resolve({ status: 'ok', text }));
        } else if (event.type === 'transport.closed') {
          const advice = event.retryable ? ' (may go away by itself)' : '';
          resolve({ status: 'missing', text: `${event.reason}${advice}` });
        }
      });
    });
  } catch (error) {
    return { status: 'missing', text: messageOf(error) };
  }
}
