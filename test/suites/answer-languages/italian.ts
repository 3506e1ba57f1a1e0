// Italian as an app would add it: complete tables that import only the public entry.

import type { AnswerLanguageTables } from '../../../src/entries/language.ts';

const words = (text: string): string[] => text.trim().split(/\s+/);
const lines = (text: string): string[] => text.trim().split(/\s*,\s*/);

export const italian: AnswerLanguageTables = {
  code: 'it',
  symbols: { '€': 'euro', $: 'dollaro', '%': 'percento', '&': 'e', '+': 'più' },
  prefixSymbols: ['€', '$'],
  synonyms: { ok: 'okay', dollari: 'dollaro', minuti: 'minuto', ore: 'ora' },
  cardinals: Object.fromEntries(
    words('zero uno due tre quattro cinque sei sette otto nove dieci undici dodici').map(
      (word, value) => [word, value],
    ),
  ),
  multipliers: { cento: 100, mille: 1000 },
  ordinals: Object.fromEntries(
    ['primo prima', 'secondo seconda', 'terzo terza', 'quarto quarta', 'quinto quinta'].flatMap(
      (forms, index) => words(forms).map((form) => [form, index + 1] as const),
    ),
  ),
  lastWords: words('ultimo ultima'),
  numberLeads: words('opzione numero risposta'),
  elisions: words('l un d dell all nell c'),
  polite: lines('per favore, per piacere, grazie, grazie mille, molte grazie'),
  leadIns: words('okay allora ah e beh'),
  hesitations: words('ehm eh mmm hmm'),
  fillers: words('ehm eh'),
  unfinished: words(`
    il lo la i gli le un uno una di del della a al alla da in con su per tra fra e o ma perché che
    mio mia tuo tua suo sua nostro vorrei`),
  frame: words(`
    io mi me ci il lo la i gli le un uno una è sarebbe vorrei voglio preferisco prendo prendiamo scelgo
    dammi mi dia con di del della da per in a al alla quello quella questo questa allora meglio credo che`),
  negations: words('no non mai niente nulla nessuno nessuna neanche senza né'),
  doubts: lines('troppo, se è, se c, tranne, ma, o, invece di, odio, ieri'),
  quantifiers: lines(`
    entrambi, entrambe, tutti e due, tutte e due, nessuno dei due, nessuna delle due, qualsiasi,
    è uguale, fa lo stesso, scegli tu, qualcos altro`),
  references: words(`
    economico economica caro cara veloce lento lenta presto tardi grande piccolo piccola migliore stesso
    stessa altro altra più meno`),
  holds: lines(`
    aspetta, aspetti, attendi, attenda, un momento, un attimo, un secondo, un minuto, un istante,
    dammi un momento, dammi un attimo, mi dia un momento, non ancora`),
  holdTails: lines('un momento, un attimo, un attimino, un secondo, un minuto, un po'),
  musings: lines('fammi pensare, mi faccia pensare, vediamo, fammi vedere, ci penso, sto pensando'),
  musingTails: words('che cosa quando quale dove come quanto'),
  holdReasons: lines('devo, vado a, sto, fammi, mi chiamano, qualcuno, controllo, cerco'),
  corrections: lines(`
    no aspetta, no aspetti, no scusa, no anzi, no no, anzi, volevo dire, cioè, in realtà, ho cambiato idea`),
  bareCorrections: words('no'),
  repeats: lines(`
    puoi ripetere, può ripetere, ripeti, ripeta, ripetimi, quali erano le opzioni, quali sono le opzioni,
    qual era la domanda, che cosa hai detto, cosa hai detto, non ho capito, non ho sentito`),
  repeatsAlone: lines(
    'come, scusa, scusi, come scusa, prego, cosa, di nuovo, ancora una volta, un altra volta',
  ),
  commands: lines('lascia perdere, lasci perdere, lascia stare, dimentica, annulla, ferma, basta'),
  putOffs: lines(`
    non ora, non adesso, ora no, adesso no, basta, basta così, è abbastanza, più tardi, dopo,
    magari più tardi, dimmelo dopo, zitto, silenzio, fermati, stop, lascia perdere`),
  putOffTails: lines('grazie, per ora, per oggi, adesso'),
  withdrawals: lines('non serve più, non mi serve, non voglio più, ho cambiato idea'),
  requests: lines(`
    chiama, chiamami, ordina, ordinami, prenota, prenotami, compra, comprami, cerca, cercami, trova,
    mostra, mostrami, leggi, leggimi, metti, apri, fai, fammi, crea, scrivi, scrivimi, invia, manda,
    mandami, ricordami, dimmi, dammi, porta, cambia, cancella, aiutami, traduci, spiega, spiegami,
    prepara, puoi, può, potresti, potrebbe, vorrei che, voglio che`),
  beforehand: lines('prima di tutto, prima di questo, intanto, nel frattempo'),
  joints: words('e anche inoltre poi'),
  digressionStarts: lines(
    'a proposito, una domanda, ho una domanda, sai, lei sa, puoi dirmi, può dirmi',
  ),
  questionStarts: [
    ...words('che cosa come quando dove chi quale quali quanto quanta quanti quante perché'),
    'a chi',
    'per chi',
    'c è',
    'ci sono',
  ],
  consent: {
    yes: [
      ...words('sì certo certamente vai fallo proceda procedi approvato confermo'),
      ...lines('vai pure, certo che sì, fai pure, lo approvo, lo confermo, hai il mio permesso'),
    ],
    asides: lines('okay, va bene, allora, d accordo, perfetto, pure'),
    pronouns: words('lo la li le'),
    no: [
      ...words('no mai fermo annulla negato'),
      ...lines('assolutamente no, certo che no, non farlo, non lo faccia, per niente, non ora'),
    ],
    refusals: lines('mai, non farlo, non voglio, non ora, meglio di no, non lo'),
    notRefusals: lines('non lo so, non so, perché no, non c è problema, non ancora'),
    ironies: lines('sì come no, certo come no, sì sì, ah sì, sì vabbè'),
    asks: lines('posso, devo, vuole che, vuoi che'),
    verbs: {
      send: words('invia inviala invialo invii inviare manda mandala mandalo mandare'),
      cancel: words('annulla annullala annullalo annullare cancella cancellala'),
      book: words('prenota prenotala prenotalo prenotare'),
      pay: words('paga pagala pagalo pagare'),
      delete: words('elimina eliminala eliminalo cancella cancellalo'),
    },
    yesLabels: ['sì'],
    noLabels: ['no'],
  },
  backchannels: lines(`
    sì, già, certo, capisco, ho capito, bene, va bene, esatto, giusto, chiaro, d'accordo, perfetto,
    ottimo, vero, davvero`),
  moments: lines(`
    un attimo, un attimo per favore, un momento, un momento per favore, un secondo, solo un attimo,
    mi dia un momento`),
  patience: lines('faccia con calma, fai con calma, non c è fretta, aspetto'),
  agreements: lines(`
    bene, benissimo, va bene, perfetto, d'accordo, certo, capito, ho capito, grazie, allora, okay,
    ottima scelta`),
};
