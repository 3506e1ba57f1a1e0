// `npm run docs:transports`: writes docs/transports.md from the declared capabilities of the transports. A test
// checks that the file is up to date.

import { writeFileSync } from 'node:fs';
import { geminiLive } from '../src/adapters/gemini-live/index.ts';
import { openaiLive } from '../src/adapters/openai-live/index.ts';
import { openaiRealtime } from '../src/adapters/openai-realtime/index.ts';
import { withVoice } from '../src/voice-session.ts';
import type { Transport, TransportCapabilities, Voice } from '../src/voice/index.ts';

const PATH = new URL('../docs/transports.md', import.meta.url);

/** Options that let a transport declare its capabilities without opening a socket. */
const options = {
  apiKey: 'none',
  webSocket: (): never => {
    throw new Error('A table needs no connection');
  },
} as const;

/** The document's sessions never request speech from this voice. */
const voice: Voice = { synthesize: () => Promise.reject(new Error('A table needs no sound')) };

const realtime = openaiRealtime(options);
const gemini = (model: string): Transport => geminiLive({ ...options, model });

const transports: Readonly<Record<string, Transport>> = {
  'OpenAI Realtime': realtime,
  'the same in text, `withVoice`': withVoice(openaiRealtime({ ...options, output: 'text' }), {
    voice,
  }),
  // The local voice's server uses that wire.
  'local voice': realtime,
  'OpenAI Live': openaiLive(options),
  'OpenAI Live, stored': openaiLive({ ...options, store: true }),
  'Gemini 2.5 native audio': gemini('gemini-2.5-flash-native-audio-latest'),
  'Gemini 3.1 flash live': gemini('gemini-3.1-flash-live'),
  'Gemini 3.8 live': gemini('gemini-3.8-live'),
  'Gemini 3.8 extended thinking': gemini('gemini-3.8-live-extended-thinking'),
  'Gemini, unknown model': gemini('gemini-live-of-another-day'),
};

type Value = Required<TransportCapabilities>[keyof TransportCapabilities];

const MS_PER_MINUTE = 60_000;

function shown(name: string, value: Value): string {
  if (value === null) return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number')
    return name === 'maxConnectionMs' ? `${value / MS_PER_MINUTE} min` : `${value}`;
  return value.replaceAll('_', ' ');
}

/** How a wire fulfils a need: a short name, which the legend explains. */
interface Intent {
  readonly name: string;
  readonly how: (can: TransportCapabilities, hasVoice: boolean) => string;
}

const intents: readonly Intent[] = [
  {
    name: 'reply',
    how: ({ responds }) => (responds === 'by_itself' ? 'unasked' : 'asked'),
  },
  {
    name: 'ack',
    how: ({ responds, schedulesToolResults }) => {
      if (responds === 'when_asked') return 'answer, ask';
      return schedulesToolResults ? 'silent answer, ask' : 'answer';
    },
  },
  {
    name: 'deferred result',
    how: ({ defersToolResults, toolCalls }) => {
      if (!defersToolResults) return 'ack, notice';
      return toolCalls === 'delegation' ? 'open delegation' : 'open call';
    },
  },
  {
    name: 'while a tool works',
    how: ({ defersToolResults, responds, schedulesToolResults }) =>
      defersToolResults && (responds === 'when_asked' || schedulesToolResults)
        ? 'told'
        : 'after its answer',
  },
  {
    name: 'silent',
    how: ({ silentContext }) => (silentContext ? 'native' : 'with the next request'),
  },
  {
    name: 'when_idle',
    how: ({ correlatesResponses }) => (correlatesResponses ? 'held, ask' : 'held, ask, assumed'),
  },
  {
    name: 'interrupt',
    how: ({ cancelsResponses }) => (cancelsResponses ? 'cancel, ask' : 'next'),
  },
  { name: 'skip_if_busy', how: () => 'card' },
  {
    name: 'notification',
    how: ({ silentContext }) => (silentContext ? 'message, ask' : 'told in the request'),
  },
  {
    name: 'question',
    how: ({ responds, deletesItems }) => {
      if (responds === 'by_itself') return 'ask, hold back';
      return deletesItems ? 'ask, delete' : 'ask, note';
    },
  },
  {
    name: 'cancel',
    how: ({ responds }) => (responds === 'by_itself' ? 'silent answer' : 'answer'),
  },
  {
    name: 'barge-in',
    how: ({ utterances, truncatesAudio }) =>
      `${utterances}, ${truncatesAudio ? 'truncated' : 'noted'}`,
  },
  {
    name: 'filler',
    how: ({ speaksOutOfBand }, hasVoice) => {
      if (hasVoice) return 'its voice';
      return speaksOutOfBand ? 'asked out of band' : 'needs a voice';
    },
  },
  {
    name: 'transfer',
    how: ({ updatesSession }) => (updatesSession ? 'native' : 'another connection'),
  },
  { name: 'resume', how: ({ resumes }) => (resumes ? 'native, or told' : 'told') },
];

