// Spoken approval in generated sentences: approvals, negations, hesitations, fillers, politeness, word orders,
// contractions, and how a recogniser transcribes them.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { languageFor } from '../../src/language/languages.ts';
import { matchAnswer } from '../../src/language/match-answer.ts';
import { findPhrase } from '../../src/language/tables.ts';
import { wordsOf } from '../../src/language/utterance.ts';

const verdict = (utterance: string, language = 'en'): string =>
  matchAnswer({ kind: 'approval', options: [] }, utterance, { language }).kind;

const runs = { numRuns: 1_000 };
const { consent, ...english } = languageFor('en');
const from = (...words: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...words);

/** Varies the case, punctuation, apostrophes and pauses of the sentence, as a recogniser may. */
const written = (sentence: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      sentence,
      from(' ', ' ', ', ', '... ', '  '),
      from('', '.', '!', ' …', ','),
      from("'", '’', ''),
      fc.nat(2),
    )
    .map(([said, gap, end, apostrophe, style]) => {
      const text = said.replaceAll(' ', gap).replaceAll("'", apostrophe) + end;
      if (style === 0) return text;
      return style === 1 ? text.toUpperCase() : text.charAt(0).toUpperCase() + text.slice(1);
    });

const row = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.tuple(...parts).map((all) => all.filter((part) => part !== '').join(' '));

/** Contracted and full forms, because people say both. */
const contractions: readonly (readonly [short: string, long: string])[] = [
  ["don't", 'do not'],
  ["can't", 'cannot'],
  ["won't", 'will not'],
  ["shouldn't", 'should not'],
  ["isn't", 'is not'],
];

const has = (said: string, phrase: string): boolean =>
  findPhrase(wordsOf(said, languageFor('en')), wordsOf(phrase, languageFor('en'))).length > 0;

const filler = from(...english.fillers);
const polite = from('please', 'thanks', 'thank you', '');
const opening = from('okay', 'oh', 'alright', 'so', 'well', 'great', 'sounds good', '', '');
const yes = from(...consent.yes);
const pureConsent = fc.oneof(
  row(yes, polite),
  row(opening, yes, polite),
  row(polite, yes),
  row(
    yes,
    from(', ', '').map(() => ''),
    yes,
  ),
  row(opening, yes, from('then', 'now', 'right away', ''), polite),
);
const verb = from('send', 'run', 'delete', 'book', 'pay', 'do', 'start', 'call', 'touch');
const object = from('it', 'that', 'the report', 'the second one', 'anything', 'my card', 'him');
const negation = fc.oneof(
  row(from(...contractions.flat()), verb, object),
  from(...english.negations),
  from(...consent.no),
  from(...consent.refusals),
  row(from('never', 'not', 'without'), verb, object),
);
const hesitation = fc.oneof(
  from(...english.holds, ...english.musings, 'hmm', 'hmm hmm', 'wait wait', 'hold on a second'),
  row(from('wait', 'hold on', 'hmm'), from('let me think', 'a second', 'one moment')),
);
const question = fc.oneof(
  row(from('what does', 'why does', 'how does', 'when would'), object, verb),
  row(from('is', 'are you', 'does', 'can you'), object, from('safe', 'sure', 'free', 'expensive')),
);
const condition = row(
  from('if', 'unless', 'only if', 'but only after', 'once', 'provided'),
  from('it is free', 'he agrees', 'it costs less than ten', 'that is safe', 'I am home'),
);

