// Utterances that stop the current delivery, in four languages, typed and transcribed. An utterance that says more
// stops nothing, because the lead agent has to understand the rest.

import { expect, test } from 'vitest';
import { putsOff } from '../../src/language/side-talk.ts';

const putOffs = {
  en: [
    'Stop.',
    'stop stop',
    'Okay, stop it please.',
    'Not now, thanks.',
    'No, not right now.',
    'Enough.',
    "That's enough, thank you.",
    'Thats enough for now',
    'Later.',
    'Um, maybe later.',
    'Be quiet please',
    'Tell me later, okay.',
    "I don't want to hear it now",
    'Skip it.',
    'Never mind.',
  ],
  de: [
    'Stopp!',
    'Jetzt nicht, danke.',
    'Das reicht erstmal.',
    'Später bitte',
    'Sei still',
    'Genug jetzt',
    'Nein, später',
  ],
  fr: [
    'Stop.',
    "Arrête, s'il te plaît.",
    'Pas maintenant, merci.',
    "Ça suffit pour aujourd'hui",
    'Plus tard.',
    'Tais-toi',
  ],
  es: [
    'Para.',
    'Basta ya, gracias',
    'Ahora no, gracias.',
    'Más tarde',
    'Es suficiente por ahora',
    'Cállate, por favor',
  ],
} as const;

const others = {
  en: [
    '',
    'mm-hm',
    'okay',
    'yes',
    'Stop the music',
    "Don't stop",
    'When does it stop?',
    'not now but tomorrow at nine',
    'Enough about that, book me a ride',
    'Later today I need a table',
    'Is that enough?',
    'See you later',
    'premium',
    'go on',
    'What was that?',
  ],
  de: [
    'Stopp die Musik',
    'Reicht das?',
    'Später brauche ich einen Tisch',
    'Hör nicht auf',
    'genau',
  ],
  fr: ['Arrête la musique', 'Ça suffit ?', "Plus tard j'ai besoin d'un taxi", 'oui'],
  es: ['Para el aeropuerto', '¿Es suficiente?', 'Más tarde quiero una mesa', 'sí'],
} as const;

const rows = (by: Readonly<Record<string, readonly string[]>>) =>
  Object.entries(by).flatMap(([language, texts]) => texts.map((text) => ({ language, text })));

test.each(rows(putOffs))(
  '$language: "$text" postpones the current delivery',
  ({ language, text }) => {
    expect(putsOff(text, language)).toBe(true);
  },
);

test.each(rows(others))('$language: "$text" postpones nothing', ({ language, text }) => {
  expect(putsOff(text, language)).toBe(false);
});

test('never postpones a question in a language without tables', () => {
  expect(putsOff('stop', 'xx')).toBe(false);
});
