import { describe, expect, test } from 'vitest';
import { matchAnswer } from '../../src/language/match-answer.ts';
import type { AnswerOption, Match } from '../../src/language/match.ts';

const rides: readonly AnswerOption[] = [
  { id: 'opt_0', label: 'Economy', description: '$12, arrives in 5 min' },
  { id: 'opt_1', label: 'Premium', description: '$24, arrives in 3 min' },
];
const labelled = (...labels: string[]): AnswerOption[] =>
  labels.map((label, n) => ({ id: `o${n}`, label }));

function choose(options: readonly AnswerOption[], utterance: string): Match {
  return matchAnswer({ kind: 'choice', options }, utterance);
}

/** Returns a short form of the match: the label or the kind. */
function outcome(options: readonly AnswerOption[], utterance: string): string {
  const match = choose(options, utterance);
  return match.kind === 'option' ? match.label : match.kind;
}

describe('the label', () => {
  test.each([
    ['Economy', 1],
    ['Economy, please.', 1],
    ['Economy please', 1],
    ['ECONOMY!!', 1],
    ['um, economy', 1],
    ["I'd take the economy one thanks", 0.95],
    ['Can I have the economy one?', 0.95],
    ['How about economy?', 0.95],
    ['Let me see, economy', 0.95],
    ["Economy because it's cheaper", 0.8],
    ['Economy, place,', 0.8],
  ])('%s', (utterance, confidence) => {
    expect(choose(rides, utterance)).toEqual({
      kind: 'option',
      optionId: 'opt_0',
      label: 'Economy',
      how: 'label',
      confidence,
    });
  });

  test.each([
    ['Premium plus please', 'Premium plus'],
    ['the premium one', 'Premium'],
    ['premium', 'Premium'],
  ])('matches the longer of two labels: %s', (utterance, label) => {
    expect(outcome(labelled('Premium', 'Premium plus'), utterance)).toBe(label);
  });

  test.each([
    ["don't save, please", "Don't save"],
    ['save', 'Save'],
    ['cancel', 'Cancel'],
    ['Wait', 'Wait'],
    ['stop', 'Stop'],
  ])('matches a label that would otherwise be a command or a refusal: %s', (utterance, label) => {
    expect(outcome(labelled("Don't save", 'Save', 'Cancel', 'Wait', 'Stop'), utterance)).toBe(
      label,
    );
  });

  test.each([
    ['wifi', labelled('Wi-Fi', 'Cable'), 'Wi-Fi'],
    ['To-morrow morning.', labelled('Tomorrow morning', 'Next Tuesday'), 'Tomorrow morning'],
    ['creme brulee', labelled('Crème brûlée', 'Cake'), 'Crème brûlée'],
    ['STRASSE', labelled('Straße', 'Platz'), 'Straße'],
    ['twelve hundred dollars', labelled('$1,200', '$1,250'), '$1,200'],
    ['one thousand two hundred and fifty dollars', labelled('$1,200', '$1,250'), '$1,250'],
    ['two', labelled('2', '4'), '2'],
    ['c plus plus please', labelled('C', 'C++', 'C#'), 'C++'],
    ['👍', labelled('👍', '👎'), '👍'],
    ['我要经济舱', labelled('经济舱', '商务舱'), '经济舱'],
    ['constructor', labelled('constructor', 'toString'), 'constructor'],
  ])('matches in any spelling: %s', (utterance, options, label) => {
    expect(outcome(options, utterance)).toBe(label);
  });

  test('matches a common word only if it is the focus of the sentence', () => {
    const letters = labelled('A', 'B', 'C');
    expect(outcome(letters, "I'd like a premium")).toBe('unclear');
    expect(outcome(letters, "I'll go with a")).toBe('A');
    expect(outcome(letters, 'option b')).toBe('B');
    expect(outcome(labelled('Like', 'Dislike'), 'I would like that one')).toBe('unclear');
    expect(outcome(labelled('Left', 'Right'), 'the right one')).toBe('Right');
  });

  test('reports two matching labels as ambiguous', () => {
    expect(choose(rides, 'Economy or premium')).toEqual({
      kind: 'ambiguous',
      optionIds: ['opt_0', 'opt_1'],
    });
    expect(choose(labelled('Same', 'same'), 'same').kind).toBe('ambiguous');
  });

  test("matches an option's id, but prefers its label", () => {
    expect(choose(rides, 'opt_1')).toMatchObject({ optionId: 'opt_1', how: 'id' });
    // The label, which the user sees, takes precedence.
    const crossed = [
      { id: 'red', label: 'Blue' },
      { id: 'blue', label: 'Red' },
    ];
    expect(choose(crossed, 'red')).toMatchObject({ optionId: 'blue', how: 'label' });
  });
});

