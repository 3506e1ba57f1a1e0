// A real SMTP server for the e-mail tests.

import { createRequire } from 'node:module';
import type { AddressInfo, Server } from 'node:net';
import { emailChannel } from '../../../../src/adapters/email/index.ts';

/** The parts of nodemailer and of the SMTP server that these tests use. */
interface Transport {
  sendMail(message: object): Promise<unknown>;
  close(): void;
}
interface Handlers {
  readonly onData: (
    stream: NodeJS.ReadableStream,
    session: { readonly envelope: { readonly rcptTo: readonly { readonly address: string }[] } },
    done: (error?: Error) => void,
  ) => void;
}
interface PostServer {
  readonly server: Server;
  on(event: 'error', listener: () => void): void;
  listen(port: number, host: string, then: () => void): void;
  close(then: () => void): void;
}
const require = createRequire(import.meta.url);
export const { createTransport } = require('nodemailer') as {
  createTransport(options: object): Transport;
};
const { SMTPServer } = require('smtp-server') as {
  SMTPServer: new (options: Handlers & object) => PostServer;
};

interface Mail {
  readonly id: string;
  readonly subject: string;
  readonly to: readonly string[];
  readonly text: string;
  readonly raw: string;
}

/** Decodes quoted-printable and base64. */
function bodyOf(raw: string): string {
  const end = raw.indexOf('\r\n\r\n');
  const body = raw.slice(end + 4);
  if (/^content-transfer-encoding: base64/im.test(raw.slice(0, end)))
    return Buffer.from(body, 'base64').toString('utf8');
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** A real SMTP server in this process, and a channel that sends to it. */
export async function postOffice() {
  const mails: Mail[] = [];
  let code = 0;
  const options = { authOptional: true, disabledCommands: ['STARTTLS'], logger: false };
  const server = new SMTPServer({
    ...options,
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        if (code > 0) {
          done(Object.assign(new Error('not now'), { responseCode: code }));
          return;
        }
        const raw = Buffer.concat(chunks).toString('latin1');
        const header = (name: string): string =>
          new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, 'im').exec(raw)?.[1] ?? '';
        mails.push({
          id: header('message-id'),
          subject: header('subject'),
          to: session.envelope.rcptTo.map(({ address }) => address),
          text: bodyOf(raw),
          raw,
        });
        done();
      });
    },
  });
  // The client was killed.
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  const transport = createTransport({ host: '127.0.0.1', port, secure: false });
  const close = (): Promise<void> => {
    transport.close();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  const channel = emailChannel({
    transport,
    from: 'Offstage <bot@example.com>',
    to: 'ada@example.com',
  });
  return { mails, port, transport, channel, close, answer: (with_: number) => (code = with_) };
}
