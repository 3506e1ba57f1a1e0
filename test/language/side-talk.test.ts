// Utterances over an open question that do not answer it, in four languages, typed and transcribed: requests for time,
// requests to hear the question again, other requests, and choices that the user corrects in the same breath.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchAnswer } from '../../src/language/match-answer.ts';
import type { AnswerableQuestion, Match } from '../../src/language/match.ts';

type Code = 'en' | 'de' | 'fr' | 'es';

const rides: Readonly<Record<Code, AnswerableQuestion>> = {
  en: {
    kind: 'choice',
    question: 'Which ride would you like?',
    options: [
      { id: 'eco', label: 'Economy', description: '12 dollars' },
      { id: 'pre', label: 'Premium', description: '24 dollars' },
    ],
  },
  de: {
    kind: 'choice',
    question: 'Welche Fahrt möchten Sie?',
    options: [
      { id: 'eco', label: 'Economy', description: '12 Euro' },
      { id: 'pre', label: 'Premium', description: '24 Euro' },
    ],
  },
  fr: {
    kind: 'choice',
    question: 'Quelle course voulez-vous ?',
    options: [
      { id: 'eco', label: 'Économique', description: '12 euros' },
      { id: 'pre', label: 'Premium', description: '24 euros' },
    ],
  },
  es: {
    kind: 'choice',
    question: '¿Qué viaje quiere?',
    options: [
      { id: 'eco', label: 'Económico', description: '12 euros' },
      { id: 'pre', label: 'Premium', description: '24 euros' },
    ],
  },
};
const words: Readonly<Record<Code, AnswerableQuestion>> = {
  en: { kind: 'free_text', options: [], question: 'What day should the table be booked for?' },
  de: {
    kind: 'free_text',
    options: [],
    question: 'Für welchen Tag soll ich den Tisch reservieren?',
  },
  fr: { kind: 'free_text', options: [], question: 'Pour quel jour dois-je réserver la table ?' },
  es: { kind: 'free_text', options: [], question: '¿Para qué día reservo la mesa?' },
};
const approvals: AnswerableQuestion = { kind: 'approval', options: [], action: 'send_email' };

const codes = ['en', 'de', 'fr', 'es'] as const;

const read = (question: AnswerableQuestion, said: string, language: Code): Match =>
  matchAnswer(question, said, { language });

/** Returns the text as people type it in a hurry and as recognisers transcribe it. */
const written = (said: string): readonly string[] => {
  const bare = said.replace(/[.,!?¿¡…]/g, '');
  return [
    said,
    bare.toLowerCase(),
    `${bare}.`,
    bare.toUpperCase(),
    `${said.replace(/[.!?]$/, '')}...`,
  ];
};

const holds: Readonly<Record<Code, readonly string[]>> = {
  en: [
    'Wait a second.',
    'Wait.',
    'Hold on a moment, please.',
    'Just a minute.',
    'Hang on, I need to check my calendar.',
    'Give me a second.',
    'One sec.',
    'Wait, let me look it up.',
    'Hmm, let me think about it.',
    'Um, wait a minute, I am just looking.',
    'Hold on, someone is at the door.',
    'Not yet.',
  ],
  de: [
    'Warte mal kurz.',
    'Einen Moment, bitte.',
    'Moment.',
    'Warten Sie bitte einen Augenblick.',
    'Sekunde.',
    'Warte, ich schaue in den Kalender.',
    'Moment mal, ich muss erst nachsehen.',
    'Lass mich kurz überlegen.',
    'Äh, Moment.',
    'Warte, es klingelt.',
  ],
  fr: [
    'Attendez une seconde.',
    'Un instant, s’il vous plaît.',
    'Une minute.',
    'Attends, je regarde mon agenda.',
    'Un petit moment.',
    'Laissez-moi réfléchir.',
    'Attendez, il faut que je demande à ma femme.',
    'Euh, attendez.',
  ],
  es: [
    'Espera un momento.',
    'Un segundo, por favor.',
    'Un momentito.',
    'Espere, tengo que mirar la agenda.',
    'Déjame pensar.',
    'Espera, que llaman a la puerta.',
    'Eh, un momento.',
  ],
};

