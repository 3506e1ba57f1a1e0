// Random attacks on a port: bytes that are not HTTP, invalid request lines and headers, slow and half-open connections,
// and invalid frames.

import { connect, type Socket } from 'node:net';
import { randomBytes } from 'node:crypto';
import type { Chance } from '../../../../src/testing/doubles/chance.ts';

export interface AttackedPort {
  readonly port: number;
  /** Paths that are served. */
  readonly paths: readonly string[];
  /** Returns the target and headers of a legitimate upgrade; null if the listener has no WebSockets. */
  readonly proof: (() => { readonly target: string; readonly headers: readonly string[] }) | null;
  /** Returns headers for a body that looks signed but is not. */
  readonly bodyHeaders?: () => readonly string[];
}

/** What the client does after it has written everything. */
type Ending = 'waits' | 'half_closes' | 'resets' | 'sends_on' | 'leaves';
const endings: readonly Ending[] = ['waits', 'half_closes', 'resets', 'sends_on', 'leaves'];

/** Targets for which `new URL` throws, and others that mislead a hand-written parser. */
const targets = [
  '/\\', 'http://a:99999/', 'http://[/', '//', '///', '/%', '/%00', '/%c0%ae', '/..%2f', '*', '/?', '/??',
  '//evil.example/', 'http://evil.example/', 'ws://127.0.0.1/', 'x://y', '/#', '/?token=', '/\u00e9\u00ff',
  `/${'a'.repeat(9_000)}`, `/?${'a=b&'.repeat(2_000)}`, '/__proto__', '/constructor', 'localhost:80',
] as const; // prettier-ignore

const hostsOf = (port: number): readonly string[] => [
  `127.0.0.1:${port}`, `localhost:${port}`, 'evil.example', '', '[', '[::1', 'a b', `127.0.0.1:${port}@evil`, '\u00ff', ':::',
]; // prettier-ignore
const origins = [
  'null',
  '',
  'https://evil.example',
  '\u0001',
  'http://127.0.0.1',
  '[',
  '__proto__',
];
const methods = [
  'GET',
  'POST',
  'PUT',
  'HEAD',
  'OPTIONS',
  'CONNECT',
  'TRACE',
  'PRI',
  'G\u00cbT',
  '',
];
const noise = [
  'Content-Length: 5', 'Content-Length: 99999999999999999999', 'Content-Length: -1', 'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked', 'Expect: 100-continue', 'Expect: x', 'Connection: close', 'Connection: keep-alive, Upgrade',
  'Upgrade: h2c', 'Upgrade: WebSocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Version: 99', 'Sec-WebSocket-Key: x',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Protocol: ,,', 'Sec-WebSocket-Protocol: realtime, realtime',
  'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99', 'Authorization: Bearer', 'Authorization: Bearer  ',
  'Authorization: Basic \u00ff', 'X: \u0000', ': x', ' folded', 'X-Twilio-Signature: AAAA', 'Content-Type: application/json',
  'Content-Encoding: gzip', `X-Long: ${'x'.repeat(20_000)}`, 'Host: a', '__proto__: x', 'constructor: y', 'Cookie: =',
]; // prettier-ignore

const upgradeHeaders = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

function requestOf(line: string, headers: readonly string[], body = ''): Buffer {
  return Buffer.from(`${line} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`, 'latin1');
}

function some<T>(chance: Chance, from: readonly T[], most: number): T[] {
  return Array.from({ length: chance.below(most + 1) }, () => chance.pick(from));
}