describe('the position', () => {
  test.each([
    ['The second one.', 'Premium'],
    ['the 2nd, please', 'Premium'],
    ["I'll take the first", 'Economy'],
    ['option two', 'Premium'],
    ['number 2', 'Premium'],
    ['two', 'Premium'],
    ['one', 'Economy'],
    ['okay, one', 'Economy'],
    ['the last one', 'Premium'],
    ['the former', 'Economy'],
    ['the latter', 'Premium'],
    ['the third one', 'unclear'],
    ['option zero', 'unclear'],
    ['the one', 'unclear'],
    ["I'd like one", 'unclear'],
    ['first I need to know more', 'unclear'],
    ['the first one, premium', 'ambiguous'],
  ])('%s: %s', (utterance, expected) => {
    expect(outcome(rides, utterance)).toBe(expected);
  });

  test('applies "the former" and "the latter" only if there are two options', () => {
    expect(outcome(labelled('Red', 'Green', 'Blue'), 'the latter')).toBe('unclear');
    expect(outcome(labelled('Red', 'Green', 'Blue'), 'the last')).toBe('Blue');
  });

  test('prefers a number in a label to a position, but treats an ordinal as a position', () => {
    const tickets = labelled('2 tickets', '4 tickets', '1 ticket');
    expect(outcome(tickets, 'two')).toBe('2 tickets');
    expect(outcome(tickets, 'one ticket please')).toBe('1 ticket');
    expect(outcome(tickets, 'the second one')).toBe('4 tickets');
    expect(outcome(labelled('2', '4', '6'), 'option two')).toBe('ambiguous');
    expect(outcome(labelled('2 adults', '2 children', 'Pets'), 'two')).toBe('ambiguous');
  });

  test('treats an ordinal that is also part of a label as ambiguous', () => {
    const classes = labelled('Second class', 'First class');
    expect(outcome(classes, 'the first')).toBe('ambiguous');
    expect(outcome(classes, '2nd class')).toBe('Second class');
  });
});

describe('words that only one option has', () => {
  test.each([
    ['the twelve dollar one', 'Economy'],
    ['the $24 one please', 'Premium'],
    ['the one that arrives in five minutes', 'Economy'],
    ['the dollar one', 'ambiguous'],
    // The words alone do not say which option is cheap, but the subagent that asked may know.
    ['the cheap one', 'described'],
    ['the twelve minute one', 'described'],
  ])('match: %s is %s', (utterance, expected) => {
    expect(outcome(rides, utterance)).toBe(expected);
  });

  test('match a part of a label that no other option contains', () => {
    const seats = labelled('Window seat', 'Aisle seat');
    expect(choose(seats, 'the window one')).toMatchObject({ optionId: 'o0', how: 'words' });
    expect(outcome(seats, 'seat')).toBe('ambiguous');
    expect(outcome(labelled('Small red', 'Large red', 'Small blue'), 'the small red one')).toBe(
      'Small red',
    );
  });
});

describe('real errors of speech recognition', () => {
  test.each([
    ['A con me please', rides, 'Economy', 'sound'],
    ['premier', rides, 'Premium', 'sound'],
    ['Ken sawed', labelled('Cancelled', 'Confirmed'), 'Cancelled', 'sound'],
    ['Consult,', labelled('Cancelled', 'Confirmed'), 'Cancelled', 'sound'],
    ['laughed', labelled('Left', 'Right'), 'Left', 'sound'],
    ['Blift,', labelled('Left', 'Right'), 'Left', 'sound'],
    ['cloves', labelled('Clubs', 'Hearts', 'Spades', 'Diamonds'), 'Clubs', 'sound'],
    ['Went our seat.', labelled('Window seat', 'Aisle seat'), 'Window seat', 'sound'],
    ['Eyel seat.', labelled('Window seat', 'Aisle seat'), 'Aisle seat', 'sound'],
    ['Ready.', labelled('Red', 'Blue'), 'Red', 'sound'],
    ['With a second one.', rides, 'Premium', 'ordinal'],
    ['Auction to.', rides, 'Premium', 'ordinal'],
    ['With a twelve dollar one,', rides, 'Economy', 'words'],
  ])('%s', (utterance, options, label, how) => {
    expect(choose(options, utterance)).toMatchObject({ kind: 'option', label, how });
  });

  test.each([
    ['It come,', rides],
    ["I didn't pray.", rides],
    ['The twelve got all or one.', rides],
    ['Cam on a second.', rides],
    ['Brand.', labelled('Red', 'Blue')],
    ['Bye.', labelled('Red', 'Blue')],
    ['Someone.', labelled('Small', 'Medium', 'Large')],
    ['Norch,', labelled('Small', 'Medium', 'Large')],
    ['Next to his knee.', labelled('Tomorrow morning', 'Next Tuesday')],
    ["I'll see.", labelled('Window seat', 'Aisle seat')],
  ])('too far from anything: %s', (utterance, options) => {
    expect(choose(options, utterance)).toEqual({ kind: 'unclear' });
  });

  test('MATCH-ANSWER-2: remain ambiguous if two options are equally similar', () => {
    expect(outcome(labelled('Premium', 'Premier'), 'premiem')).toBe('ambiguous');
    expect(outcome(labelled('Window seat', 'Aisle seat'), "I'll seat.")).toBe('ambiguous');
  });

  test('never become another number', () => {
    expect(outcome(labelled('1200 miles', '5000 miles'), '1250 miles')).toBe('described');
  });

  test('never become the opposite', () => {
    expect(outcome(labelled('Subscribe', 'Later'), 'unsubscribe')).toBe('unclear');
    expect(outcome(labelled('Deactivate', 'Later'), 'activate')).toBe('unclear');
    expect(outcome(labelled('Deactivate', 'Activate'), 'activite')).toBe('Activate');
  });

  test('do not turn polite or filler words into names', () => {
    expect(outcome(labelled('Replace', 'Keep'), 'please')).toBe('unclear');
    expect(outcome(labelled('Thai', 'Indian'), "I'd like that")).toBe('unclear');
  });
});

