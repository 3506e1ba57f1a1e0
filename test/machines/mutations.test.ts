// Do the checks bite? Faults are planted in the machines, one at a time, and each must be caught
// by the property that is there for it. The machines themselves pass (see the other tests); so
// do copies of them without a fault, so that it is not the planting that is caught.

import { describe, expect, test } from 'vitest';
import {
  interactionMachine,
  outboxMachine,
  questionMachine,
  sessionMachine,
  subagentMachine,
  toolCallMachine,
} from '../../src/machines/index.ts';
import { checkInteraction } from './support/interaction-check.ts';
import {
  anybodyReleases,
  crossingForgotten,
  interactionFaults,
  onePhase,
} from './support/interaction-faults.ts';
import { mutate } from './support/mutate.ts';
import { checkOutbox } from './support/outbox-check.ts';
import {
  gateIgnored,
  offersToNobody,
  outboxFaults,
  reofferForgotten,
  staleReportCounts,
} from './support/outbox-faults.ts';
import { checkQuestion } from './support/question-check.ts';
import {
  neverReleased,
  neverReplied,
  neverRetracted,
  questionFaults,
} from './support/question-faults.ts';
import { checkQuestions, type QuestionsOptions } from './support/questions-system.ts';
import { checkSession } from './support/session-check.ts';
import { generationSurvives, sessionFaults } from './support/session-faults.ts';
import { checkSpeech, type SpeechOptions } from './support/speech-system.ts';
import { checkSubagent } from './support/subagent-check.ts';
import { neverWithdrawn, subagentFaults } from './support/subagent-faults.ts';
import { checkToolCall } from './support/tool-call-check.ts';
import { toolCallFaults } from './support/tool-call-faults.ts';
import { catches, holdsThroughout } from './support/verdicts.ts';

const nothing = (): void => {};

describe('in a subagent', () => {
  test('nothing is caught without a fault', () =>
    holdsThroughout(checkSubagent(mutate(subagentMachine, nothing))));

  test.each(subagentFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkSubagent(machine, first), property),
  );
});

describe('in a question', () => {
  test('nothing is caught without a fault', () =>
    holdsThroughout(checkQuestion(mutate(questionMachine, nothing))));

  test.each(questionFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkQuestion(machine, first), property),
  );
});

describe('in the arbiter', () => {
  test('nothing is caught without a fault', () =>
    holdsThroughout(checkInteraction(mutate(interactionMachine, nothing))));

  test.each(interactionFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkInteraction(machine, first), property),
  );
});

describe('in the outbox', { timeout: 60_000 }, () => {
  const scope = 'a result and the progress of one subagent';

  test('nothing is caught without a fault', () =>
    holdsThroughout(checkOutbox(mutate(outboxMachine, nothing), scope)));

  test.each(outboxFaults)('$fault', ({ machine, property, scope: own = scope }) =>
    catches((first) => checkOutbox(machine, own, first), property),
  );
});

describe('in a tool call', () => {
  test('nothing is caught without a fault', () =>
    holdsThroughout(checkToolCall(mutate(toolCallMachine, nothing))));

  test.each(toolCallFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkToolCall(machine, first), property),
  );
});

describe('in a session', { timeout: 60_000 }, () => {
  test('nothing is caught without a fault', () =>
    holdsThroughout(checkSession(mutate(sessionMachine, nothing))));

  test.each(sessionFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkSession(machine, first), property),
  );
});

describe('between subagents, questions and the arbiter', { timeout: 60_000 }, () => {
  const check = (machines: Partial<QuestionsOptions>) =>
    checkQuestions({ subagents: ['a', 'b'], questions: 1, maxInFlight: 2, ...machines });
  const faults: readonly (Partial<QuestionsOptions> & { fault: string; property: string })[] = [
    {
      fault: 'the floor is taken away in one phase',
      interaction: onePhase,
      property: 'P2: at most one question has the floor',
    },
    {
      fault: 'a release by somebody else counts',
      interaction: anybodyReleases,
      property: 'P2: only the owner frees the floor, under its epoch, or because it is over',
    },
    {
      fault: 'a release that crosses its grant is ignored',
      interaction: crossingForgotten,
      property: 'an end can always be reached',
    },
    {
      fault: 'the release is forgotten',
      question: neverReleased,
      property: 'an end can always be reached',
    },
    {
      fault: 'the asker is not told',
      question: neverReplied,
      property: 'nobody waits for nothing',
    },
    {
      fault: 'a question that is given up is not withdrawn',
      subagent: neverWithdrawn,
      property: 'nobody asks for one that has ended',
    },
  ];

  test('nothing is caught without a fault', () => holdsThroughout(check({})));

  test.each(faults)('$fault', ({ fault: _, property, ...machines }) =>
    catches((onViolation) => check({ ...machines, onViolation }), property),
  );
});

describe('between the outbox, the session and the lead agent', { timeout: 60_000 }, () => {
  const check = (options: Partial<SpeechOptions>) =>
    checkSpeech({ together: 'unit', results: 1, asks: false, mishaps: ['bargeIn'], ...options });
  const faults: readonly (Partial<SpeechOptions> & { fault: string; property: string })[] = [
    {
      fault: 're-offering is forgotten',
      outbox: reofferForgotten,
      property: 'P4: a result waits, is being said, or has ended',
    },
    {
      fault: 'the gate is ignored',
      outbox: gateIgnored,
      property: 'O1: only from an open gate',
    },
    {
      fault: 'a report about an earlier attempt counts',
      outbox: staleReportCounts,
      together: 'spread',
      mishaps: ['timeout'],
      property: 'O2: what ends as heard was said to the end, in this attempt',
    },
    {
      fault: 'something urgent is offered to nobody',
      outbox: offersToNobody,
      mishaps: ['urgent', 'detach'],
      property: 'O1: only from an open gate',
    },
    {
      fault: 'a response outlives its connection',
      session: generationSurvives,
      mishaps: ['loss'],
      property: 'an end can always be reached',
    },
    {
      fault: 'a question that is over is said all the same',
      question: neverRetracted,
      asks: true,
      mishaps: [],
      property: 'P4: a question that is over is in the outbox no more',
    },
  ];

  test('nothing is caught without a fault', () => holdsThroughout(check({})));

  test.each(faults)('$fault', ({ fault: _, property, ...options }) =>
    catches((onViolation) => check({ ...options, onViolation }), property),
  );
});