const legend: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  reply: [
    ['asked', 'the session asks for each reply, once it knows the addressee of the words'],
    [
      'unasked',
      'the model replies by itself; it is asked only if it stays silent for `replyTimeoutMs`',
    ],
  ],
  ack: [
    [
      'answer, ask',
      'the call is answered with the pending message, then one response is asked for',
    ],
    ['silent answer, ask', 'the same, and the wire is told not to speak to the answer unasked'],
    ['answer', 'the model speaks to the answer by itself; asked only if it stays silent'],
  ],
  'deferred result': [
    [
      'open call',
      'the call stays unanswered while the conversation goes on; the result is its answer',
    ],
    ['open delegation', 'the same, with a delegation of the model in the place of a named call'],
    ['ack, notice', 'the call is answered at once, and its result told later as a notice'],
  ],
  'while a tool works': [
    [
      'told',
      'a tool that takes longer than 2 s does not delay deliveries: the session tells those that are due, and the model speaks to the tool’s answer afterwards',
    ],
    [
      'after its answer',
      'deliveries wait for the tool: the wire makes no response while a call is open, or the model would speak to an answer by itself in the middle of a delivery',
    ],
  ],
  silent: [
    ['native', 'told to the model without a response being asked for'],
    [
      'with the next request',
      'kept until the model is next asked to speak, since the wire would have it answered',
    ],
  ],
  when_idle: [
    [
      'held, ask',
      'kept by the session until there is a pause, then one response is asked for, whose key comes back',
    ],
    [
      'held, ask, assumed',
      'the same on a wire that gives no key back: the next response is taken for it',
    ],
  ],
  interrupt: [
    ['cancel, ask', 'speech stops and the response is cancelled; then as `when_idle`, at once'],
    ['next', 'the delivery is told next: the wire cannot stop a response under way'],
  ],
  skip_if_busy: [
    [
      'card',
      'while the user or the model speaks, the delivery is not said at all, and rests on the screen; by the session, on any wire',
    ],
  ],
  notification: [
    ['message, ask', 'a message of the system, then one response is asked for'],
    ['told in the request', 'message and request are one'],
  ],
  question: [
    [
      'ask, delete',
      'asked as `when_idle`; words that answer it are deleted from the model’s conversation',
    ],
    ['ask, note', 'the same, and the model is told that the words are dealt with'],
    [
      'ask, hold back',
      'the session holds the model’s unasked reply to words that may be an answer until it knows their addressee, and drops the reply to an answer',
    ],
  ],
  cancel: [
    ['answer', 'the call is answered with the reason, and no response is asked for'],
    ['silent answer', 'the same, and the wire is told not to speak to it'],
  ],
  'barge-in': [
    ['reported', 'the wire says that the user begins to speak'],
    [
      'inferred',
      'the adapter concludes it from words and interruptions; a beginning may be known late',
    ],
    ['truncated', 'unplayed audio is cut out of the model’s memory'],
    ['noted', 'the model is told the words that were heard'],
  ],
  filler: [
    ['its voice', 'the voice of `withVoice` says it, also before the model begins to reply'],
    [
      'asked out of band',
      'while a tool works the model is asked to say it, and does not remember it; with `filler.voice` as above',
    ],
    ['needs a voice', '`filler.voice` says it; without one the session is refused'],
  ],
  transfer: [
    ['native', 'the connection is configured anew'],
    [
      'another connection',
      'the other agent gets a connection of its own, and this one is hung up when it is ready',
    ],
  ],
  resume: [
    ['told', 'a new connection is told the conversation, open calls included'],
    ['native, or told', 'a new connection goes on where the other ended, if the server lets it'],
  ],
};

function table(head: string, rows: readonly (readonly string[])[]): string {
  const names = Object.keys(transports);
  return [
    `| ${[head, ...names].join(' | ')} |`,
    `| ${['---', ...names.map(() => '---')].join(' | ')} |`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
}

/** Returns the whole of docs/transports.md. */
export function transportsDocument(): string {
  const all = Object.values(transports);
  const capabilities = Object.keys(realtime.capabilities).map((name) => [
    `\`${name}\``,
    ...all.map((transport) => {
      // A capability that a transport does not declare counts as present; null is a declaration.
      const { [name as keyof TransportCapabilities]: value = true } = transport.capabilities;
      return shown(name, value);
    }),
  ]);
  const semantics = intents.map(({ name, how }) => [
    name,
    ...all.map((transport) => how(transport.capabilities, transport.voice !== undefined)),
  ]);
  const words = intents.map(({ name }) => {
    const entries = (legend[name] ?? []).map(([word, meaning]) => `  - *${word}*: ${meaning}`);
    return `- **${name}**\n${entries.join('\n')}`;
  });
  return `# Transports

<!-- Written by \`npm run docs:transports\` from what the transports declare: change those. -->

A session says the same things on each of them, and keeps the same promises
([guarantees](guarantees.md)); [one suite](testing-transports.md) checks it. The adapter emulates a missing capability
where it concerns the wire's language; the session emulates the others, for all wires alike. No code asks for the
name of a provider.

## Capabilities of the wires

The names are those of \`TransportCapabilities\` in \`offstage/voice\`.

${table('', capabilities)}

## Behaviour of a session on each wire

${table('', semantics)}

${words.join('\n')}

A model that answers in text (\`output: 'text'\`) gets a voice by \`withVoice\`, and the speech models of any provider go around any
text model: [speech of your own](speech.md).

## A transport of your own

Implement \`Transport\` (\`offstage/voice\`), with \`spokenLead\` of \`offstage/transport\` as its \`lead\`: it leads a session by voice over your
transport. \`import 'offstage'\` loads no voice, so a transport without it is refused. A transport around another passes its \`lead\` on.

\`\`\`ts
import { spokenLead } from 'offstage/transport';
import type { Transport, TransportCapabilities, TransportConnection } from 'offstage/voice';

declare const capabilities: TransportCapabilities;
declare function dial(): TransportConnection;

export const myTransport: Transport = { name: 'mine', lead: spokenLead, capabilities, connect: () => dial() };
\`\`\`

[A suite](testing-transports.md) tests it.
`;
}

if (import.meta.main) writeFileSync(PATH, transportsDocument());