describe('a yes or a no among the options', () => {
  test.each([
    ['yeah', 'Yes, book it'],
    ['sure, go ahead', 'Yes, book it'],
    ['yes, no', 'unclear'],
    ['nope, cancel please', 'No, cancel'],
    ['yes please', 'Yes, book it'],
    ['nope', 'No, cancel'],
    ['no thanks', 'No, cancel'],
  ])('%s: %s', (utterance, expected) => {
    const options = labelled('Yes, book it', 'No, cancel');
    expect(outcome(options, utterance)).toBe(expected);
  });

  test('matches nothing if no option means yes or no', () => {
    expect(outcome(rides, 'yes')).toBe('unclear');
    expect(outcome(rides, 'no')).toBe('unclear');
  });
});

describe('words that decline', () => {
  test.each([
    ['not economy', 'unclear'],
    ['anything but premium', 'unclear'],
    ["I don't want the premium one", 'unclear'],
    ['no, the premium one', 'unclear'],
    ['economy is too expensive', 'unclear'],
    ['economy if it comes soon', 'unclear'],
    ['I was reading the economy section of the newspaper yesterday', 'unclear'],
    ['', 'unclear'],
    ['?!', 'unclear'],
    ['wait', 'hold'],
    ['hang on a second', 'hold'],
    ['hold on, let me think', 'hold'],
    ['hmm', 'hold'],
    ['let me see', 'hold'],
    ['What?', 'repeat'],
    ['Sorry?', 'repeat'],
    ['Can you repeat that please?', 'repeat'],
    ['What were the options?', 'repeat'],
    ['What time is it', 'digression'],
    ['How much is economy?', 'digression'],
    ['Is the premium one any good?', 'digression'],
    ['By the way, what is the weather?', 'digression'],
    ['Do you like trains', 'digression'],
    ['And the weather?', 'digression'],
    ['never mind', 'digression'],
    ['stop asking', 'digression'],
    ['cancel that please', 'digression'],
  ])('%s: %s', (utterance, kind) => {
    expect(choose(rides, utterance)).toEqual({ kind });
  });

  test.each(['neither', 'None of them.', 'No, neither.', 'Neither of them, thank you.'])(
    'declines all options: %s',
    (text) => {
      expect(choose(rides, text)).toEqual({ kind: 'none', text });
    },
  );

  test('select an option with that name', () => {
    const options = [...rides, { id: 'none', label: 'None' }];
    expect(choose(options, 'None')).toMatchObject({ optionId: 'none' });
  });

  test.each(['both', 'either is fine', "I don't care", 'surprise me'])(
    'reads "several" or "any" as a free-text answer: %s',
    (text) => {
      expect(choose(rides, text)).toEqual({ kind: 'free_text', text });
    },
  );
});

describe('languages', () => {
  test('matches only literal words in a language without tables', () => {
    const seats = labelled('Fensterplatz', 'Gangplatz');
    const german = (utterance: string) =>
      matchAnswer({ kind: 'choice', options: seats }, utterance, { language: 'de-AT' });
    expect(german('Gangplatz!')).toMatchObject({ optionId: 'o1', how: 'label' });
    expect(german('den Fensterplatz bitte')).toMatchObject({ optionId: 'o0' });
    expect(german('o1')).toMatchObject({ how: 'id' });
    expect(german('Gangplats')).toEqual({ kind: 'unclear' });
    expect(german('2').kind).toBe('option');
    expect(german('')).toEqual({ kind: 'unclear' });
  });

  test('ignores the region', () => {
    const match = matchAnswer({ kind: 'choice', options: rides }, 'the second', {
      language: 'en-GB',
    });
    expect(match).toMatchObject({ optionId: 'opt_1' });
  });
});
