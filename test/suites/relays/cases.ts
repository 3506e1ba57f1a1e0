// The cases of the suite: what a subagent relies on, whatever protocol its agent speaks.

import type { RelayAct } from '../../../src/testing/doubles/relay-acts.ts';
import type { RelayBench, RelayScene } from './scene.ts';

const EDIT = { title: 'Edit notes.txt', kind: 'edit', input: { path: 'notes.txt' } };
const OPTIONS = [
  { id: 'early', label: 'At eight' },
  { id: 'late', label: 'At nine' },
];

const WORKING: readonly RelayAct[] = [
  { say: 'Working.' },
  { progress: 'Working.' },
  { untilCancelled: true },
];

/** The states in which an agent may be stopped or may end. */
const STATES: readonly {
  readonly name: string;
  readonly acts: readonly RelayAct[];
  readonly reached: (bench: RelayBench) => Promise<unknown>;
}[] = [
  {
    name: 'while it works',
    acts: WORKING,
    reached: (bench) => bench.atWork(),
  },
  {
    name: 'while it asks for permission',
    acts: [{ permission: EDIT }],
    reached: (bench) => bench.next('permission'),
  },
  {
    name: 'while it asks a question',
    acts: [{ question: 'When?', options: OPTIONS }],
    reached: (bench) => bench.next('question'),
  },
];

const usual: readonly RelayScene[] = [
  {
    name: 'returns the words and the end of a turn',
    async play(bench) {
      const session = await bench.start();
      bench.expect(session.id !== '' && !session.isRunning, 'an id, and no turn');
      bench.perform(session, { say: 'All is ' }, { say: 'well.' });
      const { reason, words } = await bench.ended();
      bench.expect(reason === 'completed' && words === 'All is well.', 'its words, completed');
    },
  },
  {
    name: 'runs turns one after another in one session',
    async play(bench) {
      const session = await bench.start();
      for (const say of ['One.', 'Two.', 'Three.']) {
        bench.perform(session, { say });
        const { words } = await bench.ended();
        bench.expect(words === say, `the words of this turn, ${say}`);
      }
    },
  },
  {
    name: 'isolates sessions from each other',
    async play(bench) {
      const one = await bench.start();
      const two = await bench.start();
      bench.expect(one.id !== two.id, 'two ids');
      bench.perform(one, { permission: EDIT });
      const { requestId } = await bench.next('permission');
      two.answer(requestId, { type: 'permitted' });
      two.interrupt();
      bench.answer(one, requestId, { type: 'denied', words: 'No' });
      const { words } = await bench.ended();
      bench.expect(words.includes('denied'), 'the answer of its own session');
    },
  },
  {
    name: 'applies a permission once, to its own request',
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { permission: EDIT }, { permission: EDIT });
      const first = await bench.next('permission');
      bench.expect(first.title === EDIT.title, 'the title of the tool');
      bench.expect(
        JSON.stringify(first.input) === JSON.stringify(EDIT.input),
        'the exact arguments of the tool',
      );
      bench.answer(session, first.requestId, { type: 'permitted' });
      const second = await bench.next('permission');
      bench.expect(second.requestId !== first.requestId, 'a request of its own for the second');
      bench.answer(session, first.requestId, { type: 'permitted' });
      bench.answer(session, second.requestId, { type: 'denied', words: 'No' });
      const { words } = await bench.ended();
      bench.expect(words === 'permitted. denied. ', 'the first permitted, the second denied');
    },
  },
  {
    name: 'ends a question without an answer when it is cancelled',
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { question: 'When?', options: OPTIONS });
      const { requestId } = await bench.next('question');
      bench.answer(session, requestId, { type: 'cancelled' });
      const { words } = await bench.ended();
      bench.expect(words.includes('no answer'), 'it to be told that there is no answer');
    },
  },
  {
    name: 'asks a question with its options, and accepts one',
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { question: 'When?', options: OPTIONS });
      const { requestId, text, options = [] } = await bench.next('question');
      bench.expect(text.includes('When?'), 'the words of the question');
      bench.expect(options.length === OPTIONS.length, 'its options');
      const late = options.find(({ label }) => label === 'At nine');
      bench.answer(session, requestId, {
        type: 'answered',
        text: 'At nine',
        optionId: late?.id ?? '',
      });
      const { words } = await bench.ended();
      bench.expect(words.includes('answer: late'), 'the option');
    },
  },
  {
    name: 'accepts an answer in words',
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { question: 'When?' });
      const { requestId } = await bench.next('question');
      bench.answer(session, requestId, { type: 'answered', text: 'At noon' });
      const { words } = await bench.ended();
      bench.expect(words.includes('answer: At noon'), 'the words');
    },
  },
  {
    name: 'ignores an answer that arrives late',
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { permission: EDIT });
      const { requestId } = await bench.next('permission');
      session.interrupt();
      const { reason } = await bench.ended();
      bench.expect(reason === 'cancelled', 'a cancelled turn');
      bench.answer(session, requestId, { type: 'permitted' });
      bench.perform(session, { say: 'Next.' });
      const { words } = await bench.ended();
      bench.expect(words === 'Next.', 'the words of the next turn only');
      bench.expect(
        !bench.events.some(({ type }) => type === 'tool_started'),
        'no tool that nobody permitted',
      );
    },
  },
  {
    name: 'ignores an interrupt between turns',
    async play(bench) {
      const session = await bench.start();
      session.interrupt();
      bench.perform(session, { say: 'Well.' });
      const { reason, words } = await bench.ended();
      session.interrupt();
      bench.expect(reason === 'completed' && words === 'Well.', 'the turn untouched');
    },
  },
  {
    name: 'reports the beginning and end of tools',
    needs: ['reportsTools'],
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { tool: EDIT }, { tool: EDIT, fails: true });
      const begun = await bench.next('tool_started');
      const ended = await bench.next('tool_ended');
      bench.expect(begun.title === EDIT.title && begun.toolId === ended.toolId, 'one tool');
      bench.expect(ended.ok, 'the first to succeed');
      const failed = await bench.next('tool_ended');
      bench.expect(!failed.ok && failed.toolId !== ended.toolId, 'the second to fail');
      await bench.ended();
    },
  },
  {
    name: 'steers a turn with words',
    needs: ['steers'],
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { untilCancelled: true });
      session.steer('Be quick');
      session.interrupt();
      await bench.ended();
    },
  },
  {
    name: 'reports a turn that fails',
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { say: 'Half.' }, { end: 'refused' });
      const { reason } = await bench.ended();
      bench.expect(reason !== 'completed', 'no success');
    },
  },
  {
    name: 'delivers a flood of words, and ends',
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { flood: 2_000 });
      const { words } = await bench.ended();
      bench.expect(words.length === 2_000 * 'flood '.length, 'all of its words');
    },
  },
  {
    name: 'keeps the session after unreadable input',
    needs: ['garbage'],
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { garbage: true }, { say: 'Well.' });
      const { reason, words } = await bench.ended();
      bench.expect(reason === 'completed' && words === 'Well.', 'the turn to go on');
    },
  },
  {
    name: 'leaves nothing running after an aborted start',
    async play(bench) {
      const controller = new AbortController();
      controller.abort(new Error('no longer needed'));
      const started = await bench.start(undefined, controller.signal).then(
        () => true,
        () => false,
      );
      bench.expect(!started, 'a rejection');
    },
  },
  {
    name: 'resumes a session by its id',
    needs: ['resumes'],
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { say: 'One.' });
      await bench.ended();
      await bench.release(session, 'suspended');
      const again = await bench.start(session.id);
      bench.expect(again.id === session.id && !again.isRunning, 'the same session, without a turn');
      bench.perform(again, { say: 'Two.' });
      const { words } = await bench.ended();
      bench.expect(words === 'Two.', 'the words of the new turn, and no replay of earlier ones');
    },
  },
  {
    name: 'refuses to resume an unknown session',
    needs: ['resumes'],
    async play(bench) {
      const started = await bench.start('no-such-session').then(
        () => true,
        () => false,
      );
      bench.expect(!started, 'a rejection');
    },
  },
  {
    name: 'asks a surviving question again under its id, and accepts the answer',
    needs: ['openQuestionSurvives'],
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { question: 'When?' });
      const asked = await bench.next('question');
      await bench.release(session, 'suspended');
      const again = await bench.start(session.id);
      bench.expect(again.isRunning, 'the turn to be under way');
      const { requestId } = await bench.next('question');
      bench.expect(requestId === asked.requestId, 'the same id');
      bench.answer(again, requestId, { type: 'answered', text: 'At noon' });
      const { words } = await bench.ended();
      bench.expect(words.includes('answer: At noon'), 'the answer');
    },
  },
];

