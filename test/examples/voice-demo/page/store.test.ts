import { beforeEach, describe, expect, test } from 'vitest';
import {
  answeredHere,
  answerProblems,
  applyMessage,
  calls,
  connection,
  endedAt,
  ended,
  openQuestions,
  ownsVoice,
  questions,
  running,
  subagents,
  transcript,
  trouble,
} from '../../../../examples/voice-demo/page/store.ts';
import type { ServerMessage } from '../../../../examples/voice-demo/shared/protocol.ts';
import type {
  QuestionView,
  SessionEvent,
  SubagentView,
} from '../../../../src/actors/contracts/session-views.ts';
import { emptyState } from '../../../support/session-state.ts';

const welcome = (state = emptyState): ServerMessage => ({
  type: 'welcome',
  now: 1000,
  state,
  calls: [{ callId: 'c0', input: { destination: 'home' } }],
  about: { transport: '', lead: '', subagents: '', speech: '' },
  suggestions: [],
});
const happens = (event: SessionEvent): void =>
  applyMessage({ type: 'session.event', now: 1000, event });

const question = (
  requestId: string,
  state: QuestionView['state'],
  askedAt: number,
): QuestionView => ({
  requestId,
  subagentId: 's',
  subagentName: 'ride_booker',
  kind: 'question',
  question: '?',
  options: [],
  state,
  askedAt,
  dueAt: null,
  timeoutMs: 1000,
  answer: null,
});

const subagent = (id: string, end: number | null): SubagentView => ({
  id,
  name: 'ride_booker',
  parentId: null,
  depth: 1,
  hung: false,
  callId: 'c1',
  toolName: 'book_ride',
  task: '',
  state: end === null ? 'running' : 'completed',
  step: 1,
  maxSteps: 5,
  startedAt: 0,
  endedAt: end,
  progress: null,
  outcome: null,
});

beforeEach(() => applyMessage(welcome()));

describe('a welcome', () => {
  test('replaces all that was known', () => {
    happens({ type: 'subagent.changed', subagent: subagent('s1', null) });
    applyMessage(welcome());
    expect(subagents.value).toEqual([]);
    expect(calls.value.get('c0')).toEqual({ destination: 'home' });
  });
});

describe('events', () => {
  test('captions grow in place, in the order in which they began', () => {
    const item = (id: string, text: string, at: number, final: boolean) =>
      happens({
        type: 'transcript.changed',
        item: { id, role: 'user', text, at, final },
      });
    item('b', 'Second', 2, true);
    item('a', 'Fi', 1, false);
    item('a', 'First', 1, true);
    expect(transcript.value.map(({ text }) => text)).toEqual(['First', 'Second']);
  });

  test('subagents are followed to their end', () => {
    happens({ type: 'subagent.changed', subagent: subagent('s1', null) });
    expect(running.value).toHaveLength(1);
    happens({ type: 'subagent.changed', subagent: subagent('s1', 5) });
    expect(running.value).toHaveLength(0);
    expect(subagents.value).toHaveLength(1);
  });

  test('the question that is asked comes first, the others in the order of asking', () => {
    happens({ type: 'question.changed', question: question('late', 'queued', 3) });
    happens({ type: 'question.changed', question: question('early', 'queued', 1) });
    happens({ type: 'question.changed', question: question('asked', 'open', 2) });
    happens({ type: 'question.changed', question: question('over', 'answered', 0) });
    expect(openQuestions.value.map(({ requestId }) => requestId)).toEqual([
      'asked',
      'early',
      'late',
    ]);
    expect(questions.value).toHaveLength(4);
    expect([...endedAt.value.keys()]).toEqual(['over']);
  });

  test('arguments of calls are kept for titles', () => {
    happens({ type: 'tool.called', callId: 'c1', name: 'book_ride', input: { destination: 'x' } });
    expect(calls.value.get('c1')).toEqual({ destination: 'x' });
  });

  test('connection, trouble and end are known', () => {
    happens({ type: 'connection.changed', state: 'reconnecting' });
    happens({ type: 'error.reported', code: 'X', message: 'oops' });
    happens({ type: 'session.ended', error: { code: 'Y', message: 'no key' } });
    expect([connection.value, trouble.value, ended.value]).toEqual([
      'reconnecting',
      'oops',
      'no key',
    ]);
  });
});

describe('state of this page alone', () => {
  test('a refused answer says why, an accepted one takes it back', () => {
    applyMessage({
      type: 'answer.receipt',
      requestId: 'q',
      receipt: { accepted: false, reason: 'queued' },
    });
    expect(answerProblems.value.get('q')).toBe('It is not its turn yet.');
    applyMessage({ type: 'answer.receipt', requestId: 'q', receipt: { accepted: true } });
    expect(answerProblems.value.has('q')).toBe(false);
  });

  test('an answer of this page is known as such, a refused one is none', () => {
    const receipt = { accepted: false, reason: 'unclear' } as const;
    applyMessage({ type: 'answer.receipt', requestId: 'q2', receipt });
    expect(answeredHere.value.has('q2')).toBe(false);
    applyMessage({ type: 'answer.receipt', requestId: 'q2', receipt: { accepted: true } });
    expect(answeredHere.value.has('q2')).toBe(true);
  });

  test('ownership of the voice', () => {
    applyMessage({ type: 'voice.owner', own: true });
    expect(ownsVoice.value).toBe(true);
    applyMessage({ type: 'voice.owner', own: false });
    expect(ownsVoice.value).toBe(false);
  });
});