const repeats: Readonly<Record<Code, readonly string[]>> = {
  en: [
    'Say that again.',
    'Repeat the question.',
    'What were the options?',
    'Can you repeat that, please?',
    'What was the question again?',
    'Sorry, what?',
    'Pardon?',
    'Which options do I have?',
    "I didn't catch that.",
    'Come again?',
    'One more time, please.',
    'Wait, what were the options?',
    'Tell me the options again.',
    'Could you say that once more?',
  ],
  de: [
    'Wie bitte?',
    'Noch einmal, bitte.',
    'Was war die Frage?',
    'Was waren die Optionen?',
    'Können Sie das wiederholen?',
    'Wiederhole die Frage.',
    'Sag das noch mal.',
    'Welche Optionen gibt es?',
    'Das habe ich nicht verstanden.',
  ],
  fr: [
    'Pardon ?',
    'Répétez, s’il vous plaît.',
    'Quelle était la question ?',
    'Quelles étaient les options ?',
    'Vous pouvez répéter ?',
    'Encore une fois.',
    'Comment ?',
    "Je n'ai pas compris.",
    "C'était quoi les choix ?",
  ],
  es: [
    '¿Cómo?',
    'Repite la pregunta.',
    '¿Cuál era la pregunta?',
    '¿Cuáles eran las opciones?',
    '¿Puedes repetir?',
    'Otra vez, por favor.',
    'No he entendido.',
    'Dilo otra vez.',
  ],
};

const wishes: Readonly<Record<Code, readonly string[]>> = {
  en: [
    'Order lunch.',
    'Make me a sales report for last week.',
    'Please book me a table for two people.',
    'Call my mother.',
    'Remind me to buy milk.',
    'Play some music.',
    'Cancel the ride, please.',
    'Forget the ride, I will walk.',
    'Premium, and book me a table for eight.',
    'Wait, order lunch.',
    'I want you to send an email to Anna.',
  ],
  de: [
    'Bestell Mittagessen.',
    'Mach mir einen Verkaufsbericht für letzte Woche.',
    'Bitte reservieren Sie mir einen Tisch für zwei Personen.',
    'Ruf meine Mutter an.',
    'Erinnere mich an die Milch.',
    'Premium, und reservier uns einen Tisch.',
    'Vergiss die Fahrt, ich laufe.',
  ],
  fr: [
    'Commande le déjeuner.',
    'Fais-moi un rapport des ventes de la semaine dernière.',
    'Réservez-moi une table pour deux personnes.',
    'Appelle ma mère.',
    'Laissez tomber la course, je prends le métro.',
    'Premium, et réservez une table.',
  ],
  es: [
    'Pide el almuerzo.',
    'Hazme un informe de ventas de la semana pasada.',
    'Resérvame una mesa para dos personas.',
    'Llama a mi madre.',
    'Olvida el viaje, voy andando.',
    'Premium, y reserva una mesa.',
  ],
};

describe.each(codes)('side talk over any question, %s', (code) => {
  test.each(holds[code])('recognises a request for time: %s', (said) => {
    for (const text of written(said))
      for (const question of [rides[code], words[code], approvals])
        expect([text, question.kind, read(question, text, code).kind]).toEqual([
          text,
          question.kind,
          'hold',
        ]);
  });

  test.each(repeats[code])('recognises a request to hear the question again: %s', (said) => {
    for (const text of written(said))
      for (const question of [rides[code], words[code], approvals])
        expect([text, question.kind, read(question, text, code).kind]).toEqual([
          text,
          question.kind,
          'repeat',
        ]);
  });
});

describe.each(codes)('side talk over a choice, %s', (code) => {
  test.each(wishes[code])('leaves other requests to the lead agent: %s', (said) => {
    for (const text of written(said))
      expect([text, read(rides[code], text, code).kind]).toEqual([text, 'digression']);
  });
});

test.each([
  ['book me the cheaper one', 'described'],
  ['get me the faster one please', 'described'],
  ['book the premium one', 'option'],
  ['give me the second one', 'option'],
  ["let's take economy", 'option'],
  ['make it premium', 'option'],
  ['order me the 12 dollar one', 'option'],
] as const)('reads a request that names an option as an answer: %s', (said, kind) => {
  for (const text of written(said))
    expect([text, read(rides.en, text, 'en').kind]).toEqual([text, kind]);
});

test.each([
  ['en', 'Friday'],
  ['en', 'Call my gym first thing on Friday and ask them'],
  ['en', 'What I told you yesterday'],
  ['en', 'Wait, make it Tuesday'],
  ['en', 'Leave it at the door'],
  ['en', 'The second of May'],
  ['en', 'Repeat the order'],
  ['de', 'Noch einmal am Freitag'],
  ['fr', 'Encore une fois vendredi'],
  ['es', 'Otra vez el viernes'],
  ['de', 'Am Freitag um acht'],
  ['de', 'Warte, doch lieber am Samstag'],
  ['de', 'Nicht am Montag'],
  ['fr', 'Vendredi soir'],
  ['fr', 'Demain, si possible'],
  ['es', 'El viernes por la noche'],
  ['es', 'Mañana, si puede ser'],
] as const)('treats free text as an answer (%s): %s', (code, said) => {
  expect(read(words[code], said, code)).toMatchObject({ kind: 'free_text', text: said });
});

