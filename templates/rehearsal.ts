// A simulated telephone: it plays the audio in real time, and the caller types. What the lead agent says is
// printed when it has been played, because only then can typed words answer it.

import { createInterface } from 'node:readline/promises';
import type { Environment, VoiceSession } from 'offstage';
import { acceptTwilioCall, type TwilioCall, type TwilioSocket } from 'offstage/twilio';

/** The milliseconds between two packets of a telephone call, and the bytes of a packet. */
const PACKET_MS = 20;
const BYTES_PER_MS = 8;

class Telephone implements TwilioSocket {
  #tell: (data: string, isBinary: boolean) => void = () => undefined;
  #unplayed: { readonly event: string; bytes: number; readonly mark?: object }[] = [];

  on(event: string, listener: (...values: never[]) => void): void {
    if (event === 'message') this.#tell = listener as (data: string, isBinary: boolean) => void;
  }

  tell(event: string, content: object = {}): void {
    this.#tell(JSON.stringify({ event, streamSid: 'MZ1', ...content }), false);
  }

  send(text: string): void {
    const { event, media, mark } = JSON.parse(text);
    if (event === 'clear')
      for (const dropped of this.#unplayed.splice(0)) this.#played(dropped.mark);
    else
      this.#unplayed.push({
        event,
        bytes: Buffer.from(media?.payload ?? '', 'base64').length,
        mark,
      });
  }

  close(_code: number, reason: string): void {
    console.log(`(the call is over: ${reason})`);
  }

  /** Called once per packet: sends silence, and plays the audio that has arrived. */
  tick(): void {
    this.tell('media', {
      media: {
        track: 'inbound',
        payload: Buffer.alloc(PACKET_MS * BYTES_PER_MS, 0xff).toString('base64'),
      },
    });
    for (let left = PACKET_MS * BYTES_PER_MS; this.#unplayed[0];) {
      const [next] = this.#unplayed;
      const played = Math.min(left, next.bytes);
      next.bytes -= played;
      left -= played;
      if (next.bytes > 0) return;
      this.#unplayed.shift();
      this.#played(next.mark);
    }
  }

  #played(mark: object | undefined): void {
    if (mark) this.tell('mark', { mark });
  }
}

export async function rehearse(
  environment: Environment,
  onCall: (call: TwilioCall) => Promise<VoiceSession>,
): Promise<void> {
  const telephone = new Telephone();
  const accepted = acceptTwilioCall(telephone, { environment });
  telephone.tell('connected');
  telephone.tell('start', {
    start: {
      accountSid: 'AC1',
      callSid: 'CA1',
      customParameters: {},
      mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
    },
  });
  const packets = setInterval(() => telephone.tick(), PACKET_MS);
  const session = await onCall(await accepted);
  const unheard = new Map<string, string>();
  session.transcript.subscribe(({ id, role, text, final }) => {
    if (role === 'assistant' && final && text !== '') unheard.set(id, text);
  });
  session.events.subscribe((event) => {
    if (event.type !== 'floor.changed' || event.floor === 'model') return;
    for (const text of unheard.values()) console.log(`assistant: ${text}`);
    unheard.clear();
  });
  for await (const line of createInterface({ input: process.stdin }))
    if (line.trim() !== '') await session.sendText(line);
  clearInterval(packets);
  telephone.tell('stop');
  await session.close();
  process.exit(); // the local voice would keep the process alive
}