const stopped: readonly RelayScene[] = STATES.flatMap(({ name, acts, reached }) => [
  {
    name: `stops at an interrupt ${name}`,
    async play(bench: RelayBench) {
      const session = await bench.start();
      bench.perform(session, ...acts);
      await reached(bench);
      session.interrupt();
      const { reason } = await bench.ended();
      bench.expect(reason === 'cancelled', 'a cancelled turn');
      bench.perform(session, { say: 'Next.' });
      const { words } = await bench.ended();
      bench.expect(words === 'Next.', 'the next turn to be untouched');
    },
  },
  {
    name: `stops at a release ${name}`,
    async play(bench: RelayBench) {
      const session = await bench.start();
      bench.perform(session, ...acts);
      await reached(bench);
      const before = bench.events.length;
      const how = await bench.release(session);
      bench.expect(how === 'cancelled' || how === 'killed', 'it to be stopped');
      bench.expect(bench.events.length === before, 'no event after the release');
    },
  },
  {
    name: `reports the end of its process ${name}`,
    needs: ['die'] as const,
    async play(bench: RelayBench) {
      const session = await bench.start();
      if (name === 'while it works')
        bench.perform(session, { say: 'Working.' }, { progress: 'Working.' }, { die: true });
      else bench.perform(session, ...acts);
      await reached(bench);
      if (name !== 'while it works') {
        const other = bench.events.findLast(
          (event) => event.type === 'permission' || event.type === 'question',
        );
        if (other && 'requestId' in other) session.answer(other.requestId, { type: 'cancelled' });
        await bench.ended();
        bench.perform(session, { die: true });
      }
      const { message } = await bench.next('closed');
      bench.expect(message !== '', 'a reason');
      session.answer('anything', { type: 'permitted' });
      session.interrupt();
      const how = await bench.release(session);
      bench.expect(how === 'idle', 'nothing to be left to stop');
    },
  },
]);

const deaf: readonly RelayScene[] = [
  {
    name: 'kills an agent that ignores an interrupt',
    needs: ['deaf'],
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { deaf: true }, ...WORKING);
      await bench.atWork();
      session.interrupt();
      await bench.passGrace();
      await bench.next('closed');
    },
  },
  {
    name: 'kills an agent that ignores a release',
    needs: ['deaf'],
    async play(bench) {
      const session = await bench.start();
      bench.perform(session, { deaf: true }, ...WORKING);
      await bench.atWork();
      const how = await bench.release(session);
      bench.expect(how === 'killed', 'it to be killed');
    },
  },
];

export const relayScenes: readonly RelayScene[] = [...usual, ...stopped, ...deaf];
