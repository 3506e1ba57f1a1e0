// German: data only. Options are matched by label, position and words, but not by sound.

import { list, literal, words, type AnswerLanguage } from './language.ts';

const units = words('null eins zwei drei vier fünf sechs sieben acht neun');
const tens = words('zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig');
const cardinals: Readonly<Record<string, number>> = Object.fromEntries([
  ...[
    ...units,
    ...words('zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn'),
  ].map((word, value) => [folded(word), value] as const),
  ...tens.flatMap((ten, n) =>
    ['', ...units.slice(1)].map(
      (unit, value) =>
        [
          folded(unit === '' ? ten : `${unit === 'eins' ? 'ein' : unit}und${ten}`),
          (n + 2) * 10 + value,
        ] as const,
    ),
  ),
  ['zwo', 2],
]);
const stems = words('erst zweit dritt viert fünft sechst siebt acht neunt zehnt');

/** The beginnings of questions without a question word, such as a verb followed by its subject. */
const askedBy = [
  ...`soll sollen sollte sollten darf dürfen kann können könnte könnten muss müssen will wollen ist sind war
    waren wird werden würde hat haben hatte kommt kommen geht gehen fährt fahren gibt braucht brauchen passt
    passen reicht bleibt bleiben steht liegt läuft macht machen sagt heißt dauert kostet kennt weiß mag`
    .split(/\s+/)
    .flatMap((verb) =>
      'ich er sie es wir man der die das da dein deine mein meine unser unsere jemand'
        .split(' ')
        .map((subject) => `${verb} ${subject}`),
    ),
  ...`sollst darfst kannst könntest musst willst möchtest magst bist warst wirst würdest hast hattest kommst gehst
    fährst brauchst bleibst machst sagst kennst weißt meinst glaubst denkst findest nimmst`
    .split(/\s+/)
    .map((verb) => `${verb} du`),
  ...`seid habt kommt wollt könnt geht fahrt braucht macht`
    .split(/\s+/)
    .map((verb) => `${verb} ihr`),
  ...`können möchten wollen haben sind meinen wissen kommen brauchen`
    .split(/\s+/)
    .map((verb) => `${verb} Sie`),
];

/** Returns a word without its accents, for comparison with other words. */
function folded(word: string): string {
  return word
    .replace('ß', 'ss')
    .normalize('NFD')
    .replace(/[\u0300-\u036F]/g, '');
}

