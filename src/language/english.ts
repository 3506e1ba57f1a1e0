// English: data only. `language.ts` explains each table.
//
// `consent.yes` omits words that are also backchannels ("okay", "right", "mm-hm", "fine", "sounds good"): they must
// never approve an action on their own.

import { list, words, type AnswerLanguage } from './language.ts';

export const english: AnswerLanguage = {
  code: 'en',

  symbols: {
    $: 'dollar',
    '€': 'euro',
    '£': 'pound',
    '%': 'percent',
    '&': 'and',
    '+': 'plus',
    '@': 'at',
    '#': 'number',
  },
  prefixSymbols: ['$', '€', '£'],
  synonyms: {
    dollars: 'dollar',
    buck: 'dollar',
    bucks: 'dollar',
    euros: 'euro',
    pounds: 'pound',
    min: 'minute',
    mins: 'minute',
    minutes: 'minute',
    hr: 'hour',
    hrs: 'hour',
    hours: 'hour',
    ok: 'okay',
    btw: 'by the way',
    nevermind: 'never mind',
    mon: 'monday',
    tue: 'tuesday',
    tues: 'tuesday',
    thu: 'thursday',
    thurs: 'thursday',
    fri: 'friday',
  },

  cardinals: {
    ...Object.fromEntries(
      words(
        `zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
         fifteen sixteen seventeen eighteen nineteen twenty`,
      ).map((word, value) => [word, value]),
    ),
    thirty: 30,
    forty: 40,
    fifty: 50,
    sixty: 60,
    seventy: 70,
    eighty: 80,
    ninety: 90,
  },
  multipliers: { hundred: 100, thousand: 1_000 },
  numberJoint: 'and',
  ordinals: Object.fromEntries(
    words('first second third fourth fifth sixth seventh eighth ninth tenth').map((word, index) => [
      word,
      index + 1,
    ]),
  ),
  verbsLast: false,
  elisions: [],
  ordinalSuffixes: ['st', 'nd', 'rd', 'th'],
  lastWords: ['last'],
  ofTwo: { first: ['former'], second: ['latter'] },
  numberLeads: ['option', 'number', 'choice', 'answer', 'auction'],
  numberHomophones: { won: 1, to: 2, too: 2, tree: 3, free: 3, for: 4, ate: 8 },
  proforms: ['one', 'ones'],
  clock: {
    marks: ["o'clock", 'o clock', 'hour', 'sharp'],
    leads: ['at', 'around'],
    am: ['am', 'a m', 'in the morning'],
    pm: ['pm', 'p m', 'in the afternoon', 'in the evening'],
    past: ['past', 'after'],
    to: ['to', 'before', 'till'],
    quarters: ['quarter', 'a quarter'],
    halfPast: ['half past', 'half'],
    halfTo: [],
  },
  inflections: [],

  polite: [
    ...words('please pls plz thanks thx ta cheers kindly sir madam maam mate'),
    'thank you',
    'thank you very much',
    'many thanks',
  ],
  leadIns: words('okay oh alright so and sorry mm hm mhm'),
  hesitations: words('um uh umm uhm er erm hmm ah well'),
  fillers: words('um uh umm uhm er erm ah eh'),
  unfinished: words(`
    a an the to for of in on at with from about and or but because if than
    my your our his her their i we they would could should id ill im`),
  frame: words(`
    i id ill im ive we wed well us me my a an the this that these those it its is be
    would will want wanna like take have get got pick choose select go do make give let lets
    with for to of in think guess prefer rather then just can could may might maybe probably definitely
    how about good great fine nice best works sounds see book
    reckon suppose said say obviously nicely lovely clearly thats
    option number choice answer auction`),

  negations: words(`
    no not dont do_not doesnt didnt wont cant cannot couldnt wouldnt shouldnt isnt arent wasnt
    never none nothing neither nor nope nah without except anything_but negative refuse deny`).map(
    (phrase) => phrase.replaceAll('_', ' '),
  ),
  doubts: words(`
    too if unless whether than over instead versus hate dislike avoid against worse worst wrong
    expensive but or yesterday already was were had last_time used_to`).map((phrase) =>
    phrase.replaceAll('_', ' '),
  ),
  quantifiers: list(`
    both, both of them, neither, none of them, none of those, none of these, none of the
    above, all of them, all of those, either, any of them, any one, whichever, whatever, you
    choose, you decide, you pick, i don't care, i don't mind, doesn't matter, surprise me,
    something else, pick one for me, just pick one, just choose one, any will do`),
  nones: list(`
    neither, neither one, neither of them, neither of those, neither of these, neither of the two, none, none of
    them, none of those, none of these, none of the above, none of the two, none of the three, not any of them,
    not any of those, no to both, not one of them, nothing of that`),
  references: words(`
    cheap cheaper cheapest expensive priciest pricier dear fast faster fastest quick quicker
    quickest slow slower slowest early earlier earliest late later latest big bigger biggest
    small smaller smallest large larger largest long longer longest short shorter shortest
    near nearer nearest closer closest better nicer nicest safer safest lower lowest higher
    highest same other different most least more less`),

  holds: list(`
    wait, wait up, wait a sec, hold it, hold up, bear with me, not so fast, hold on, hang on,
    one moment, just a moment, one second, just a second, just a minute, a sec, one sec, not
    yet, give me a moment, give me a second, give me a sec, give me a minute, give me some
    time, one minute, just wait, two seconds, be right back, i will be right back, i'll be
    right back`),
  holdTails: list(`
    a second, a sec, a moment, a minute, a bit, a little, a tick, for a second, for a sec, for
    a moment, for a minute, for a bit, one second, one sec, one moment, one minute, just a
    second, just a sec, just a moment, just a minute, just one second, just one moment, a
    little bit, second, moment, there, up, for me, here, everyone`),
  musings: ['let me think', 'let me see', 'let me check', 'let me look', 'let us see', "let's see"],
  musingTails: [
    ...words('what whats if whether which when where who how my'),
    'about',
    ...words('it up into that them through for'),
    ...list(`in my, on my, the calendar, at the, at my`),
  ],
  holdReasons: list(`
    i need, i gotta, i have got to, i am just, i am looking, i am checking, i am thinking, i
    am still, i am on, i'm just, i'm on, i'm getting, i'm checking, i'm asking, i'm opening,
    i'm finding, i'm driving, i'm not sure, i'll ask, i'll see, i'll find, i'll get, i want to
    check, i want to look, i want to think, someone, someone's, somebody, somebody's, there's
    someone, there's somebody, there is someone, my phone, my other phone, the phone, the
    door, the doorbell, so i can, while i, till i, until i, i need to, i have to, i'm looking,
    i'm thinking, i'm still, i'll check, i'll look, let me, give me, about it, for a second,
    for a moment, first`),
  corrections: list(`
    no wait, no no, no sorry, no hold on, no actually, no i mean, no i meant, no make that, no
    make it, sorry i mean, sorry i meant, sorry no, i mean, i meant, actually, actually no, or
    rather, make that, make it, scratch that, strike that, correction, on second thought, on
    second thoughts, changed my mind, i changed my mind, i've changed my mind, but no, sorry,
    oops`),
  bareCorrections: ['no', 'nope', 'nah'],
  repeats: list(`
    please repeat, repeat them, repeat what you, repeat these, repeat those, say again, say it
    once more, say that once more, say it one more time, say that one more time, say the
    question, say the options, tell me again, tell me the options, tell me the choices, tell
    me the question, tell me my options, read the options, read them again, read it again,
    read that again, read me the options, give me the options, list the options, what was your
    question, what is your question, what's the question, what's your question, what were you
    asking, what are you asking, what did you just, what were you saying, what was it you,
    what do you want to know, what were they, what were those, what were the choices, what are
    the choices, what are my choices, what were my choices, what're the options, what're my
    options, what options are there, what options do i have, what options were there, which
    options are there, which options do i have, which options were there, which were the
    options, what can i choose, what choices do i have, can you say that, could you say that,
    can you say it, could you say it, would you repeat, will you repeat, would you mind
    repeating, can i hear, could i hear, can you read the options, could you read the options,
    can you read the question, could you read the question, can you read that again, could you
    read that again, i didn't get that, i didn't get it, i didn't quite, i did not catch, i
    did not hear, i did not understand, i couldn't hear, i can't hear, didn't catch, didn't
    hear, i missed that, i missed the, you what, repeat that, repeat it, repeat the question,
    repeat the options, can you repeat, could you repeat, say that again, say it again, can
    you say that again, could you say that again, come again, what did you say, what did you
    ask, what was that, what was the question, what is the question, what were the options,
    what were my options, what are the options, what are my options, i didn't hear, i didn't
    catch, i didn't understand, ask me again`),
  repeatsAlone: list(`
    what, pardon, pardon me, i beg your pardon, beg your pardon, excuse me, huh, sorry, sorry
    what, what sorry, what what, what again, again, repeat, one more time, once more, once
    again, come again, hm what, say what, what now`),
  commands: list(`
    never mind, forget it, forget about it, forget that, stop asking, stop asking me, stop,
    stop it, cancel, cancel it, cancel that, leave it, leave it alone, leave them, leave them
    alone, quit, forget, cancel the, cancel my, stop the, stop that, drop it, skip it, skip
    that, not interested`),
  putOffs: list(`
    stop, stop it, stop that, stop there, stop talking, stop reading, stop now, enough, enough
    of that, that's enough, that is enough, that will do, that'll do, not now, not right now,
    not yet, later, maybe later, some other time, another time, tell me later, tell me that
    later, save it for later, save that for later, i'll read it later, i'll look at it later,
    i don't want to hear it, i don't want to hear that, i don't want to hear it now, quiet, be
    quiet, hush, shush, silence, shut up, skip it, skip that, skip this, no more, leave it
    there, never mind, not interested`),
  putOffTails: list(`
    thanks, thank you, for now, now, right now, for today, already, okay, later`),
  withdrawals: list(`
    don't need, do not need, don't want, do not want, no longer need, no longer want, not
    needed, changed my mind, do it myself, do that myself, call her myself, call him myself, call them myself,
    tell her myself, tell him myself, tell them myself, write it myself, send it myself, take care of it myself,
    handle it myself`),
  callOffs: list(`
    don't, do not, please don't, please do not, never mind, no need, there's no need, there is no need, you don't
    need to, you don't have to, leave it, leave that, let it be, it's not necessary, not necessary`),
  requests: [
    ...words(`ask call phone ring text email book order reserve buy purchase get find search show read
      play pause open close turn switch set start create write draft send remind schedule add make
      give tell bring translate summarise summarize explain change cancel stop delete remove pay
      copy attach invite share post move save note confirm raise lower lock unlock dim count
      transfer print forget ignore disregard prepare plan calculate convert download upload take
      put wake check fetch`),
    ...list(`
      message, look up, let me know, go to, i want you to, i need you to, i'd like you to, i'd like to,
      i would like to, i want to, let's, do me a favor, do me a favour, help me`),
  ],
  beforehand: list(`first, first of all, before that, beforehand, in the meantime, meanwhile`),
  joints: words('and also then plus'),
  digressionStarts: list(`
    by the way, never mind, stop asking, tell me, can you tell me, could you tell me, do you
    know, quick question, another question, i have a question, i have another question, let me
    ask you, what time is it, what's the time, what's the weather, what is the weather, how is
    the weather, how are you, who are you, what can you do`),
  questionStarts: [
    ...words(`what whats how hows why when where wheres who whos which whose
      is are does did was were isnt arent doesnt would could should`),
    ...list(`
      do you, do i, do we, do they, did you, did i, are you, am i, can i, can we, can they, can somebody,
      could i, could we, shall i, shall we, may i, would that, will that, will they, have we, have i, has it,
      has he, has she, whats the, is it, is that, can you, could you, would you, will you, have you, should i,
      should we, is there, will it, would it, can it`),
  ],
  requestStarts: [
    ...['would', 'could', 'should'].flatMap((verb) =>
      ['like', 'prefer', 'be', 'do', 'go', 'take'].map((rest) => `${verb} ${rest}`),
    ),
    'how about',
    'what a',
    ...['can', 'could', 'may'].flatMap((verb) =>
      ['i', 'we'].flatMap((who) =>
        ['have', 'get', 'take', 'do', 'go'].map((want) => `${verb} ${who} ${want}`),
      ),
    ),
  ],

  backchannels: list(`
    ooh, yeah, yes, yep, yup, right, sure, alright, gotcha, good, great, nice, cool, fine, wow,
    true, exactly, all right, i see, got it, of course, makes sense, that makes sense, go on, very
    good, sounds good, i understand, understood, absolutely, definitely, for sure, perfect, i know,
    that is right, thats right`),
  moments: list(`
    one moment, one moment please, just a moment, just a moment please, a moment, a moment please,
    one second, just a second, just one moment, just one second, give me a moment, give me a second`),
  patience: list(`
    take your time, take all the time you need, no rush, no hurry, theres no rush, there is no rush,
    theres no hurry, there is no hurry, whenever you're ready, whenever you are ready, i'll wait, i
    will wait`),
  agreements: list(`
    okay, ok, alright, right, sure, great, perfect, good, certainly, understood, thanks, noted,
    then, the, all right, got it, very good, very well, of course, thank you, it is, good choice,
    great choice`),
  consent: {
    yes: [
      ...words(
        'yes yeah yep yup aye sure absolutely definitely certainly affirmative agreed granted',
      ),
      ...words('approve approved allow allowed confirm confirmed proceed'),
      ...list(`
        of course, by all means, please do, go ahead, go right ahead, go for it, do it, do that, do so,
        let's do it, let's do that, make it so, run it, run that, you may, you may do that, you may do it,
        yes you can, you can do that, you can do it, be my guest, i agree, i consent, i approve, i approve it,
        i approve that, i allow it, i allow that, i confirm, i confirm it, i confirm that, approve it,
        approve that, allow it, allow that, confirm it, confirm that, permission granted, permission given,
        you have my permission, you have my approval, you have my consent, you've got my permission,
        i give you permission, i give my permission, i give my consent, it's a yes, that's a yes,
        it is approved, it's approved, that's approved`),
    ],
    asides: [
      ...words(
        'okay oh alright so and sorry well then now just really great good perfect cool fine',
      ),
      ...words('nice right mm mhm'),
      ...list(`
        mm hm, all right, right now, right away, sure thing, that's right, that is right, that's correct,
        that is correct, from my side, i do, for heavens sake, for god's sake, that's fine, that's good,
        that's great, that's okay, that's alright, sounds good, sounds great, sounds fine, that sounds good,
        that sounds great, looks good, that looks good, that works, works for me, fine by me, fine with me,
        i'm fine with that, i'm okay with that`),
    ],
    pronouns: [
      ...words('it that this them these those the a an my our your all everything'),
      ...list(`all of it, all of them, them all, it all`),
    ],
    no: [
      ...words('no nope nah never stop abort cancel deny denied reject rejected decline declined'),
      ...words('refuse refused negative'),
      ...list(`
        no way, no chance, god no, oh god no, hell no, heavens no, don't, do not, don't do it, don't do that,
        do not do it, do not do that, not now, not today, not this time, not at all, stop it, stop that,
        stop asking, stop asking me, cancel it, cancel that, abort it, deny it, i deny it, reject it, i refuse,
        absolutely not, definitely not, certainly not, of course not, better not, i'd rather not, rather not,
        i don't want that, i don't want it, i don't want you to, i don't think so, i'd rather you didn't,
        permission denied, not allowed, not approved, you may not, you can't, never mind, forget it,
        forget about it, leave it, leave it alone, leave them, leave them alone, keep it, keep them, hands off,
        it's a no, that's a no`),
    ],
    refusals: list(`
      don't, do not, never, not now, not today, not this time, not okay, not allowed, not approved, rather not,
      better not, absolutely not, definitely not, certainly not, you can't, you may not, you must not,
      you shouldn't, i refuse, i don't want, i don't think so, i'd rather you didn't, permission denied,
      stop asking, please stop, never mind`),
    notRefusals: list(`
      you may not be, you can't be, don't ask me, do not ask me, not saying no, say no, don't you dare not, don't know, do not know,
      don't mind, do not mind, don't care, don't worry, don't think, don't understand, don't get it, don't see,
      don't hear, don't have, don't remember, don't you, don't need, never heard, never done, never used,
      no problem, no worries, no doubt, no idea, no objection, no objections, not all, not every,
      not everything, not only, not until, not before, not yet, why not`),
    afterwards: list(`
      then, also, after that, afterwards, when that's done, when it's done, when you're done, in addition, besides`),
    indefinites: words('a an another some any me us'),
    adjustments: [
      ...words(`add put take change set attach include raise lower use let leave move keep give cancel remove
        delete stop note confirm pay`),
      ...list(`make it, make that, make sure, make them`),
    ],
    lastings: list(`
      don't ask again, don't ask me again, do not ask again, do not ask me again, never ask again, never ask me
      again, don't ask me any more, don't ask me anymore, you don't need to ask again, you don't have to ask again,
      no need to ask again, stop asking me from now on, always do that, always, from now on too, don't ask me again
      for this, don't ask me again for that, don't ask again for this, don't ask me about this again, don't ask me
      about that again, always allow this, always allow that, always allow it`),
    conditions: [
      ...words('if unless once until provided providing'),
      'as long as',
      'so long as',
      'except for',
    ],
    infinitives: {},
    separable: [],
    ironies: list(`
      yeah right, yeah yeah, yes right, yep right, sure right, oh sure, oh yeah, oh right, oh really, oh great,
      oh perfect, oh wonderful, yeah sure right, sure of course, of course right, yeah of course right,
      yes of course right, yeah well`),
    asks: list(`
      may i do this, may i do that, may i, should i, shall i, can i, could i, do you want me to, would you like me to,
      is it okay to, is it okay if i, is it fine to, is it all right to, is it all right if i,
      is it alright if i, am i allowed to, do i have your permission to`),
    verbs: {},
    yesLabels: ['yes', 'yeah', 'yep'],
    noLabels: ['no', 'nope'],
  },

  sounds: [
    [/([a-z])\1/g, '$1'],
    [/^[kgp]n/g, 'n'],
    [/^wr/g, 'r'],
    [/^wh/g, 'w'],
    [/^x/g, 's'],
    [/gh(?=t)/g, ''],
    [/(?<=[ao]u)gh/g, 'f'],
    [/gh$/g, ''],
    [/mb$/g, 'm'],
    [/chr/g, 'kr'],
    [/sch/g, 'sk'],
    [/t?ch|sh|[cst]i(?=[ao])/g, 'X'],
    [/ph/g, 'f'],
    [/th/g, 'O'],
    [/dg(?=[eiy])|g(?=[eiy])|j/g, 'J'],
    [/c(?=[eiy])|s|z/g, 'S'],
    [/ck|[ckqg]/g, 'K'],
    [/x/g, 'KS'],
    [/[vf]/g, 'F'],
    [/[dt]/g, 'T'],
    [/b/g, 'B'],
    [/p/g, 'P'],
    [/l/g, 'L'],
    [/m/g, 'M'],
    [/n/g, 'N'],
    [/r/g, 'R'],
    [/(?<![A-Z])h(?=[aeiouy])/g, 'H'],
    [/w(?=[aeiouy])/g, 'W'],
    [/y(?=[aeiou])/g, 'Y'],
    [/^[aeiouy]/g, 'A'],
    [/[^A-Z0-9]/g, ''],
  ],
  negativePrefixes: words('un dis in im non de not no'),
  similarSounds: ['BPF', 'SXJ', 'TOJ', 'MN', 'LRWY', 'KX', 'AHY'],
};
