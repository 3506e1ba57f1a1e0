// Conversations that stop in the middle. Each one is frozen as a journal of this version, which every later version
// must continue (see test/corpus/README.md).
//
// A story never changes once a journal of it has been frozen. A later version plays `options` and then `continued` on
// entries that it did not write.

import { type JournalEntry } from '../../src/entries/journal.ts';
import { defineTool, createParentSubagentToolset } from '../../src/index.ts';
import { leadTools } from '../../src/entries/subagents.ts';
import { companions } from '../../src/compat/index.ts';
import { z } from 'zod';
import { textLife, turns, voiceLife, world, type Inheritance, type World } from './crashes.ts';
import { FakeTransport } from './fake-transport.ts';
import { orderMonitor } from './order-monitor.ts';
import { calls, never, say, simpleTool } from './subagent-runs.ts';
import { answering, instructionsOf, type ScriptedSubagent, type TalkOptions } from './text-talk.ts';
import type { VoiceTalkOptions } from './voice-talk.ts';

type TextLife = ReturnType<typeof textLife>;
type VoiceLife = ReturnType<typeof voiceLife>;

interface Story<Life, Options> {
  readonly name: string;
  /** Creates the options for each process. */
  readonly options: (process: 'first' | 'later') => Options;
  /** Plays the story until the process dies. */
  readonly told: (life: Life) => Promise<void>;
  /**
   * Continues the story in the next process. Throws if a result is missing. Resolves with the lead agent's last
   * message.
   */
  readonly continued: (life: Life) => Promise<string>;
  /** The result of `continued`. */
  readonly end: RegExp;
}

export type TextStory = Story<TextLife, TalkOptions> & { readonly by: 'text' };
export type VoiceStory = Story<VoiceLife, VoiceTalkOptions> & { readonly by: 'voice' };

const HOUR = 3_600_000;
const options = [
  { id: 'economy', label: 'Economy', description: '$12' },
  { id: 'premium', label: 'Premium', description: '$24' },
];

const report: ScriptedSubagent = { script: turns(say('Revenue rose by 4 %.')) };
const ride: ScriptedSubagent = {
  script: turns(calls(['ask_user', { question: 'Which class?' }]), ({ results }) =>
    say(`Booked ${JSON.stringify(results[0])}`),
  ),
  config: { interactive: true },
};
const seat: ScriptedSubagent = {
  script: turns(calls(['ask_user', { question: 'Which fare?', options }]), ({ results }) =>
    say(`Reserved ${JSON.stringify(results[0])}`),
  ),
  config: { interactive: true },
};
const mail: ScriptedSubagent = {
  script: turns(calls(['send_mail', { to: 'Ada' }]), ({ results }) =>
    say(`Mail: ${JSON.stringify(results[0])}`),
  ),
  config: {
    tools: { send_mail: simpleTool(() => 'sent', { needsApproval: true }) },
  },
};
/** Hangs in the first process. A later process may repeat an idempotent call. */
const worker = (process: 'first' | 'later', idempotent: boolean): ScriptedSubagent => ({
  script: turns(calls(['look', {}]), ({ results }) => say(`Seen: ${JSON.stringify(results[0])}`)),
  config: {
    tools: {
      look: simpleTool(() => (process === 'first' ? never() : 'a map'), { idempotent }),
    },
  },
});

/** The service of the current process. */
let monitor = orderMonitor();

const lastSaid = (life: TextLife): string => life.said().join('\n');

async function tellsAll(life: TextLife): Promise<string> {
  await life.environment.advance(5000);
  return lastSaid(life);
}