describe('P3: only words of consent count as consent', () => {
  test('accepts every generated consent phrase in any spelling', () => {
    fc.assert(
      fc.property(written(pureConsent), (said) => {
        // "Oh sure" may be meant ironically.
        const isIronical = consent.ironies.some((phrase) => has(said, phrase));
        const fair = isIronical ? ['approved', 'unclear'] : ['approved'];
        expect([said, fair]).toEqual([said, expect.arrayContaining([verdict(said)])]);
      }),
      runs,
    );
  });

  test('treats a yes followed by other words as unclear', () => {
    const unrelated = fc.oneof(
      condition,
      row(verb, object),
      from('maybe', 'I guess', 'or', 'the email'),
    );
    const more = fc.oneof(row(pureConsent, unrelated), row(unrelated, pureConsent));
    fc.assert(
      fc.property(written(more), (said) => {
        // "do it" and "run that" are approvals in themselves.
        fc.pre(!['do', 'run'].some((word) => wordsOf(said, languageFor('en')).includes(word)));
        expect([said, verdict(said)]).not.toEqual([said, 'approved']);
      }),
      runs,
    );
  });

  test('finds no consent if a word in a negation is removed, swapped or added', () => {
    const noise = fc.tuple(
      row(opening, negation, yes, polite),
      fc.nat(9),
      from('head', 'prince', 'just', 'the', 'it', 'yeah'),
    );
    fc.assert(
      fc.property(noise, ([said, place, word]) => {
        const words = said.split(' ');
        words.splice(place % (words.length + 1), 0, word);
        const heard = words.join(' ');
        const kept = wordsOf(heard, languageFor('en'));
        const isNegated = english.negations.some(
          (phrase) => findPhrase(kept, wordsOf(phrase, languageFor('en'))).length > 0,
        );
        fc.pre(isNegated);
        expect([heard, verdict(heard)]).not.toEqual([heard, 'approved']);
      }),
      runs,
    );
  });
});

describe('P3: any negation wins', () => {
  test('finds no consent in a sentence with a negation in any position', () => {
    const sentence = fc.oneof(
      row(opening, negation, pureConsent),
      row(pureConsent, from('but', 'and', 'though', ''), negation),
      row(yes, negation, yes),
      row(hesitation, negation),
      row(negation, condition),
    );
    fc.assert(
      fc.property(written(sentence), (said) => {
        expect([said, verdict(said)]).not.toEqual([said, 'approved']);
      }),
      runs,
    );
  });

  test('reads a refusal as a denial even after a yes or a "wait"', () => {
    const refusal = row(
      fc.oneof(row(opening, yes, from('but', '')), row(opening, from('wait', 'hold on')), opening),
      from("don't", 'do not', "please don't"),
      verb,
      object,
      polite,
    );
    fc.assert(
      fc.property(written(refusal), (said) => {
        expect([said, verdict(said)]).toEqual([said, 'denied']);
      }),
      runs,
    );
  });
});

describe('P3: a hesitation or a question is not an answer', () => {
  test('finds no answer in a hesitation, and no consent in a yes with a hesitation', () => {
    const alone = fc.oneof(hesitation, row(opening, hesitation, polite));
    fc.assert(
      fc.property(written(alone), (said) => {
        expect(['approved', 'denied']).not.toContain(verdict(said));
      }),
      runs,
    );
    // "Please do" and "not yet" together mean no.
    const beside = fc.oneof(row(hesitation, pureConsent), row(pureConsent, hesitation));
    fc.assert(
      fc.property(written(beside), (said) => {
        expect([said, verdict(said)]).not.toEqual([said, 'approved']);
      }),
      runs,
    );
  });

  test('finds no answer in a question', () => {
    fc.assert(
      fc.property(row(opening, question), from('?', ''), (said, mark) => {
        expect(['digression', 'unclear']).toContain(verdict(said + mark));
      }),
      runs,
    );
    fc.assert(
      fc.property(fc.oneof(pureConsent, from(...consent.no)), (said) => {
        expect(['approved', 'denied']).not.toContain(verdict(`${said}?`));
      }),
      runs,
    );
  });
});