/** Returns a frame that breaks a rule of RFC 6455, or a valid one with unexpected content. */
function frameOf(chance: Chance): Buffer {
  const mask = randomBytes(4);
  const masked = (payload: Buffer): Buffer =>
    Buffer.from(payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0)));
  const frame = (first: number, payload: Buffer, isMasked = true): Buffer => {
    const { length } = payload;
    const head =
      length < 126
        ? [first, (isMasked ? 0x80 : 0) | length]
        : [first, (isMasked ? 0x80 : 0) | 126, length >> 8, length & 255];
    return Buffer.concat([Buffer.from(head), ...(isMasked ? [mask, masked(payload)] : [payload])]);
  };
  const text = (content: string): Buffer => frame(0x81, Buffer.from(content));
  const huge = (first: number, bytes: readonly number[]): Buffer =>
    Buffer.concat([Buffer.from([first, 0xff, ...bytes]), mask, Buffer.alloc(16)]);
  return chance.pick([
    () => frame(0x83, Buffer.from('reserved opcode')),
    () => frame(0x8f, Buffer.from('reserved control')),
    () => frame(0xc1, Buffer.from([0x78, 0x9c, 1, 2, 3])),
    () => frame(0xf1, Buffer.from('all bits')),
    () => frame(0x81, Buffer.from('not masked'), false),
    () => frame(0x81, Buffer.from([0xc3, 0x28, 0xff])),
    () => frame(0x80, Buffer.from('continues nothing')),
    () => Buffer.concat([frame(0x01, Buffer.from('begins')), frame(0x01, Buffer.from('again'))]),
    () => frame(0x01, Buffer.from('never ends')),
    () => frame(0x89, Buffer.alloc(126)),
    () => frame(0x09, Buffer.from('split ping')),
    () => frame(0x88, Buffer.from([3])),
    () => frame(0x88, Buffer.from([0, 1])),
    () => frame(0x88, Buffer.from([3, 232, 0xff, 0xfe])),
    () => huge(0x82, [0x7f, 255, 255, 255, 255, 255, 255, 255]),
    () => huge(0x82, [255, 255, 255, 255, 255, 255, 255, 255]),
    () => huge(0x81, [0, 0, 0, 0, 0x40, 0, 0, 0]),
    () => Buffer.from([0x81]),
    () => Buffer.concat(Array.from({ length: 200 }, () => frame(0x89, Buffer.from('p')))),
    () => Buffer.concat(Array.from({ length: 300 }, () => frame(0x01, Buffer.alloc(0)))),
    () => randomBytes(64),
    () => text(''),
    () => text('{'),
    () => text('null'),
    () => text('[]'),
    () => text('{"__proto__":{"type":"x"},"type":"__proto__"}'),
    () => text(`{"type":"session.update","session":${'['.repeat(2_000)}${']'.repeat(2_000)}}`),
    () => text('{"type":"input_audio_buffer.append","audio":"\u0000"}'),
    () => text('{"event":"start","streamSid":1,"start":null}'),
    () => frame(0x82, randomBytes(321)),
  ] as const)();
}

interface Attack {
  /** The client has the proof, so its connection is allowed, but its messages in the WebSocket are invalid. */
  readonly isRightful?: boolean;
  readonly bytes: Buffer;
  /** Sent one after the other, each once the response to the first one has started. */
  readonly frames: readonly Buffer[];
}