export const textStories: readonly TextStory[] = [
  {
    by: 'text',
    name: 'question in words is open',
    options: () => ({ subagents: { ride, report } }),
    async told(life) {
      await life.type('hello');
      await life.type('use report');
      await life.environment.advance(5000);
      await life.type('use ride');
    },
    async continued(life) {
      await life.type('economy');
      return tellsAll(life);
    },
    end: /Booked .*economy/,
  },
  {
    by: 'text',
    name: 'choice is open and an approval waits',
    options: () => ({ subagents: { seat, mail } }),
    async told(life) {
      await life.type('use seat and mail');
    },
    async continued(life) {
      await life.type('premium');
      await life.environment.advance(1000);
      // The lead agent mentioned the reservation after it had asked for the approval, so the action is read back.
      for (const _ of [1, 2]) await life.type('yes');
      return tellsAll(life);
    },
    end: /Reserved .*premium[^]*Mail: .*sent|Mail: .*sent[^]*Reserved .*premium/,
  },
  {
    by: 'text',
    name: 'tool calls of subagents run',
    options: (process) => ({
      subagents: { safe: worker(process, true), unsafe: worker(process, false) },
    }),
    async told(life) {
      await life.type('use safe and unsafe');
    },
    continued: tellsAll,
    end: /is not known[^]*a map|a map[^]*is not known/,
  },
  {
    by: 'text',
    name: 'tool call of the lead agent runs',
    options: (process) => ({
      tools: [
        defineTool({
          name: 'weather',
          description: 'Looks at the sky',
          parameters: z.looseObject({}),
          idempotent: true,
          execute: () => (process === 'first' ? never() : 'blue sky'),
        }),
      ],
    }),
    async told(life) {
      await life.type('use weather');
    },
    continued: tellsAll,
    end: /blue sky/,
  },
  {
    by: 'text',
    name: 'results are due while the lead agent replies',
    options: (process) => ({
      subagents: { report, safe: { script: turns(say('Two of five found.')) } },
      lead: (prompt) => {
        const { user, results } = prompt;
        if (prompt.prompt.at(-1)?.role === 'tool')
          return process === 'first' ? never() : { text: `Tools said: ${JSON.stringify(results)}` };
        const wanted = /^use (\S+) and (\S+)$/.exec(user);
        if (wanted) return calls([wanted[1] ?? '', {}], [wanted[2] ?? '', {}]);
        return { text: `Told: ${user}` };
      },
    }),
    async told(life) {
      await life.type('use report and safe');
    },
    continued: tellsAll,
    end: /Revenue rose[^]*Two of five|Two of five[^]*Revenue rose/,
  },
  {
    by: 'text',
    name: 'budget is spent',
    options: () => ({
      subagents: {
        search: {
          script: ({ user }) =>
            user.includes('last answer') ? say('Two of five found.') : calls(['look']),
          config: { maxSteps: 50, tools: { look: simpleTool(() => 'seen') } },
        },
        report,
      },
      budget: { steps: 5 },
    }),
    async told(life) {
      await life.type('use search');
      await life.environment.advance(5000);
    },
    async continued(life) {
      await life.type('use report');
      return tellsAll(life);
    },
    end: /budget|BUDGET/,
  },
  {
    by: 'text',
    name: 'service has told an event and works on another one',
    options: (process) => {
      monitor = orderMonitor({
        script: ({ user }) =>
          process === 'first' && user.includes('"order":8')
            ? never()
            : say(user.includes('"order":8') ? 'Order 8 was lost.' : 'Order 7 was shipped.'),
      });
      // The lead agent reports the news after the question was asked.
      return { subagents: { ride }, services: [monitor.service], lead: answering('premium') };
    },
    async told(life) {
      await life.type('use ride');
      await monitor.happens({ order: 7 });
      await life.environment.advance(5000);
      await monitor.happens({ order: 8 });
      await life.environment.settle();
    },
    async continued(life) {
      await life.type('premium');
      return tellsAll(life);
    },
    end: /Order 8 was lost[^]*Booked .*premium|Booked .*premium[^]*Order 8 was lost/,
  },
  {
    by: 'text',
    name: 'child waits for its parent',
    options: () => ({
      subagents: {
        scout: {
          script: turns(calls(['request_input', { question: 'How deep?' }]), ({ results }) =>
            calls(['complete_task', { result: `Dug: ${JSON.stringify(results[0])}` }]),
          ),
        },
      },
      tools: leadTools(
        createParentSubagentToolset({
          adapters: { scout: { instructions: instructionsOf('scout') } },
        }),
      ),
    }),
    async told(life) {
      await life.type(
        `use spawn_subagent ${JSON.stringify({ task: 'Dig', adapterName: 'scout' })}`,
      );
    },
    async continued(life) {
      const [child] = life.state().subagents;
      if (!child) throw new Error('The child is gone');
      await life.type(
        `use send_to_subagent ${JSON.stringify({ subagentId: child.id, content: '2 m', inResponseTo: `${child.id}.q1` })}`,
      );
      await life.type(`use check_subagent ${JSON.stringify({ subagentId: child.id })}`);
      return tellsAll(life);
    },
    end: /Dug: .*2 m/,
  },
  {
    by: 'text',
    name: 'subagents wait for a slot',
    options: (process) => ({
      subagents: { first: worker(process, true), second: report },
      limits: { maxConcurrentPerSession: 1 },
    }),
    async told(life) {
      await life.type('use first and second');
    },
    continued: tellsAll,
    end: /a map[^]*Revenue|Revenue[^]*a map/,
  },
  {
    by: 'text',
    name: 'subagent that lives as long as the session has a history',
    options: () => ({
      subagents: {
        clerk: {
          // Reads the subagent's tasks, including those of earlier versions, which were not notes.
          script: ({ prompt }) =>
            say(
              `Noted ${prompt.filter((it) => /Execute the (?:quoted )?task/.test(JSON.stringify(it))).length}.`,
            ),
          config: { lifetime: 'session' },
        },
      },
    }),
    async told(life) {
      await life.type('use clerk {"note":"one"}');
      await life.environment.advance(5000);
    },
    async continued(life) {
      await life.type('use clerk {"note":"two"}');
      return tellsAll(life);
    },
    end: /Noted 2\./,
  },
  {
    by: 'text',
    name: 'another agent leads',
    options: () => ({
      subagents: { ride },
      others: [{ name: 'billing', description: 'knows about invoices' }],
    }),
    async told(life) {
      await life.type('use ride');
      await life.type('window');
      await life.environment.advance(5000);
      await life.type('use transfer_to_agent {"agent_name":"billing"}');
    },
    async continued(life) {
      if (life.state().agent !== 'billing') throw new Error('billing does not lead');
      await life.type('an invoice, please');
      return tellsAll(life);
    },
    end: /You said: an invoice, please/,
  },
  {
    by: 'text',
    name: 'companion was told something',
    options: () => ({
      subagents: {
        pal: {
          script: ({ prompt }) =>
            say(`Heard ${prompt.filter(({ role }) => role === 'user').length}.`),
        },
      },
      tools: leadTools(
        companions([{ agent: { name: 'pal', instructions: instructionsOf('pal') } }]),
      ),
    }),
    async told(life) {
      await life.type('use companion__spawnAgent {"agentType":"pal","message":"Good morning"}');
      await life.environment.advance(5000);
    },
    async continued(life) {
      await life.type('use companion__sendMessage {"agentId":"pal-1","message":"Good night"}');
      return tellsAll(life);
    },
    end: /Heard 2\./,
  },
];