describe('ignores fillers', () => {
  test.each(['en', 'de', 'fr', 'es'])('%s', (code) => {
    const tables = languageFor(code);
    const said = fc.array(
      from(...tables.consent.yes, ...tables.consent.no, ...tables.holds, ...tables.consent.asides),
      { minLength: 1, maxLength: 3 },
    );
    const places = fc.array(fc.tuple(fc.nat(12), from(...tables.fillers)), { maxLength: 3 });
    fc.assert(
      fc.property(said, places, (phrases, inserted) => {
        const plain = phrases.join(' ');
        const words = plain.split(' ');
        for (const [place, sound] of inserted) words.splice(place % (words.length + 1), 0, sound);
        const filled = words.join(' ');
        expect([filled, verdict(filled, code)]).toEqual([filled, verdict(plain, code)]);
      }),
      runs,
    );
  });

  test('reads a filler on its own as a hesitation', () => {
    fc.assert(
      fc.property(fc.array(filler, { minLength: 1, maxLength: 4 }), (sounds) => {
        expect(verdict(sounds.join(' '))).toBe('hold');
      }),
    );
  });
});

describe.each(['en', 'de', 'fr', 'es'])('the tables of %s', (code) => {
  const language = languageFor(code);
  const has = (phrase: string, part: string): boolean =>
    findPhrase(wordsOf(phrase, language), wordsOf(part, language)).length > 0;

  test('contain no consent phrase that also negates or asks for time', () => {
    const harmless = [...language.consent.yes, ...language.consent.asides, ...language.polite];
    const others = [...language.negations, ...language.consent.no, ...language.holds];
    const wrong = harmless.filter((phrase) => others.some((part) => has(phrase, part)));
    expect(wrong).toEqual([]);
  });

  test('interpret every yes as approval, every no as denial and every hold as neither', () => {
    for (const phrase of language.consent.yes)
      expect([phrase, verdict(phrase, code)]).toEqual([phrase, 'approved']);
    for (const phrase of language.consent.no)
      expect([phrase, verdict(phrase, code)]).toEqual([phrase, 'denied']);
    for (const phrase of language.holds)
      expect([phrase, verdict(phrase, code)]).toEqual([phrase, 'hold']);
    for (const phrase of language.consent.asides)
      expect(['unclear', 'hold', 'repeat', 'digression']).toContain(verdict(phrase, code));
  });

  test('find no consent in a negated yes', () => {
    fc.assert(
      fc.property(
        from(...language.consent.yes),
        from(...language.negations),
        fc.boolean(),
        (consents, negates, first) => {
          const said = first ? `${negates} ${consents}` : `${consents} ${negates}`;
          expect([said, verdict(said, code)]).not.toEqual([said, 'approved']);
        },
      ),
      runs,
    );
  });
});

/** Actions in the words of the question, which a user may repeat in a yes. */
const actions = {
  en: {
    asked: ['May I cancel your subscription?', 'cancel_subscription'],
    echoes: ['cancel it', 'cancel the subscription', 'cancel my subscription', 'cancel'],
    others: [
      'book it',
      'send the email',
      'delete it',
      'cancel the flight',
      'cancel both',
      'pause it',
    ],
    additions: [
      'and delete my account',
      'but only in May',
      'if it is free',
      'tomorrow',
      'or rather pause it',
    ],
  },
  de: {
    asked: ['Soll ich die E-Mail an Peter abschicken?', 'send_email'],
    echoes: ['schick sie ab', 'schicken Sie sie ab', 'abschicken', 'die E-Mail abschicken'],
    others: ['lösch sie', 'storniere das', 'ruf ihn an', 'schick sie an Paul ab', 'brich das ab'],
    additions: ['und lösch den Entwurf', 'aber erst morgen', 'wenn er will', 'an alle'],
  },
  fr: {
    asked: ["Dois-je annuler l'abonnement ?", 'cancel_subscription'],
    echoes: ['annule', 'annulez-le', 'annule-le', "annulez l'abonnement"],
    others: ['réservez-le', 'envoyez le courriel', 'supprime-le', 'annulez le vol'],
    additions: ['et supprime mon compte', 'mais demain', "si c'est gratuit", 'sauf le journal'],
  },
  es: {
    asked: ['¿Envío el correo a Pedro?', 'send_email'],
    echoes: ['envíalo', 'envíelo', 'mándalo', 'envía el correo'],
    others: ['bórralo', 'cancélalo', 'reserva la mesa', 'envía el paquete'],
    additions: ['y borra el borrador', 'pero mañana', 'si Pedro quiere', 'a todos'],
  },
} as const;
const plain = {
  en: ['yes', 'yeah', 'sure', 'yes please', 'of course'],
  de: ['ja', 'klar', 'ja bitte', 'natürlich'],
  fr: ['oui', 'oui merci', 'bien sûr', 'certainement'],
  es: ['sí', 'claro', 'sí por favor', 'por supuesto'],
} as const;

