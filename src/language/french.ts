// French: data only. Options are matched by label, position and words, but not by sound.

import { list, literal, words, type AnswerLanguage } from './language.ts';

/** Returns a word without its accents, for comparison with other words. */
const folded = (word: string): string => word.normalize('NFD').replace(/[\u0300-\u036F]/g, '');

const ordinals: Readonly<Record<string, number>> = Object.fromEntries(
  list(`
      premier première, deuxième second seconde, troisième, quatrième, cinquième, sixième, septième, huitième,
      neuvième, dixième`).flatMap((forms, index) =>
    forms.split(' ').map((form) => [folded(form), index + 1] as const),
  ),
);

export const french: AnswerLanguage = {
  ...literal,
  clock: {
    ...literal.clock,
    marks: ['heure', 'heures', 'h'],
    leads: ['à', 'vers'],
    am: ['du matin'],
    pm: ["de l'après-midi", 'du soir'],
  },
  code: 'fr',
  symbols: { '€': 'euro', $: 'dollar', '%': 'pourcent', '&': 'et', '+': 'plus' },
  prefixSymbols: ['€', '$'],
  synonyms: { ok: 'okay', euros: 'euro', minutes: 'minute', min: 'minute', heures: 'heure' },
  cardinals: {
    ...Object.fromEntries(
      words(`zéro . deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze
        seize`).flatMap((word, value) => (word === '.' ? [] : [[folded(word), value] as const])),
    ),
    vingt: 20,
    trente: 30,
    quarante: 40,
    cinquante: 50,
    soixante: 60,
  },
  multipliers: { cent: 100, mille: 1_000 },
  ordinals,
  lastWords: words('dernier derniere'),
  numberLeads: words('option numero choix reponse'),
  elisions: words('c d j l m n s t qu'),
  frame: words(`
    je j tu vous il elle nous on me moi m le la les l un une des du de d ce c ça cela celui celle
    ceux est serait voudrais veux voulons prends prendre prendrai prenons choisis choisirai préfère
    aimerais avec pour à en y alors ci là s va vais mettez donnez donne donnez-moi réservez
    commandez option numéro choix réponse qui que plutôt mieux`),
  doubts: list(`trop, si, sauf, mais, ou, au lieu, déteste, hier`),
  quantifiers: list(`
    les deux, tous les deux, aucun, aucune, aucun des deux, aucune des deux, ni l'un ni l'autre, peu importe,
    n'importe, n'importe lequel, n'importe laquelle, ça m'est égal, égal, comme vous voulez, comme tu veux,
    choisissez, autre chose`),
  nones: list(`
    aucun, aucune, aucun des deux, aucune des deux, aucun de ceux-là, aucune de celles-là, aucun d'eux, aucune
    d'elles, ni l'un ni l'autre, ni l'une ni l'autre, pas un seul, rien de tout ça`),
  references: words(`
    cher chère chères chers cheap rapide rapides lent lente tôt tard grand grande petit petite long
    longue court courte proche meilleur meilleure même autre moins plus économe`),
  polite: ["s'il vous plaît", "s'il te plaît", 'merci', 'merci beaucoup'],
  leadIns: words('okay bon alors ah et bien'),
  hesitations: words('euh hum hmm ben'),
  fillers: words('euh'),
  unfinished: words(`
    le les l un une des du de d à au aux pour dans en avec chez par vers et ou mais parce car
    mon ma mes ton ta tes ses notre nos votre vos leur leurs ce cet cette
    je j que qu puisque voudrais aimerais`),
  negations: [...words("non pas jamais ne n'est rien aucun aucune sans"), 'ni'],
  holds: list(`
    attends, attendez, un instant, un moment, une seconde, une minute, pas encore, un petit instant,
    un petit moment, deux secondes, deux minutes, une petite seconde, minute, patiente, patientez, je reviens`),
  holdTails: list(`
    une seconde, une minute, un instant, un moment, un peu, deux secondes, un petit instant, un petit moment,
    voir, encore`),
  musings: list(`
    laisse-moi réfléchir, laissez-moi réfléchir, voyons, voyons voir, je réfléchis, je réfléchis encore,
    laisse-moi voir, laissez-moi voir, que je réfléchisse`),
  musingTails: words('ce si quand quel quelle où comment'),
  holdReasons: list(`
    je regarde, je cherche, je vérifie, je réfléchis, je demande, je dois, je vais, je prends mon, je consulte,
    je finis, je suis en train, il faut que, on sonne, quelqu'un, il y a quelqu'un, laisse-moi, laissez-moi,
    mon téléphone, le téléphone, le temps`),
  corrections: list(`
    non attends, non attendez, non pardon, non plutôt, non non, non en fait, non finalement, non je veux dire,
    je veux dire, je voulais dire, ou plutôt, enfin, en fait, finalement, pardon, excusez-moi, excuse-moi,
    désolé, désolée, correction, j'ai changé d'avis`),
  bareCorrections: words('non'),
  repeats: list(`
    répète, répétez, répéter, tu peux répéter, vous pouvez répéter, peux-tu répéter, pouvez-vous répéter,
    pourriez-vous répéter, pourrais-tu répéter, pouvez-vous me répéter, redis, redites, redis-moi, redites-moi,
    encore une fois la, encore une fois les, quelle était la question, quelle est la question,
    c'était quoi la question, c'est quoi la question, quelles étaient les options, quelles sont les options,
    quelles sont mes options, quels étaient les choix, quels sont les choix, c'était quoi les options,
    c'est quoi les options, c'était quoi les choix, c'est quoi les choix, qu'est-ce que vous avez dit,
    qu'est-ce que tu as dit, qu'avez-vous dit, vous avez dit quoi, tu as dit quoi, vous disiez,
    je n'ai pas compris, j'ai pas compris, je n'ai pas entendu, j'ai pas entendu, je n'ai pas bien,
    lisez les options, lis les options`),
  repeatsAlone: list(`
    encore une fois, une fois encore, quoi, pardon, comment, hein, comment ça, excusez-moi, pardon quoi,
    comment pardon, vous dites, plaît-il`),
  commands: list(`
    laisse tomber, laissez tomber, oublie, oubliez, oublie ça, oubliez ça, arrête, arrêtez, annule, annulez,
    annule ça, annulez ça, tant pis`),
  putOffs: list(`
    stop, arrête, arrêtez, arrête-toi, arrête de parler, arrêtez de parler, ça suffit, c'est assez, assez,
    suffit, pas maintenant, pas tout de suite, pas encore, plus tard, peut-être plus tard, une autre fois,
    dis-le moi plus tard, dites-le moi plus tard, je le lirai plus tard, je ne veux pas l'entendre,
    je ne veux pas entendre ça, tais-toi, taisez-vous, silence, chut, passe, passe ça, laisse tomber, tant pis`),
  putOffTails: list(`merci, maintenant, pour l'instant, pour le moment, pour aujourd'hui`),
  withdrawals: list(`
    plus besoin, n'ai plus, n'a plus, n'avons plus, ne veux plus, ne voulons plus, veux plus, plus envie,
    changé d'avis`),
  callOffs: list(`
    n', ne, pas la peine, ce n'est pas la peine, c'est pas la peine, inutile, pas besoin, laisse, laisse tomber,
    laissez, laissez tomber, surtout pas`),
  requests: list(`
    appelle, appelez, commande, commandez, réserve, réservez, achète, achetez, cherche, cherchez, trouve,
    trouvez, montre, montrez, lis, lisez, joue, jouez, ouvre, ouvrez, fais, faites, crée, créez, écris, écrivez,
    envoie, envoyez, rappelle, rappelez, mets, mettez, dis, dites, donne, donnez, apporte, apportez, change,
    changez, annule, annulez, supprime, supprimez, aide, aidez, traduis, traduisez, explique, expliquez,
    prépare, préparez, oublie, oubliez, laisse tomber, laissez tomber, arrête, arrêtez, peux-tu, pouvez-vous,
    pourrais-tu, pourriez-vous, tu peux, vous pouvez, je voudrais que, je veux que, je voudrais d'abord,
    je veux d'abord`),
  beforehand: list(`d'abord, avant, avant ça, en premier, entre-temps, en attendant`),
  joints: words('et aussi puis'),
  digressionStarts: list(`
    au fait, à propos, dis-moi, dites-moi, une question, j'ai une question, une autre question, tu sais,
    savez-vous, est-ce que tu sais`),
  questionStarts: [
    ...words("quoi pourquoi comment quand où qui quel quelle quels quelles combien qu'est-ce"),
    ...list(`
      est-ce que, est-ce, c'est pour qui, c'est combien, c'est quoi, y a-t-il, il y a quoi, qu'est-ce que`),
  ],
  backchannels: list(`
    oui, ouais, bien, voilà, exactement, entendu, parfait, d'accord, je vois, très bien, bien sûr,
    c'est ça, je comprends, absolument, tout à fait, compris`),
  moments: list(`
    un instant, un instant s'il vous plaît, un moment, un moment s'il vous plaît, une seconde, juste
    un instant`),
  patience: list(`
    prenez votre temps, prends ton temps, pas de souci, rien ne presse, je vous attends, je patiente`),
  agreements: list(`
    bien, parfait, entendu, compris, merci, alors, noté, okay, ok, d'accord, très bien, bien sûr,
    bon choix`),
  consent: {
    yes: [
      ...words('oui ouais absolument certainement autorisé approuvé confirmé'),
      ...list(`
        bien sûr, vas-y, allez-y, fais-le, faites-le, d'accord vas-y, je suis d'accord, j'accepte, j'approuve,
        j'autorise, je confirme`),
    ],
    asides: [
      ...words('okay bon alors ah et bien parfait super maintenant'),
      "d'accord",
      'très bien',
    ],
    pronouns: words('le la les l ça cela mon ma mes ton ta tes votre vos un une'),
    ironies: list(`
      mais bien sûr, mais oui bien sûr, oui c'est ça, ouais c'est ça, oui oui, ouais ouais, ben voyons,
      oui ben voyons, ah oui, ah ouais, ah bien sûr, oui super, ouais super, oui parfait, ouais parfait,
      ouais bien sûr`),
    asks: list(`
      dois-je, puis-je, est-ce que je peux, est-ce que je dois, est-ce que je, voulez-vous que je,
      veux-tu que je, je peux`),
    verbs: {
      send: words('envoie envoies envoyez envoyer'),
      cancel: words('annule annules annulez annuler résilie résiliez résilier'),
      delete: words('supprime supprimez supprimer efface effacez effacer'),
      pay: words('paie paye payez payer règle réglez régler'),
      book: words('réserve réservez réserver'),
      reserve: words('réserve réservez réserver'),
      order: words('commande commandez commander'),
      buy: words('achète achetez acheter'),
      transfer: words('vire virez virer transfère transférez transférer'),
      call: words('appelle appelez appeler'),
      stop: words('arrête arrêtez arrêter'),
    },
    no: [
      ...words('non jamais arrête arrêtez annule annulez stop refusé refuse'),
      ...list(`
        pas maintenant, surtout pas, certainement pas, pas question, ne fais pas ça, ne faites pas ça,
        ne le fais pas, ne le faites pas, je refuse, laisse tomber, laissez tomber`),
    ],
    refusals: words('pas jamais'),
    notRefusals: list(`
      pas encore, pas sûr, pas sûre, sais pas, comprends pas, pourquoi pas, pas de problème, pas de souci`),
    afterwards: list('puis, ensuite, après, après ça, après cela, aussi, en plus, également'),
    indefinites: words('un une des moi nous'),
    adjustments:
      words(`ajoute ajoutez mets mettez prends prenez change changez fais faites laisse laissez
      utilise utilisez annule annulez supprime supprimez garde gardez paie payez confirme confirmez`),
    lastings: list(`
      ne me demande plus, ne demande plus, ne me le demande plus, ne me demandez plus, ne demandez plus, ne me le
      demandez plus, plus besoin de demander, toujours, ne me demande plus pour ça, ne me demandez plus pour ça`),
    conditions: list(`
      si, sauf si, à condition, tant que, pourvu que, à moins que, seulement si, dès que`),
    infinitives: {},
    separable: [],
    yesLabels: ['oui'],
    noLabels: ['non'],
  },
};