async function heardAsked(life: VoiceLife, text: string): Promise<void> {
  await life.pause();
  if (!life.asked()?.includes(text)) throw new Error(`Expected ${text}, got ${life.asked()}`);
  await life.speak(text);
}

const deliveries = (life: VoiceLife): string =>
  JSON.stringify([life.state().deliveries, life.state().subagents, life.state().questions]);

export const voiceStories: readonly VoiceStory[] = [
  {
    by: 'voice',
    name: 'question was heard',
    options: () => ({ subagents: { ride } }),
    async told(life) {
      await life.use('ride');
      await heardAsked(life, 'Which class?');
    },
    async continued(life) {
      await heardAsked(life, 'Which class?');
      await life.say('economy');
      await heardAsked(life, 'economy');
      return deliveries(life);
    },
    end: /Booked .*economy/,
  },
  {
    by: 'voice',
    name: 'question is being said',
    options: () => ({ subagents: { seat } }),
    async told(life) {
      await life.use('seat');
      await life.pause();
      await life.play(life.model().speak('Which fare?'), 300);
    },
    async continued(life) {
      await heardAsked(life, 'Which fare?');
      await life.say('premium');
      await heardAsked(life, 'premium');
      return deliveries(life);
    },
    end: /Reserved .*premium/,
  },
  {
    by: 'voice',
    name: 'result was heard in part',
    options: () => ({ subagents: { report } }),
    async told(life) {
      await life.use('report');
      await life.pause();
      await life.play(life.model().speak('Revenue rose by 4 %.'), 200);
    },
    async continued(life) {
      await heardAsked(life, 'Revenue rose by 4 %.');
      return deliveries(life);
    },
    end: /"state":"delivered"/,
  },
  {
    by: 'voice',
    name: 'user is speaking',
    options: () => ({ subagents: { report } }),
    async told(life) {
      await life.use('report');
      life.model().speechStarted('utterance_open');
      await life.environment.settle();
    },
    async continued(life) {
      await life.environment.advance(10_000);
      await heardAsked(life, 'Revenue rose by 4 %.');
      return deliveries(life);
    },
    end: /"state":"delivered"/,
  },
  {
    by: 'voice',
    name: 'question is parked, nobody is there',
    options: () => ({ subagents: { ride, report } }),
    async told(life) {
      await life.use('ride');
      await heardAsked(life, 'Which class?');
      life.leave();
      await life.environment.advance(HOUR);
    },
    async continued(life) {
      await heardAsked(life, 'Which class?');
      await life.say('premium');
      await heardAsked(life, 'premium');
      return deliveries(life);
    },
    end: /Booked .*premium/,
  },
  {
    by: 'voice',
    name: 'line was lost and is dialled again',
    options: () => ({ subagents: { report, ride } }),
    async told(life) {
      await life.use('report');
      await life.pause();
      life.model().begin('Revenue rose', 1000);
      await life.environment.settle();
      life.transport.autoReady = false;
      life.model().drop();
      await life.environment.advance(1500);
    },
    async continued(life) {
      await life.pause();
      await heardAsked(life, 'Revenue rose by 4 %.');
      return deliveries(life);
    },
    end: /"state":"delivered"/,
  },
  {
    by: 'voice',
    name: 'connection is about to be replaced, with a call open',
    options: () => ({
      subagents: {
        ride: { ...ride, config: { interactive: true, inputTimeout: 2 * HOUR }, pending: null },
      },
      transport: new FakeTransport({ maxConnectionMs: HOUR }),
    }),
    async told(life) {
      await life.use('ride');
      await heardAsked(life, 'Which class?');
      life.transport.autoReady = false;
      await life.environment.advance(HOUR * 0.96);
      if (life.session.isIdle) throw new Error('No connection is being dialled');
    },
    async continued(life) {
      await heardAsked(life, 'Which class?');
      await life.say('economy');
      await life.environment.advance(2000);
      await heardAsked(life, 'economy');
      return deliveries(life);
    },
    end: /Booked .*economy/,
  },
];