const corrections: Readonly<Record<Code, readonly string[]>> = {
  en: [
    'no wait',
    'wait',
    'wait no',
    'hold on',
    'no no',
    'I mean',
    'no sorry',
    'actually',
    'scratch that',
    'make that',
    'or rather',
  ],
  de: ['nein warte', 'Moment', 'nein', 'nein doch lieber', 'ich meine', 'nein halt', 'Quatsch'],
  fr: ['non attendez', 'attends', 'non plutôt', 'je veux dire', 'non pardon', 'ou plutôt'],
  es: ['no espera', 'espera', 'no perdón', 'quiero decir', 'no mejor', 'digo'],
};
const frames: Readonly<Record<Code, readonly string[]>> = {
  en: ['{}', "I'd like {}", 'the {} one', 'um {}', '{} please'],
  de: ['{}', 'ich nehme {}', 'das {}', 'äh {}', '{} bitte'],
  fr: ['{}', 'je prends {}', 'le {}', 'euh {}', "{} s'il vous plaît"],
  es: ['{}', 'quiero {}', 'el {}', 'eh {}', '{} por favor'],
};
const names = ['Economy', 'Premium', 'Airport', 'Blueberry', 'Umbrella', 'Vegetarian'];

describe.each(codes)('a corrected choice, %s', (code) => {
  const pick = (list: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...list);
  const pair = fc.shuffledSubarray(names, { minLength: 2, maxLength: 4 });
  const gap = fc.constantFrom(' ', ', ', '... ', '. ', ' - ');

  test('selects the option named after the last hold or correction', () => {
    fc.assert(
      fc.property(
        pair,
        fc.tuple(pick(frames[code]), pick(frames[code])),
        pick(corrections[code]),
        fc.tuple(gap, gap),
        (labels, [one, other], turn, [before, after]) => {
          const options = labels.map((label) => ({ id: label, label }));
          const [first = '', second = ''] = labels;
          const said =
            one.replace('{}', first.toLowerCase()) +
            before +
            turn +
            after +
            other.replace('{}', second.toLowerCase());
          const match = read({ kind: 'choice', options, question: '' }, said, code);
          expect([said, match]).toMatchObject([said, { kind: 'option', optionId: second }]);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('asks for time if the user withdraws an option without naming another', () => {
    fc.assert(
      fc.property(
        pair,
        pick(frames[code]),
        pick(holds[code].slice(0, 3)),
        gap,
        (labels, frame, turn, before) => {
          const options = labels.map((label) => ({ id: label, label }));
          const said = frame.replace('{}', labels[0] ?? '') + before + turn;
          expect([said, read({ kind: 'choice', options }, said, code).kind]).toEqual([
            said,
            'hold',
          ]);
        },
      ),
      { numRuns: 200 },
    );
  });
});

test.each([
  ['not economy, premium', 'pre'],
  ['premium, not economy', 'pre'],
  ['economy... no, premium', 'pre'],
  ['premium - no, economy', 'eco'],
  ['the first, no wait, the second', 'pre'],
  ['premium, wait, no, hold on, economy', 'eco'],
] as const)('selects the corrected option: %s', (said, optionId) => {
  expect(read(rides.en, said, 'en')).toMatchObject({ kind: 'option', optionId });
});

test.each([
  'economy no premium',
  'not economy and not premium',
  'not premium',
  "I don't want economy, I don't want premium",
  'economy, no',
  'hold on, let me ask my wife about premium',
  'wait, is premium any good?',
])('MATCH-ANSWER-2: selects nothing if the choice is uncertain: %s', (said) => {
  expect([said, read(rides.en, said, 'en').kind]).not.toEqual([said, 'option']);
});

test.each([
  ['no wait, yes', 'y'],
  ['no, sorry, yes', 'y'],
  ['yes, no wait, no', 'n'],
  ['actually no', 'n'],
  ['yes please', 'y'],
] as const)('selects an option whose label is a yes or a no: %s', (said, optionId) => {
  const options = [
    { id: 'y', label: 'Yes' },
    { id: 'n', label: 'No' },
  ];
  expect(read({ kind: 'choice', options }, said, 'en')).toMatchObject({ kind: 'option', optionId });
});

test.each([
  ['wait', 'wait'],
  ['book a taxi', 'taxi'],
  ['cancel the trip', 'cancel'],
  ['order a taxi', 'taxi'],
  ['taxi, no, wait for the next bus', 'wait'],
] as const)('selects an option whose label resembles side talk: %s', (said, optionId) => {
  const options = [
    { id: 'wait', label: 'Wait for the next bus' },
    { id: 'taxi', label: 'Book a taxi' },
    { id: 'cancel', label: 'Cancel the trip' },
  ];
  expect(read({ kind: 'choice', options }, said, 'en')).toMatchObject({ kind: 'option', optionId });
});