export const german: AnswerLanguage = {
  ...literal,
  code: 'de',
  symbols: { '€': 'euro', $: 'dollar', '%': 'prozent', '&': 'und', '+': 'plus' },
  prefixSymbols: ['€', '$'],
  synonyms: {
    ok: 'okay',
    euros: 'euro',
    minuten: 'minute',
    min: 'minute',
    stunden: 'stunde',
    std: 'stunde',
    jaja: 'ja ja',
    jawoll: 'jawohl',
    runter: 'herunter',
    rauf: 'herauf',
    wurscht: 'egal',
    wurst: 'egal',
    ...Object.fromEntries(words('ned net nid nit nod nud').map((word) => [word, 'nicht'])),
  },
  cardinals,
  multipliers: { hundert: 100, tausend: 1_000 },
  ordinals: Object.fromEntries(
    stems.flatMap((stem, index) =>
      ['e', 'en', 'er', 'es', 'em'].map((end) => [folded(stem + end), index + 1] as const),
    ),
  ),
  lastWords: words('letzte letzten letzter letztes'),
  numberLeads: words('option nummer auswahl antwort'),
  clock: {
    marks: ['Uhr', 'h'],
    leads: ['um', 'gegen', 'ab'],
    am: ['morgens', 'früh', 'in der Früh', 'vormittags', 'am Morgen', 'am Vormittag'],
    pm: ['nachmittags', 'abends', 'am Nachmittag', 'am Abend'],
    past: ['nach'],
    to: ['vor'],
    quarters: ['Viertel'],
    halfPast: [],
    halfTo: ['halb'],
  },
  inflections: words('e en er es em s n'),
  verbsLast: true,
  frame: words(`
    ich du sie er es wir ihr mir mich uns dir der die das den dem des ein eine einen einem einer
    ist sind wäre bin habe hätte möchte will würde würd nehme nehm nimm nehmen nehmt wählen wähle
    hätt für zu in von vom dann einfach lieber wohl glaube denke dass mit mal bitte geben gib
    sagen sage sag hab hätten wär wäre tät i a an es d de des dr aan halt eben doch schon eh gell wohl nur bloß
    reicht langt lieber gscheit buchen buche buch gern gerne gut am besten hier so termin variante vorschlag option nummer auswahl antwort`),
  doubts: list(`
    zu teuer, zu langsam, wenn, falls, aber, oder, statt, anstatt, gestern, hasse, es sei denn`),
  quantifiers: list(`
    beide, beides, alle beide, keins, keines, keins von beiden, keine von beiden, egal, mir egal, ist mir egal,
    ist egal, ganz egal, irgendeins, irgendeine, such du aus, suchen sie aus, was anderes, etwas anderes`),
  nones: list(`
    keins, keines, keiner, keine, keinen, keins von beiden, keines von beiden, keine von beiden, keinen von beiden,
    keiner von beiden, keins davon, keines davon, keine davon, keinen davon, keins von denen, keine von denen,
    weder noch, weder das eine noch das andere, nichts davon, gar keins, gar keine, gar keinen`),
  references: words(`
    billig billige billigen billiger billigere billigeren billigste billigsten günstig günstige
    günstigen günstiger günstigere günstigeren günstigste günstigsten teuer teure teuren teurer
    teurere teureren teuerste teuersten schnell schnelle schnellen schneller schnellere schnelleren
    schnellste schnellsten langsamere langsameren langsamste früh frühe früher frühere früheren
    früheste frühesten spät späte später spätere späteren späteste größer größere größeren größte
    klein kleine kleiner kleinere kleineren kleinste kürzer kürzere kürzeste länger längere längste
    nähere nächste besser bessere besseren beste besten gleiche gleichen andere anderen anderes`),
  polite: [
    ...words('bitte danke gern gerne bittschön bitteschön dankschön merci'),
    ...list(`danke schön, bitte schön, vielen Dank, sehr gern, sehr gerne`),
  ],
  leadIns: words('okay ach also und gut na passt mhm ah aha'),
  hesitations: words('äh ähm öh hmm hm tja'),
  fillers: words('äh ähm öh'),
  unfinished: words(`
    der dem den des eine einen einem einer eines kein keine keinen keinem keiner
    mein meine meinen meinem meiner dein deine deinen unser unsere unseren ihr ihre ihren ihrem ihrer
    zum zur für von vom in im am bei beim mit nach um über gegen ohne
    und oder aber weil dass wenn ob als ich wir möchte würde könnte hätte`),
  negations: words(
    'nein nee nö nicht nichts nie niemals kein keine keinen keinem keiner ohne außer',
  ),
  holds: list(`
    warte, warten Sie, Moment, Moment mal, einen Moment, Augenblick, einen Augenblick, Sekunde, eine Sekunde,
    noch nicht, wart, warte mal, warten Sie mal, Momentchen, einen kleinen Moment, kleinen Moment, Momenterl,
    Momentli, wart amal, wart mal, wart kurz, sekündchen, einen kurzen Moment, kurzen Moment, nur einen Moment,
    ein Moment, Sekunde mal, eine Minute, bin gleich wieder da`),
  holdTails: list(`
    mal, kurz, mal kurz, bitte, noch, eben, einen Moment, einen kleinen Moment, einen Augenblick, eine Sekunde,
    eine Minute, ein bisschen, Moment, Sekunde, Augenblick`),
  musings: [
    ...['lass mich', 'lassen Sie mich', 'lass', 'ich muss', 'ich will'].flatMap((start) =>
      ['', ' mal', ' kurz', ' mal kurz', ' schnell', ' noch', ' erst', ' kurz mal'].flatMap(
        (adverb) =>
          words(
            'schauen gucken sehen nachsehen nachschauen nachgucken prüfen überlegen nachdenken fragen',
          ).map((verb) => `${start}${adverb} ${verb}`),
      ),
    ),
    ...list(`
      mal sehen, ich überlege, ich überlege noch, ich denke nach, ich überleg, ich überleg noch, mal schauen,
      schauen wir mal, mal überlegen`),
  ],
  musingTails: words('was ob wann welche welcher wo wie wer'),
  holdReasons: [
    ...words('such schau guck frag hol prüf les rechne rechn zähl überleg seh').map(
      (verb) => `ich ${verb}`,
    ),
    ...list(`
      ich muss, ich schaue, ich schau, ich gucke, ich suche, ich überlege, ich lese, ich frage, ich frag,
      ich hole, ich hol, ich prüfe, ich sehe, ich bin noch, ich bin gerade, ich weiß noch nicht, lass mich,
      lassen Sie mich, da ist, es klingelt, jemand, mein Telefon, das Telefon, bis ich`),
  ],
  corrections: list(`
    nein, nee, nein warte, nein Moment, nein doch, nein lieber, nein halt, doch lieber, doch nicht nein,
    ich meine, ich meinte, vielmehr, besser gesagt, beziehungsweise, quatsch, halt, sorry, Entschuldigung,
    Korrektur, Verzeihung, pardon`),
  repeats: list(`
    noch einmal die, noch mal die, nochmal die, wiederhole, wiederholen Sie, wiederhol, was war, was waren,
    wie war die Frage, wie lautete die Frage, wie lautet die Frage, wie waren, was hast du gesagt,
    was haben Sie gesagt, was hast du gefragt, was haben Sie gefragt, was sagten Sie, was war die Frage,
    was ist die Frage, was sind die Optionen, was sind meine Optionen, welche Optionen, welche Möglichkeiten,
    welche Auswahl, was kann ich wählen, was gibt es zur Auswahl, was steht zur Auswahl, sag das noch,
    sag es noch, sag noch, sagen Sie das noch, sagen Sie es noch, kannst du das wiederholen, kannst du das noch,
    kannst du die Frage, können Sie das wiederholen, können Sie das noch, können Sie die Frage,
    könntest du das noch, könnten Sie das noch, könnten Sie das bitte wiederholen, kannst du das bitte,
    können Sie das bitte, lies die Optionen, lesen Sie die Optionen, ich habe das nicht verstanden,
    ich habe es nicht verstanden, ich habe Sie nicht verstanden, ich habe dich nicht verstanden,
    das habe ich nicht verstanden, das hab ich nicht verstanden, hab ich nicht verstanden,
    habe ich nicht verstanden, nicht verstanden, nicht gehört, frag noch, fragen Sie noch`),
  repeatsAlone: list(`
    noch einmal, noch mal, nochmal, was, wie bitte, bitte, hä, wie, wie war das, wie war das noch,
    Entschuldigung, Verzeihung, was bitte, bitte was, Entschuldigung was, sorry was`),
  commands: list(`
    vergiss es, vergiss das, vergiss den, vergiss die, vergessen Sie es, vergessen Sie das, hör auf,
    hören Sie auf, hör auf zu fragen, hören Sie auf zu fragen, frag nicht mehr, lass das, lass es,
    lassen Sie das, stopp, abbrechen, brich ab, storniere, stornieren Sie`),
  putOffs: list(`
    stopp, stop, halt, hör auf, hören Sie auf, aufhören, es reicht, das reicht, reicht, genug, genug davon,
    das genügt, nicht jetzt, jetzt nicht, gerade nicht, jetzt gerade nicht, im Moment nicht, noch nicht, später,
    vielleicht später, ein andermal, ein anderes Mal, sag mir das später, sag es mir später,
    sagen Sie mir das später, ich lese es später, will ich nicht hören, das will ich nicht hören,
    das will ich jetzt nicht hören, ruhe, ruhig, sei still, seien Sie still, sei ruhig, schweig, still,
    überspring das, lass gut sein, schon gut, egal`),
  putOffTails: list(`danke, jetzt, für jetzt, für heute, erstmal, später, schon`),
  withdrawals: list(`
    nicht mehr, kein mehr, keine mehr, keinen mehr, doch nicht, doch kein, doch keine, doch keinen,
    brauchen nicht, mag kein, mag keine, mag keinen, mache ich selbst, mach ich selbst, mache ich selber,
    mach ich selber, anders überlegt`),
  callOffs: list(`
    nicht, nichts, bitte nicht, bitte nichts, lass, lass es, lass das, lassen Sie, nicht nötig, nicht mehr nötig, ist
    nicht nötig, brauchst du nicht, brauchen Sie nicht, du brauchst nicht, Sie brauchen nicht, musst du nicht,
    müssen Sie nicht, kein Bedarf`),
  requests: [
    ...words(`
      kopier kopiere häng hänge leg lege lad lade dreh drehe teil teile speicher speichere notier notiere
      frag frage trag trage überleg lass schau schaue ruf bestell bestelle buch buche reservier reserviere kauf kaufe such suche finde zeig zeige
      lies spiel spiele öffne mach mache erstell erstelle schreib schreibe schick schicke sende
      erinner erinnere stell stelle sag sage gib hol hole bring bringe ändere storniere lösch lösche
      hilf übersetz übersetze erklär erkläre vergiss besorg besorge plan plane verschieb
      verschiebe nenn nenne`),
    ...list(`
      rufen Sie, bestellen Sie, buchen Sie, reservieren Sie, kaufen Sie, suchen Sie, finden Sie, zeigen Sie,
      lesen Sie, spielen Sie, öffnen Sie, machen Sie, erstellen Sie, schreiben Sie, schicken Sie, senden Sie,
      erinnern Sie, stellen Sie, sagen Sie, geben Sie, holen Sie, bringen Sie, ändern Sie, stornieren Sie,
      löschen Sie, helfen Sie, übersetzen Sie, erklären Sie, vergessen Sie, kannst du, können Sie, könntest du,
      könnten Sie, ich möchte dass, ich will dass, ich möchte erst, ich möchte zuerst, ich möchte vorher,
      ich will erst, ich will zuerst`),
  ],
  beforehand: list(`zuerst, erst, erst mal, erstmal, vorher, davor, inzwischen`),
  joints: words('und außerdem dann noch'),
  digressionStarts: list(`
    übrigens, sag mal, eine andere Frage, noch eine Frage, ich habe eine Frage, kannst du mir sagen,
    können Sie mir sagen, weißt du, wissen Sie`),
  questionStarts: [
    ...words(`wofür wozu womit woran worauf worüber wovon wodurch wobei was wie warum wieso weshalb wann wo woher wohin wer wen wem wessen welche welcher
      welches welchen welchem ist sind hat haben gibt kostet`),
    ...list(`an wen, für wen, mit wem, um wie viel, für wie viele`),
    ...askedBy,
  ],
  requestStarts: list(`
    wie immer, wie letztes, wie letzten, wie letzte, wie sonst, wie üblich, wie gehabt, wie beim, wie gestern`),
  backchannels: list(`
    ja, jo, jap, genau, klar, stimmt, richtig, gut, schön, verstehe, achso, natürlich, sehr gut, ich
    verstehe, ach so, alles klar, in ordnung, absolut, auf jeden fall, perfekt,
    sicher, verstanden`),
  moments: list(`
    moment, sekunde, einen moment, einen moment bitte, moment bitte, einen augenblick, einen
    augenblick bitte, augenblick bitte, eine sekunde`),
  patience: list(`
    lassen sie sich zeit, lass dir zeit, kein problem, keine eile, ich warte, nur die ruhe, in ruhe`),
  agreements: list(`
    okay, ok, gut, gerne, perfekt, prima, verstanden, danke, dann, also, notiert, sehr gut, alles
    klar, in ordnung, vielen dank, gute wahl`),
  consent: {
    yes: [
      ...words('ja jawohl jo jup jep jap klar klaro natürlich selbstverständlich einverstanden'),
      ...words('freilich unbedingt'),
      'na klar',
      ...words('genehmigt erlaubt bestätigt'),
      ...list(`
        auf jeden Fall, nur zu, mach das, mach es, machen Sie das, tu das, tu es, du darfst, Sie dürfen,
        darfst du, dürfen Sie, das darfst du, das dürfen Sie, kannst du machen, können Sie machen,
        das kannst du machen, ist genehmigt, ich stimme zu, ich bin einverstanden, ich erlaube es,
        ich genehmige es`),
    ],
    asides: [
      ...words('okay ach also und gut na dann jetzt doch prima super'),
      ...words('passt genau voll mach oh'),
      ...list(`
        in Ordnung, mach mal, mach nur, mach ruhig, das passt, weg damit, geht klar, das geht klar,
        geht in Ordnung, das geht in Ordnung, das ist in Ordnung, sei so gut, seien Sie so gut,
        so schnell wie möglich, um Gottes willen`),
    ],
    pronouns:
      words(`alle alles es das die den sie ihn der dem mein meine meinen dein deine deinen ihr ihre
      ihren`),
    ironies: list(`
      ja ja, na ja, naja, ja genau, ja sicher, ja sicher doch, na toll, na super, na prima, na klasse,
      schon klar, ja schon klar, ach ja, ach klar, aber klar doch, ja super, ja prima, ja toll`),
    asks: list(`
      soll ich, darf ich, kann ich, möchtest du dass ich, möchten Sie dass ich, willst du dass ich,
      wollen Sie dass ich`),
    verbs: {
      send: list(`
        schick, schicke, schicken Sie, schicken, schick … ab, schicken Sie … ab, schick … los, abschicken,
        losschicken, sende, senden Sie, senden, absenden, versenden`),
      cancel: list(`
        storniere, stornieren Sie, stornieren, kündige, kündigen Sie, kündigen, brich … ab, brechen Sie … ab,
        abbrechen, absagen, sag … ab, sagen Sie … ab`),
      delete: list(`lösch, lösche, löschen Sie, löschen`),
      pay: list(`zahl, zahle, zahlen Sie, zahlen, bezahl, bezahle, bezahlen Sie, bezahlen`),
      book: list(`buch, buche, buchen Sie, buchen`),
      reserve: list(`reservier, reserviere, reservieren Sie, reservieren`),
      order: list(`bestell, bestelle, bestellen Sie, bestellen`),
      buy: list(`kauf, kaufe, kaufen Sie, kaufen`),
      transfer: list(`überweis, überweise, überweisen Sie, überweisen`),
      call: list(`ruf … an, rufen Sie … an, anrufen`),
      stop: list(`stopp, stoppe, stoppen Sie, stoppen`),
    },
    no: [
      ...words('nein nee nö naa niemals stopp abbrechen abgelehnt ablehnen verboten'),
      ...list(`
        nix da, Finger weg, auf keinen Fall, lieber nicht, jetzt nicht, nicht jetzt, bitte nicht, tu das nicht,
        mach das nicht, vergiss es, lass das, lass es, hör auf`),
    ],
    refusals: words('nicht niemals kein keine keinen'),
    notRefusals: [
      ...words('die den das alle alles jede jeden jedes nein nur vor bevor von vom so dass').map(
        (word) => `nicht ${word}`,
      ),
      ...list(`
        nichts dagegen, nicht schlecht, weiß nicht, ich weiß es nicht, nicht sicher, noch nicht, warum nicht,
        verstehe nicht, kein Problem, keine Ahnung, keine Sorge`),
    ],
    afterwards: list(
      'dann, danach, außerdem, auch, auch noch, noch, anschließend, hinterher, zusätzlich',
    ),
    indefinites: words('ein eine einen einem einer mir uns noch'),
    adjustments: [
      ...words(`füg füge leg lege stell stelle änder ändere nimm mach mache häng hänge setz setze lass nutz nutze
        verschieb verschiebe stornier storniere lösch lösche stopp zahl zahle bezahl bezahle behalt behalte gib
        notier notiere bestätig bestätige`),
    ],
    lastings: list(`
      frag nicht mehr, frag mich nicht mehr, frag nicht wieder, frag mich nicht wieder, frag nicht noch mal, frag
      mich nicht noch einmal, fragen Sie nicht mehr, fragen Sie mich nicht mehr, fragen Sie mich nicht wieder, du
      musst nicht mehr fragen, du brauchst nicht mehr zu fragen, Sie müssen nicht mehr fragen, ab jetzt immer, immer,
      frag mich dafür nicht mehr, frag mich dazu nicht mehr, fragen Sie mich dafür nicht mehr, das darfst du immer, das
      dürfen Sie immer`),
    conditions: [
      ...words('wenn wenns falls sofern solange sobald außer vorausgesetzt'),
      'bis auf',
      'es sei denn',
    ],
    infinitives: { en: ['', 'e', 'en Sie'], n: ['', 'e', 'n Sie'] },
    separable: words(
      'herunter hinunter herauf hinauf heraus hinaus herein hinein fest fern bereit ein aus an ab auf zu vor nach mit weg los her hin fort weiter zurück frei durch rein raus',
    ),
    yesLabels: ['ja'],
    noLabels: ['nein'],
  },
};
