// Shows that the checks find faults: each fault is planted in a machine, and the property for it must catch the fault.
// The real machines pass the checks (see the other tests). Copies without a fault also pass, so the planting itself is
// not reported.

import { describe, test } from 'vitest';
import {
  batchMachine,
  interactionMachine,
  outboxMachine,
  questionMachine,
  sessionMachine,
  subagentMachine,
  toolCallMachine,
} from '../../src/machines/index.ts';
import { checkBatch } from './support/batch-check.ts';
import { batchFaults, lateForgotten, placesKept } from './support/batch-faults.ts';
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
  offersWithoutClient,
  outboxFaults,
  reofferForgotten,
  staleReportCounts,
} from './support/outbox-faults.ts';
import { checkChangedCall } from './support/changed-call-check.ts';
import { checkQuestion } from './support/question-check.ts';
import {
  besideFaults,
  besidePresented,
  neverReleased,
  neverReplied,
  followedCounts,
  neverRetracted,
  changedCallFaults,
  questionFaults,
  readingFaults,
} from './support/question-faults.ts';
import { checkQuestions, type QuestionsOptions } from './support/questions-system.ts';
import { checkSession } from './support/session-check.ts';
import { generationSurvives, sessionFaults } from './support/session-faults.ts';
import { checkSpeech, type SpeechOptions } from './support/speech-system.ts';
import { checkSubagent } from './support/subagent-check.ts';
import { neverWithdrawn, subagentFaults } from './support/subagent-faults.ts';
import { checkToolCall } from './support/tool-call-check.ts';
import { toolCallFaults } from './support/tool-call-faults.ts';
import { catches, finds, holdsThroughout } from './support/verdicts.ts';

interface PlantedFault<Options> {
  readonly fault: string;
  readonly options: Partial<Options>;
  readonly property: string;
}

const patience = { timeout: 60_000 };
const nothing = (): void => {};

describe('in a subagent', patience, () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkSubagent('calls', mutate(subagentMachine, nothing))));

  test.each(subagentFaults)('$fault', ({ machine, property, scope = 'calls' }) =>
    catches((first) => checkSubagent(scope, machine, first), property),
  );
});

describe('in a question', patience, () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkQuestion(mutate(questionMachine, nothing))));

  test.each(questionFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkQuestion(machine, first), property),
  );

  test.each(besideFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkQuestion(machine, first, 'beside'), property),
  );

  test.each(readingFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkQuestion(machine, first, 'model'), property),
  );
});

describe('in an approval whose call is changed', patience, () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkChangedCall(mutate(questionMachine, nothing))));

  test.each(changedCallFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkChangedCall(machine, first), property),
  );
});

describe('in the arbiter', patience, () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkInteraction(mutate(interactionMachine, nothing))));

  test.each(interactionFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkInteraction(machine, first), property),
  );
});

describe('in the outbox', patience, () => {
  const scope = 'a result and the progress of one subagent';

  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkOutbox(mutate(outboxMachine, nothing), scope)));

  test.each(outboxFaults)('$fault', ({ machine, property, scope: own = scope }) =>
    catches((first) => checkOutbox(machine, own, first), property),
  );
});

describe('in a batch', patience, () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkBatch(mutate(batchMachine, nothing))));

  test.each(batchFaults)('$fault', ({ machine, property, scope }) =>
    catches(
      (first) => checkBatch(machine, scope === 'cancel' ? 'cancel' : 'deliver', first),
      property,
    ),
  );
});

describe('in a tool call', patience, () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkToolCall(mutate(toolCallMachine, nothing))));

  test.each(toolCallFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkToolCall(machine, first), property),
  );
});

describe('in a session', patience, () => {
  test('finds no violation if no fault is planted', () =>
    holdsThroughout(checkSession(mutate(sessionMachine, nothing))));

  test.each(sessionFaults)('$fault', ({ machine, property }) =>
    catches((first) => checkSession(machine, first), property),
  );
});

describe('between subagents, questions and the arbiter', patience, () => {
  const check = (machines: Partial<QuestionsOptions>) =>
    checkQuestions({ subagents: { a: 1, b: 1 }, maxInFlight: 2, ...machines });
  const faults: readonly PlantedFault<QuestionsOptions>[] = [
    {
      fault: 'the floor is taken away in one phase',
      options: { interaction: onePhase },
      property: 'P2: at most one question has the floor',
    },
    {
      fault: 'a release by somebody else counts',
      options: { interaction: anybodyReleases },
      property: 'P2: only the owner frees the floor, under its epoch, or because it is over',
    },
    {
      fault: 'a release that crosses its grant is ignored',
      options: { interaction: crossingForgotten },
      property: 'an end can always be reached',
    },
    {
      fault: 'the release is forgotten',
      options: { question: neverReleased },
      property: 'an end can always be reached',
    },
    {
      fault: 'a question beside the floor waits for a screen',
      options: { question: besidePresented, beside: ['a'] },
      property:
        'QUESTION-14: a question beside the floor never has it, and its clock does not wait',
    },
    {
      fault: 'the asker is not told',
      options: { question: neverReplied },
      property: 'nobody waits for nothing',
    },
    {
      fault: 'a question that is given up is not withdrawn',
      options: { subagent: neverWithdrawn },
      property: 'nobody asks for one that has ended',
    },
  ];

  test('finds no violation if no fault is planted', () => holdsThroughout(check({})));

  test.each(faults)('$fault', ({ options, property }) => finds(check(options), property));
});

describe('between the outbox, the session and the lead agent', patience, () => {
  const check = (options: Partial<SpeechOptions>) =>
    checkSpeech({ together: 'unit', results: 1, asks: false, mishaps: ['bargeIn'], ...options });
  const faults: readonly PlantedFault<SpeechOptions>[] = [
    {
      fault: 're-offering is forgotten',
      options: { outbox: reofferForgotten },
      property: 'P4: a result waits, is being said, or has ended',
    },
    {
      fault: 'the gate is ignored',
      options: { outbox: gateIgnored },
      property: 'OUTBOX-1: only from an open gate',
    },
    {
      fault: 'a report about an earlier attempt counts',
      options: { outbox: staleReportCounts, together: 'spread', mishaps: ['timeout'] },
      property: 'OUTBOX-2: what ends as heard was said to the end, in this attempt',
    },
    {
      fault: 'something urgent is offered to nobody',
      options: { outbox: offersWithoutClient, mishaps: ['urgent', 'detach'] },
      property: 'OUTBOX-1: only from an open gate',
    },
    {
      fault: 'a response outlives its connection',
      options: { session: generationSurvives, mishaps: ['loss'] },
      property: 'an end can always be reached',
    },
    {
      fault: 'a batch forgets who is late',
      options: { batch: lateForgotten, consolidates: true, results: 2, mishaps: [] },
      property: 'P4: a result waits, is being said, or has ended',
    },
    {
      fault: 'what was told together keeps its places',
      options: { batch: placesKept, consolidates: true, results: 2, mishaps: [] },
      property: 'OUTBOX-6: what waits has its place, and no more',
    },
    {
      fault: 'a question that is over is said all the same',
      options: { question: neverRetracted, asks: true, mishaps: [] },
      property: 'P4: a question that is over is in the outbox no more',
    },
    {
      fault: 'a yes to the question of the lead agent answers the question',
      options: { question: followedCounts, asks: true, mishaps: ['reply'] },
      property: 'P3: words answer the question only if it was the last thing said to the user',
    },
  ];

  test('finds no violation if no fault is planted', () => holdsThroughout(check({})));

  test.each(faults)('$fault', ({ options, property }) => finds(check(options), property));
});
