// Spanish: data only, so far what an approval needs, and asking for time. Options match by
// their labels. See `language.ts` for what each table does.

import { literal, type AnswerLanguage } from './language.ts';

const words = (text: string): string[] => text.trim().split(/\s+/);

export const spanish: AnswerLanguage = {
  ...literal,
  code: 'es',
  synonyms: { ok: 'okay', vale: 'okay' },
  polite: ['por favor', 'gracias', 'muchas gracias'],
  leadIns: words('okay bueno pues ah y entonces'),
  hesitations: words('eh em hmm mmm'),
  fillers: words('eh em'),
  negations: words('no nunca jamás nada ningún ninguna tampoco sin ni'),
  holds: ['espera', 'espere', 'un momento', 'un segundo', 'un minuto', 'todavía no', 'aún no'],
  musings: ['déjame pensar', 'déjeme pensar', 'a ver', 'déjame ver'],
  repeats: ['repite', 'repita', 'puedes repetir', 'puede repetir', 'otra vez'],
  repeatsAlone: ['cómo', 'perdón', 'qué'],
  commands: ['olvídalo', 'déjalo', 'para', 'basta', 'cancela', 'cancélalo', 'cancelar'],
  questionStarts: words('qué por cómo cuándo dónde quién cuál cuánto es'),
  consent: {
    yes: [
      // "si" is "if" and, without its accent, "yes": alone it is a yes, with a condition it is not alone.
      ...words('sí claro adelante hazlo hágalo procede proceda aprobado permitido confirmado'),
      'por supuesto',
      'desde luego',
      'de acuerdo hazlo',
      'estoy de acuerdo',
      'lo apruebo',
      'lo permito',
      'lo confirmo',
      'tienes mi permiso',
      'tiene mi permiso',
    ],
    asides: [...words('okay bueno pues ah y entonces perfecto bien ahora'), 'de acuerdo'],
    pronouns: words('lo la los las el un una mi eso esto'),
    no: [
      ...words('no nunca jamás para basta cancela cancélalo denegado rechazado'),
      'ahora no',
      'mejor no',
      'no lo hagas',
      'no lo haga',
      'no hagas eso',
      'de ninguna manera',
      'claro que no',
      'por supuesto que no',
      'olvídalo',
      'déjalo',
    ],
    refusals: [
      ...words('nunca jamás'),
      'no lo',
      'no la',
      'no hagas',
      'no haga',
      'no quiero',
      'ahora no',
      'mejor no',
      'que no',
    ],
    notRefusals: ['no lo sé', 'no sé', 'por qué no', 'no hay problema', 'todavía no', 'aún no'],
    yesLabels: ['sí'],
    noLabels: ['no'],
  },
};