export interface Freezing {
  readonly snapshots?: { readonly afterEntries: number; readonly trim?: boolean };
}

/** Plays a story until its process dies. */
export async function playStory(
  story: TextStory | VoiceStory,
  { snapshots }: Freezing = {},
): Promise<Inheritance> {
  const of = world(snapshots === undefined ? {} : { snapshots });
  const life = await begin(of, story, 'first');
  if (story.by === 'text') await story.told(life as TextLife);
  else await story.told(life as VoiceLife);
  life.kill();
  return { entries: of.entries, at: of.environment.clock.now() };
}

/** Returns the state of the next process after its start, and how the story ends. */
export async function continueStory(
  story: TextStory | VoiceStory,
  inheritance: Inheritance,
): Promise<{ readonly state: Essence; readonly end: string; readonly errors: readonly unknown[] }> {
  const of = world({ inheritance });
  const life = await begin(of, story, 'later');
  const state = essenceOf(life.state());
  const end =
    story.by === 'text'
      ? await story.continued(life as TextLife)
      : await story.continued(life as VoiceLife);
  await life.close();
  return { state, end, errors: life.errors };
}

async function begin(
  of: World,
  story: TextStory | VoiceStory,
  process: 'first' | 'later',
): Promise<TextLife | VoiceLife> {
  const life =
    story.by === 'text'
      ? textLife(of, story.options(process))
      : voiceLife(of, story.options(process));
  await life.start();
  return life;
}