describe.each(['en', 'de', 'fr', 'es'] as const)(
  'MATCH-APPROVAL-1: consent to this action, %s',
  (code) => {
    const { asked, echoes, others, additions } = actions[code];
    const tables = languageFor(code);
    const about = (said: string): string =>
      matchAnswer({ kind: 'approval', options: [], question: asked[0], action: asked[1] }, said, {
        language: code,
      }).kind;

    test('counts a yes that repeats the action as consent, in any word order', () => {
      fc.assert(
        fc.property(
          from(...plain[code]),
          from(...echoes),
          fc.boolean(),
          from(' ', ', ', '. '),
          (consents, echo, first, gap) => {
            const said = first ? `${consents}${gap}${echo}` : `${echo}${gap}${consents}`;
            expect([said, about(said)]).toEqual([said, 'approved']);
          },
        ),
        runs,
      );
    });

    test('counts the action on its own as neither yes nor no', () => {
      for (const echo of echoes) expect([echo, about(echo)]).toEqual([echo, 'unclear']);
    });

    test('finds no consent if the user names another action, part of it, an addition or a condition', () => {
      fc.assert(
        fc.property(
          from(...plain[code], ...tables.consent.yes),
          from('', ...echoes),
          from(...others, ...additions),
          fc.boolean(),
          from(' ', ', ', '. '),
          (consents, echo, unrelated, first, gap) => {
            const parts = first ? [consents, echo, unrelated] : [unrelated, consents, echo];
            const said = parts.filter((part) => part !== '').join(gap);
            expect([said, about(said)]).not.toEqual([said, 'approved']);
          },
        ),
        runs,
      );
    });

    test('finds no consent in a negation, a hesitation or a question that repeats the action', () => {
      fc.assert(
        fc.property(
          from(...plain[code]),
          from(...echoes),
          from(...tables.negations, ...tables.consent.refusals, ...tables.holds, ...tables.musings),
          fc.nat(2),
          (consents, echo, doubt, place) => {
            const parts = [consents, echo];
            parts.splice(place, 0, doubt);
            const said = parts.join(' ');
            expect([said, about(said)]).not.toEqual([said, 'approved']);
            expect(about(`${consents}, ${echo}?`)).not.toBe('approved');
          },
        ),
        runs,
      );
    });

    test('finds no consent in irony, even if it is polite and repeats the action', () => {
      fc.assert(
        fc.property(
          from(...tables.consent.ironies),
          from('', ...tables.polite, ...echoes),
          from('.', '!', '...', ''),
          (irony, beside, end) => {
            const said = [irony, beside].filter((part) => part !== '').join(', ') + end;
            expect([said, about(said)]).not.toEqual([said, 'approved']);
          },
        ),
        runs,
      );
    });
  },
);

test.each([
  ['May I delete the draft and send the email?', 'yes, delete the draft'],
  ['May I book KLM instead of Lufthansa?', 'yes, book Lufthansa'],
  ['May I transfer 500 euros from Anna to Bob?', 'yes, from Bob to Anna'],
  ['May I transfer 500 euros from Anna to Bob?', 'yes, transfer 900 euros'],
  ['May I delete the 38 old photos?', 'yes, delete the old ones'],
  ['May I book the flight?', 'yes, cancel it'],
  ['May I book the flight?', 'yes, book the hotel'],
])(
  'MATCH-APPROVAL-1: distinguishes a part of an action from the whole action: %s %s',
  (question, said) => {
    const match = matchAnswer({ kind: 'approval', options: [], question }, said);
    expect([said, match.kind]).not.toEqual([said, 'approved']);
  },
);
