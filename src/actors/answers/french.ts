// French: data only, so far what an approval needs, and asking for time. Options match by
// their labels. See `language.ts` for what each table does.

import { literal, type AnswerLanguage } from './language.ts';

const words = (text: string): string[] => text.trim().split(/\s+/);

export const french: AnswerLanguage = {
  ...literal,
  code: 'fr',
  synonyms: { ok: 'okay' },
  polite: ["s'il vous plaît", "s'il te plaît", 'merci', 'merci beaucoup'],
  leadIns: words('okay bon alors ah et bien'),
  hesitations: words('euh hum hmm ben'),
  fillers: words('euh'),
  negations: [...words("non pas jamais ne n'est rien aucun aucune sans"), 'ni'],
  holds: [
    'attends',
    'attendez',
    'un instant',
    'un moment',
    'une seconde',
    'une minute',
    'pas encore',
  ],
  musings: ['laisse-moi réfléchir', 'laissez-moi réfléchir', 'voyons', 'je réfléchis'],
  repeats: ['répète', 'répétez', 'tu peux répéter', 'vous pouvez répéter'],
  repeatsAlone: ['quoi', 'pardon', 'comment'],
  commands: ['laisse tomber', 'laissez tomber', 'oublie', 'arrête', 'arrêtez', 'annule', 'annulez'],
  questionStarts: [
    ...words("quoi pourquoi comment quand où qui quel quelle combien qu'est-ce"),
    'est-ce que',
    "qu'est-ce que",
  ],
  consent: {
    yes: [
      ...words('oui ouais absolument certainement autorisé approuvé confirmé'),
      'bien sûr',
      'vas-y',
      'allez-y',
      'fais-le',
      'faites-le',
      "d'accord vas-y",
      "je suis d'accord",
      "j'accepte",
      "j'approuve",
      "j'autorise",
      'je confirme',
    ],
    asides: [
      ...words('okay bon alors ah et bien parfait super maintenant'),
      "d'accord",
      'très bien',
    ],
    pronouns: words('le la les ça cela mon ma mes un une'),
    no: [
      ...words('non jamais arrête arrêtez annule annulez stop refusé refuse'),
      'pas maintenant',
      'surtout pas',
      'certainement pas',
      'pas question',
      'ne fais pas ça',
      'ne faites pas ça',
      'ne le fais pas',
      'ne le faites pas',
      'je refuse',
      'laisse tomber',
      'laissez tomber',
    ],
    refusals: words('pas jamais'),
    notRefusals: [
      'pas encore',
      'pas sûr',
      'pas sûre',
      'sais pas',
      'comprends pas',
      'pourquoi pas',
      'pas de problème',
      'pas de souci',
    ],
    yesLabels: ['oui'],
    noLabels: ['non'],
  },
};
