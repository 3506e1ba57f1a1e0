// One process with `n` voice sessions over real WebSockets on 127.0.0.1. The devices and the voice models run on
// another thread, whose cost is not counted; the contender between them is a bridge for each device.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Numbers } from './measurement.ts';
import { cpuMicroseconds } from './process.ts';
import { p50p99 } from './statistics.ts';
import type { Samples } from './voice-talk.ts';

const WARM_UP_MS = 8000;
const MEASURED_MS = 30_000;

/** Connects a device to the voice model at this URL. */
export type Bridge = (device: WebSocket, modelUrl: string) => void;

export interface PeersData {
  readonly sessions: number;
  /** The port to which the devices connect. */
  readonly devicePort: number;
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

/** The messages of the thread that runs both ends; the CPU time is that of the thread alone. */
export type PeersMessage =
  | { readonly type: 'begun'; readonly cpuMicroseconds: number }
  | { readonly type: 'ended'; readonly cpuMicroseconds: number; readonly samples: Samples };

/** Runs `n` conversations for a while, each over one bridge. */
export async function converse(n: number, bridge: Bridge): Promise<Numbers> {
  const devices = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  devices.on('connection', (device, { url = '' }) => {
    bridge(device, new URL(url, 'ws://127.0.0.1').searchParams.get('model') ?? '');
  });
  await once(devices, 'listening');
  const workerData: PeersData = {
    sessions: n,
    devicePort: (devices.address() as AddressInfo).port,
    warmUpMs: WARM_UP_MS,
    measuredMs: MEASURED_MS,
  };
  const peers = new Worker(new URL('../voice-peers-worker.ts', import.meta.url), { workerData });
  let begin = { at: NaN, cpu: NaN };
  return new Promise((resolve, reject) => {
    peers.on('error', reject);
    peers.on('message', (message: PeersMessage) => {
      // The CPU of all threads except the one with both ends, including the garbage collector's threads.
      const now = { at: performance.now(), cpu: cpuMicroseconds() - message.cpuMicroseconds };
      if (message.type === 'begun') begin = now;
      else resolve(numbersOf(message.samples, (now.cpu - begin.cpu) / 10 / (now.at - begin.at)));
    });
  });
}

function numbersOf(samples: Samples, cpuPercent: number): Numbers {
  const numbers: Record<string, number> = { cpu: cpuPercent };
  for (const [what, values] of Object.entries(samples) as [string, number[]][]) {
    if (values.length === 0) throw new Error(`Never happened: ${what}`);
    const { p50, p99 } = p50p99(values);
    Object.assign(numbers, { [`${what}_p50`]: p50, [`${what}_p99`]: p99 });
  }
  return numbers;
}
