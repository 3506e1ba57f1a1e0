// Spanish: data only. Options are matched by label, position and words, but not by sound.

import { list, literal, words, type AnswerLanguage } from './language.ts';

/** Returns a word without its accents, for comparison with other words. */
const folded = (word: string): string => word.normalize('NFD').replace(/[\u0300-\u036F]/g, '');

/** Returns an imperative and its forms with attached pronouns: `envía`, `envíalo`. */
const withPronouns = (text: string): string[] =>
  words(text).flatMap((form) => [form, ...words('lo la los las').map((end) => form + end)]);

export const spanish: AnswerLanguage = {
  ...literal,
  clock: {
    ...literal.clock,
    marks: ['horas', 'en punto'],
    leads: ['las', 'la'],
    am: ['de la mañana'],
    pm: ['de la tarde', 'de la noche'],
  },
  code: 'es',
  symbols: { '€': 'euro', $: 'dolar', '%': 'porciento', '&': 'y', '+': 'mas' },
  prefixSymbols: ['€', '$'],
  synonyms: {
    ok: 'okay',
    vale: 'okay',
    euros: 'euro',
    dolares: 'dolar',
    minutos: 'minuto',
    min: 'minuto',
    horas: 'hora',
  },
  cardinals: {
    ...Object.fromEntries(
      words(`cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince
        dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro
        veinticinco veintiséis veintisiete veintiocho veintinueve treinta`).map((word, value) => [
        folded(word),
        value,
      ]),
    ),
    cuarenta: 40,
    cincuenta: 50,
    sesenta: 60,
    setenta: 70,
    ochenta: 80,
    noventa: 90,
  },
  multipliers: { cien: 100, mil: 1_000 },
  ordinals: Object.fromEntries(
    list(`
        primero primera primer, segundo segunda, tercero tercera tercer, cuarto cuarta, quinto quinta,
        sexto sexta`).flatMap((forms, index) =>
      forms.split(' ').map((form) => [form, index + 1] as const),
    ),
  ),
  lastWords: words('ultimo ultima'),
  numberLeads: words('opcion numero respuesta'),
  frame: words(`
    yo me mi nos el la lo los las un una unos unas es sería quiero quisiera querría queremos prefiero
    elijo escojo tomo tomaré tomamos cojo dame deme ponme con de del para por en a al entonces mejor
    creo que opción número respuesta favor ese esa este esta eso esto`),
  doubts: list(`
    demasiado, si es, si está, si no, si hay, si viene, salvo, pero, o, en vez, odio, ayer`),
  quantifiers: list(`
    ambos, ambas, los dos, las dos, ninguno, ninguna, ninguno de los dos, ninguna de las dos, cualquiera,
    da igual, me da igual, me da lo mismo, lo que sea, elige tú, elija usted, otra cosa`),
  nones: list(`
    ninguno, ninguna, ninguno de los dos, ninguna de las dos, ninguno de ellos, ninguna de ellas, ninguno de esos,
    ninguna de esas, ni uno ni otro, ni el uno ni el otro, ni una ni otra, nada de eso`),
  references: words(`
    barato barata baratos baratas económico caro cara caros caras rápido rápida lento lenta temprano
    tarde grande pequeño pequeña largo larga corto corta cercano cercana mejor mismo misma otro otra
    más menos`),
  polite: ['por favor', 'gracias', 'muchas gracias'],
  leadIns: words('okay bueno pues ah y entonces'),
  hesitations: words('eh em hmm mmm'),
  fillers: words('eh em'),
  unfinished: words(`
    el la los las un una unos unas de del a al para por en con sobre desde hasta
    y o pero porque que mis tus su sus nuestro nuestra yo quisiera querría`),
  negations: words('no nunca jamás nada ningún ninguna tampoco sin ni'),
  holds: list(`
    espera, espere, espérate, espérese, aguarda, aguarde, un momento, un momentito, un segundo, un segundito,
    un minuto, un instante, dame un momento, deme un momento, dame un segundo, deme un segundo, dame un minuto,
    ahora vuelvo, todavía no, aún no`),
  holdTails: list(`
    un momento, un momentito, un segundo, un segundito, un minuto, un poco, un rato, segundo, momento, ahí,
    tantito`),
  musings: list(`
    déjame pensar, déjeme pensar, déjame pensarlo, déjeme pensarlo, a ver, déjame ver, déjeme ver,
    lo estoy pensando, estoy pensando, vamos a ver`),
  musingTails: words('qué cuándo cuál dónde cómo cuánto'),
  holdReasons: list(`
    voy a, tengo que, estoy, déjame, déjeme, llaman, que llaman, que tengo, que estoy, que miro, que lo,
    alguien, hay alguien, lo miro, miro, busco, pregunto, reviso, mi teléfono, el teléfono, me llaman`),
  corrections: list(`
    no espera, no espere, no perdón, no mejor, no no, no digo, no quiero decir, quiero decir, quería decir,
    digo, perdón, más bien, mejor dicho, en realidad, corrección, he cambiado de idea, cambié de idea`),
  bareCorrections: words('no'),
  repeats: list(`
    repite, repita, repítelo, repítalo, repíteme, repítame, puedes repetir, puede repetir, podrías repetir,
    podría repetir, me lo repites, me lo repite, otra vez la, otra vez las, dilo otra vez, dígalo otra vez,
    dilo de nuevo, cuál era la pregunta, cuál es la pregunta, cuáles eran las opciones, cuáles son las opciones,
    cuáles son mis opciones, qué opciones, cuáles opciones, qué has dicho, qué dijiste, qué ha dicho, qué dijo,
    qué decías, qué me preguntaste, qué preguntaste, qué era, no he entendido, no entendí, no te entendí,
    no le entendí, no he oído, no oí, no te oí, no escuché, lee las opciones, léeme las opciones`),
  repeatsAlone: list(`
    otra vez, una vez más, de nuevo, cómo, perdón, qué, cómo dice, cómo dices, mande, qué qué, perdón qué,
    perdona, perdone`),
  commands: list(`
    olvídalo, olvídelo, olvida eso, olvida, olvide, olvídate, déjalo, déjelo, para, basta, cancela, cancélalo,
    cancelar, cancela eso, cancele`),
  putOffs: list(`
    para, pare, para ya, basta, basta ya, ya basta, es suficiente, suficiente, ahora no, no ahora,
    en este momento no, todavía no, más tarde, quizás más tarde, luego, después, en otro momento, otra vez será,
    dímelo más tarde, dígamelo más tarde, dímelo luego, lo leo después, no quiero oírlo, no quiero oír eso,
    cállate, cállese, calla, silencio, sáltalo, déjalo, da igual`),
  putOffTails: list(`gracias, ahora, por ahora, por hoy, ya`),
  withdrawals: list(`
    ya no, no hace falta, no necesito, no necesitamos, no quiero, he cambiado de idea, cambié de idea`),
  callOffs: list(`
    no, no hace falta, no es necesario, déjalo, déjelo, déjalo estar, ya no hace falta, mejor no`),
  requests: list(`
    llama, llame, llámame, pide, pida, pídeme, encarga, encargue, reserva, reserve, resérvame, compra, compre,
    cómprame, busca, busque, búscame, encuentra, muestra, muéstrame, enséñame, lee, léeme, pon, ponme, ponga,
    abre, abra, haz, hazme, haga, hágame, crea, escribe, escriba, escríbeme, envía, envíe, envíame, manda,
    mande, mándame, recuérdame, recuérdeme, dime, dígame, dame, deme, trae, tráeme, cambia, cambie, cancela,
    cancele, borra, borre, ayúdame, traduce, explica, explícame, olvida, olvide, prepara, prepárame, puedes,
    puede, podrías, podría, quiero que, quisiera que, primero quiero`),
  beforehand: list(`primero, antes, antes de eso, mientras, mientras tanto`),
  joints: words('y también además luego'),
  digressionStarts: list(`
    por cierto, una pregunta, tengo una pregunta, otra pregunta, sabes, sabe usted, puedes decirme,
    puede decirme`),
  questionStarts: [
    ...words(
      'qué por cómo cuándo dónde quién quiénes cuál cuáles cuánto cuánta cuántos cuántas es',
    ),
    ...list(`a quién, para quién, hay, cuánto cuesta`),
  ],
  backchannels: list(`
    ajá, sí, vale, claro, ya, bueno, bien, exacto, entiendo, perfecto, ya veo, muy bien, de acuerdo,
    por supuesto, comprendo, seguro, desde luego, entendido`),
  moments: list(`
    un momento, un momento por favor, un segundo, un segundo por favor, un instante, deme un momento`),
  patience: list(`
    tómese su tiempo, tómate tu tiempo, sin prisa, no hay prisa, espero, cuando quiera`),
  agreements: list(`
    bien, perfecto, vale, claro, entendido, gracias, entonces, okay, ok, de acuerdo, muy bien, buena
    elección`),
  consent: {
    yes: [
      // Without its accent, "sí" (yes) is written like "si" (if); on its own it is a yes, because a condition never
      // stands alone.
      ...words('sí claro adelante hazlo hágalo procede proceda aprobado permitido confirmado'),
      ...list(`
        por supuesto, desde luego, de acuerdo hazlo, estoy de acuerdo, lo apruebo, lo permito, lo confirmo,
        tienes mi permiso, tiene mi permiso`),
    ],
    asides: [...words('okay bueno pues ah y entonces perfecto bien ahora'), 'de acuerdo'],
    pronouns: words('lo la los las el un una mi mis tu tus su sus eso esto'),
    ironies: list(`
      sí claro, ya claro, claro claro, sí sí, ya ya, sí ya, claro que sí hombre, ah sí, ah claro, sí perfecto,
      sí hombre`),
    asks: list(`puedo, debo, quiere que, quieres que, te parece que, le parece que`),
    verbs: {
      send: [...withPronouns('envía envíe manda mande'), ...words('enviar envío envíes')],
      cancel: [...withPronouns('cancela cancele anula anule'), ...words('cancelar cancelo anular')],
      delete: [
        ...withPronouns('borra borre elimina elimine'),
        ...words('borrar borro eliminar elimino'),
      ],
      pay: [...withPronouns('paga pague'), ...words('pagar pago págalo páguelo')],
      book: [...withPronouns('reserva reserve'), ...words('reservar reservo')],
      reserve: [...withPronouns('reserva reserve'), ...words('reservar reservo')],
      order: [
        ...withPronouns('pide pida encarga encargue'),
        ...words('pedir pido encargar encargo'),
      ],
      buy: [...withPronouns('compra compre'), ...words('comprar compro')],
      transfer: [...withPronouns('transfiere transfiera'), ...words('transferir transfiero')],
      call: [...withPronouns('llama llame'), ...words('llamar llamo')],
      stop: [...withPronouns('para pare detén'), ...words('parar paro detener detengo')],
    },
    no: [
      ...words('no nunca jamás para basta cancela cancélalo denegado rechazado'),
      ...list(`
        ahora no, mejor no, no lo hagas, no lo haga, no hagas eso, de ninguna manera, claro que no,
        por supuesto que no, olvídalo, déjalo`),
    ],
    refusals: [
      ...words('nunca jamás'),
      ...list(`no lo, no la, no hagas, no haga, no quiero, ahora no, mejor no, que no`),
    ],
    notRefusals: ['no lo sé', 'no sé', 'por qué no', 'no hay problema', 'todavía no', 'aún no'],
    // "si" is not listed because, without its accent, it is a yes.
    afterwards: list('luego, después, después de eso, también, además, más tarde'),
    indefinites: words('un una unos unas me nos'),
    adjustments:
      words(`añade añada pon ponga toma tome cambia cambie haz haga deja deje usa use cancela cancele
      borra borre quita quite guarda guarde paga pague confirma confirme`),
    lastings: list(`
      no me preguntes más, no preguntes más, no me vuelvas a preguntar, no vuelvas a preguntar, no me pregunte más,
      no me vuelva a preguntar, siempre, no me preguntes más por esto, no me vuelvas a preguntar por esto`),
    conditions: list(`
      siempre que, siempre y cuando, a no ser que, a menos que, salvo que, solo si, cuando`),
    infinitives: {},
    separable: [],
    yesLabels: ['sí'],
    noLabels: ['no'],
  },
};
