// `npm run docs:transports`: writes docs/transports.md from the capabilities that the transports declare. A test checks
// that the file is up to date.

import { writeFileSync } from 'node:fs';
import { geminiLive } from '../src/adapters/gemini-live/index.ts';
import { openaiLive } from '../src/adapters/openai-live/index.ts';
import { openaiRealtime } from '../src/adapters/openai-realtime/index.ts';
import { withVoice } from '../src/voice-session.ts';
import type { Transport, TransportCapabilities, Voice } from '../src/voice/index.ts';

const PATH = new URL('../docs/transports.md', import.meta.url);

/** Options with which a transport declares its capabilities without opening a socket. */
const options = {
  apiKey: 'none',
  webSocket: (): never => {
    throw new Error('A table needs no connection');
  },
} as const;

/** The sessions in the document never request speech from this voice. */
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
    ['asked', 'the session requests each reply once it knows whom the user was addressing'],
    [
      'unasked',
      'the model replies on its own, and is asked only if it stays silent for `replyTimeoutMs`',
    ],
  ],
  ack: [
    [
      'answer, ask',
      'the call is answered with the pending message, and then one response is requested',
    ],
    [
      'silent answer, ask',
      'the same, and the wire is instructed not to speak about the answer unprompted',
    ],
    [
      'answer',
      'the model speaks about the answer on its own, and is asked only if it stays silent',
    ],
  ],
  'deferred result': [
    [
      'open call',
      'the call stays unanswered while the conversation continues, and the result is its answer',
    ],
    ['open delegation', 'the same, but the model makes a delegation instead of a named call'],
    ['ack, notice', 'the call is answered at once, and its result is delivered later as a notice'],
  ],
  'while a tool works': [
    [
      'told',
      'a tool that takes longer than 2 s does not delay deliveries: the session delivers what is due, and the model speaks about the tool’s result afterwards',
    ],
    [
      'after its answer',
      'deliveries wait for the tool, because the wire makes no response while a call is open, or because the model would speak about a result on its own during a delivery',
    ],
  ],
  silent: [
    ['native', 'passed to the model without requesting a response'],
    [
      'with the next request',
      'kept until the model is next asked to speak, because the wire would make the model answer it',
    ],
  ],
  when_idle: [
    [
      'held, ask',
      'kept by the session until there is a pause; then one response is requested, which returns its key',
    ],
    [
      'held, ask, assumed',
      'the same on a wire that returns no key, so the next response is assumed to be the requested one',
    ],
  ],
  interrupt: [
    [
      'cancel, ask',
      'speech stops and the response is cancelled; then the delivery is made at once, as with `when_idle`',
    ],
    ['next', 'the delivery is made next, because the wire cannot stop a running response'],
  ],
  skip_if_busy: [
    [
      'card',
      'while the user or the model is speaking, the delivery is not spoken and stays on screen; the session does this on any wire',
    ],
  ],
  notification: [
    ['message, ask', 'a system message is sent, and then one response is requested'],
    ['told in the request', 'the message is part of the request'],
  ],
  question: [
    [
      'ask, delete',
      'asked as with `when_idle`; an utterance that answers the question is deleted from the model’s conversation',
    ],
    ['ask, note', 'the same, but a note informs the model that the utterance has been handled'],
    [
      'ask, hold back',
      'if an utterance may be an answer, the session holds the model’s unprompted reply until it knows whom the user was addressing, and drops the reply if the utterance was an answer',
    ],
  ],
  cancel: [
    ['answer', 'the call is answered with the reason, and no response is requested'],
    ['silent answer', 'the same, and the wire is instructed not to speak about the answer'],
  ],
  'barge-in': [
    ['reported', 'the wire reports when the user starts to speak'],
    [
      'inferred',
      'the adapter infers from words and interruptions that the user is speaking, and may learn late when the speech started',
    ],
    ['truncated', 'unplayed audio is removed from the model’s memory'],
    ['noted', 'a note tells the model which words were heard'],
  ],
  filler: [
    [
      'its voice',
      'the voice of `withVoice` speaks the filler, even before the model starts to reply',
    ],
    [
      'asked out of band',
      'while a tool is running, the model is asked to speak the filler, and does not remember it; with `filler.voice`, as above',
    ],
    [
      'needs a voice',
      '`filler.voice` speaks the filler; without this voice, the session is refused',
    ],
  ],
  transfer: [
    ['native', 'the connection is reconfigured'],
    [
      'another connection',
      'the other agent gets a new connection, and the old one is closed when the new one is ready',
    ],
  ],
  resume: [
    ['told', 'a new connection receives the conversation, including open calls'],
    [
      'native, or told',
      'a new connection continues where the previous one ended, if the server allows it',
    ],
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

/** Returns the complete text of docs/transports.md. */
export function transportsDocument(): string {
  const all = Object.values(transports);
  const capabilities = Object.keys(realtime.capabilities).map((name) => [
    `\`${name}\``,
    ...all.map((transport) => {
      // A capability that a transport does not declare counts as present; null counts as declared.
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

A session says the same things and gives the same guarantees on each transport ([guarantees](guarantees.md)), and
[one suite](testing-transports.md) checks this. The adapter emulates a missing capability if it concerns the wire format,
and the session emulates all others in the same way for every wire. No code depends on the name of a provider.

## Capabilities of the wires

The names are those of \`TransportCapabilities\` in \`offstage/voice\`.

${table('', capabilities)}

## Behaviour of a session on each wire

${table('', semantics)}

${words.join('\n')}

\`withVoice\` gives a voice to a model that answers in text (\`output: 'text'\`). You can combine any provider's speech models
with any text model: [your own speech engine](speech.md).

## A transport of your own

Implement \`Transport\` (\`offstage/voice\`), with \`spokenLead\` of \`offstage/transport\` as its \`lead\`, which leads a voice session over
your transport. \`import 'offstage'\` loads no voice code, so a transport without \`lead\` is refused. A transport that wraps another
transport passes on that transport's \`lead\`.

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