/** The state of a session on which every version agrees. */
export interface Essence {
  readonly agent: string | null;
  readonly transcript: readonly { readonly role: string; readonly text: string }[];
  readonly subagents: readonly unknown[];
  readonly questions: readonly unknown[];
  readonly deliveries: readonly unknown[];
}

function essenceOf(state: ReturnType<TextLife['state']>): Essence {
  return {
    agent: state.agent,
    // Each version may word its messages to the lead agent differently.
    transcript: state.transcript.flatMap(({ role, text }) =>
      text.startsWith('Told: ') ? [] : [{ role, text }],
    ),
    subagents: state.subagents.map(({ id, name, state: value, outcome }) => ({
      id,
      name,
      state: value,
      status: outcome?.status ?? null,
    })),
    questions: state.questions.map(({ requestId, question, kind, options: buttons, answer }) => ({
      requestId,
      question,
      kind,
      options: buttons.map(({ id }) => id),
      answer,
    })),
    deliveries: state.deliveries.map(({ deliveryId, kind, text }) => ({ deliveryId, kind, text })),
  };
}

/** A frozen story. */
export interface FrozenStory extends Inheritance {
  readonly by: 'text' | 'voice';
  readonly name: string;
  /** Whether the journal was trimmed to a snapshot and the entries that follow it. */
  readonly isTrimmed: boolean;
  /** The state after a restart in the version that wrote the story. */
  readonly state: Essence;
}

export const allStories: readonly (TextStory | VoiceStory)[] = [...textStories, ...voiceStories];

/** Returns each story twice: with all its entries, and trimmed to a snapshot and the entries that follow it. */
export async function freezeStories(): Promise<readonly FrozenStory[]> {
  const frozen: FrozenStory[] = [];
  for (const isTrimmed of [false, true])
    for (const story of allStories) {
      const { by, name } = story;
      const kept = await playStory(
        story,
        isTrimmed ? { snapshots: { afterEntries: 12, trim: true } } : {},
      );
      const { state, end } = await continueStory(story, kept);
      if (!story.end.test(end)) throw new Error(`${name} ends with ${end}`);
      frozen.push({ by, name, isTrimmed, ...kept, state });
    }
  return frozen;
}

/** Returns the scope of a story in a journal that contains all stories. */
export const frozenScope = ({ by, name, isTrimmed }: FrozenStory): string =>
  `${by}: ${name}${isTrimmed ? ' (trimmed)' : ''}`;

/** Returns the entries with the scope that the story's process wrote. */
export const ofStory = (entries: readonly JournalEntry[]): readonly JournalEntry[] =>
  entries.map((entry) => ({ ...entry, scope: 'ses' }));

/** Returns the story of a frozen journal. */
export function storyOf({ by, name }: FrozenStory): TextStory | VoiceStory {
  const story = allStories.find((one) => one.by === by && one.name === name);
  if (!story) throw new Error(`The story "${name}" is gone: a frozen one is never changed`);
  return story;
}