function attackOn(chance: Chance, { port, paths, proof, bodyHeaders }: AttackedPort): Attack {
  const own = `Host: 127.0.0.1:${port}`;
  const frames = (): readonly Buffer[] =>
    Array.from({ length: chance.within(1, 6) }, () => frameOf(chance));
  const anyHeaders = (): readonly string[] => [
    chance.happens(0.6) ? own : `Host: ${chance.pick(hostsOf(port))}`,
    ...(chance.happens(0.3) ? [`Origin: ${chance.pick(origins)}`] : []),
    ...(chance.happens(0.5) ? upgradeHeaders : []),
    ...some(chance, noise, 4),
  ];
  const anyTarget = (): string => chance.pick(chance.happens(0.5) ? targets : paths);
  const kinds: readonly (() => Attack)[] = [
    () => ({ bytes: Buffer.alloc(0), frames: [] }),
    () => ({ bytes: randomBytes(chance.within(1, 400)), frames: [] }),
    // The listed targets, with nothing else wrong.
    () => ({
      bytes: requestOf(`GET ${chance.pick(targets)}`, [own, ...upgradeHeaders]),
      frames: [],
    }),
    () => ({
      bytes: requestOf(`${chance.pick(methods)} ${anyTarget()}`, anyHeaders()),
      frames: chance.happens(0.3) ? frames() : [],
    }),
    () => {
      const whole = requestOf(`GET ${anyTarget()}`, anyHeaders());
      return { bytes: whole.subarray(0, chance.below(whole.length)), frames: [] };
    },
    // A body that never ends.
    () => ({
      bytes: requestOf(
        `POST ${chance.pick(paths)}`,
        [own, 'Content-Type: application/json', 'Content-Length: 90', ...(bodyHeaders?.() ?? [])],
        '{',
      ),
      frames: [],
    }),
    () => ({
      bytes: requestOf(
        `POST ${chance.pick(paths)}`,
        [own, 'Content-Type: application/json', 'Transfer-Encoding: chunked', ...(bodyHeaders?.() ?? [])],
        chance.pick(['1\r\n{\r\n', 'zz\r\n', 'fffffffffffffffff\r\n', '0\r\nX: y\r\n']),
      ),
      frames: [],
    }), // prettier-ignore
    // Pipelined requests, with an upgrade among them.
    () => ({
      bytes: Buffer.concat(
        Array.from({ length: chance.within(2, 12) }, () =>
          requestOf(
            `${chance.pick(['GET', 'POST', 'HEAD'])} ${chance.pick(paths)}`,
            chance.happens(0.2) ? [own, ...upgradeHeaders] : [own],
          ),
        ),
      ),
      frames: [],
    }),
    // An upgrade with a body, with frames right after it, and without proof.
    () => ({
      bytes: Buffer.concat([
        requestOf(
          `${chance.pick(['GET', 'POST'])} ${chance.pick(paths)}`,
          [own, ...upgradeHeaders, 'Content-Length: 5'],
          'hello',
        ),
        frameOf(chance),
      ]),
      frames: frames(),
    }),
    () => {
      const { target, headers } = proof?.() ?? { target: chance.pick(paths), headers: [] };
      return {
        bytes: requestOf(`GET ${target}`, [own, ...upgradeHeaders, ...headers]),
        frames: frames(),
        isRightful: proof !== null,
      };
    },
  ];
  return chance.pick(kinds)();
}

let lostSockets = 0;

/** Counts sockets that Node.js 24 never closes because the other side reset them first. */
export function socketsLostByNode(): number {
  return lostSockets;
}

export interface Attacker {
  readonly socket: Socket;
  readonly isRightful: boolean;
}

/** Performs one attack. Resolves when everything has been written; the socket may still be open. */
export async function attack(chance: Chance, port: AttackedPort): Promise<Attacker> {
  const { bytes, frames, isRightful = false } = attackOn(chance, port);
  const ending = chance.pick(endings);
  // The other side never causes a half-open socket to close.
  const socket = connect({
    port: port.port,
    host: '127.0.0.1',
    allowHalfOpen: chance.happens(0.5),
  });
  socket.on('error', ({ syscall }: NodeJS.ErrnoException) => {
    if (syscall === 'reset') lostSockets += 1;
  });
  await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', resolve));
  const write = (data: Buffer): Promise<void> =>
    new Promise((resolve) => {
      if (socket.writable) socket.write(data, () => resolve());
      else resolve();
    });
  const at = chance.below(bytes.length + 1);
  await write(bytes.subarray(0, at));
  await write(bytes.subarray(at));
  if (frames.length > 0) {
    await new Promise<void>((resolve) => {
      for (const event of ['data', 'end', 'close']) socket.once(event, () => resolve());
    });
    for (const frame of frames) await write(frame);
  }
  if (ending === 'sends_on') await write(randomBytes(chance.within(1, 100)));
  if (ending === 'half_closes') socket.end();
  if (ending === 'resets') socket.resetAndDestroy();
  if (ending === 'leaves') socket.destroy();
  // Most clients read the response, and some never do.
  if (chance.happens(0.8)) socket.resume();
  return { socket, isRightful };
}
