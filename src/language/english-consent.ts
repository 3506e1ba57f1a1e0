// English consent: data only. See `language.ts` for what each table does.
//
// `yes` leaves out words that are also backchannels ("okay", "right", "mm-hm", "fine", "sounds good"): such a
// word must never approve an action. It may stand beside a yes.

import type { ConsentTables } from './language.ts';

const lines = (text: string): string[] => text.trim().split(/\s*\n\s*/);
const words = (text: string): string[] => text.trim().split(/\s+/);

export const englishConsent: ConsentTables = {
  yes: [
    ...words('yes yeah yep yup sure absolutely definitely certainly affirmative agreed granted'),
    ...words('approve approved allow allowed confirm confirmed proceed'),
    ...lines(`
      of course
      by all means
      please do
      go ahead
      go right ahead
      go for it
      do it
      do that
      do so
      let's do it
      let's do that
      make it so
      run it
      run that
      you may
      you may do that
      you may do it
      yes you can
      you can do that
      you can do it
      be my guest
      i agree
      i consent
      i approve
      i approve it
      i approve that
      i allow it
      i allow that
      i confirm
      i confirm it
      i confirm that
      approve it
      approve that
      allow it
      allow that
      confirm it
      confirm that
      permission granted
      permission given
      you have my permission
      you have my approval
      you have my consent
      you've got my permission
      i give you permission
      i give my permission
      i give my consent
      it's a yes
      that's a yes`),
  ],
  asides: [
    ...words('okay oh alright so and sorry well then now just really great good perfect cool fine'),
    ...words('nice right mm mhm'),
    ...lines(`
      mm hm
      all right
      right now
      right away
      that's fine
      that's good
      that's great
      that's okay
      that's alright
      sounds good
      sounds great
      sounds fine
      that sounds good
      that sounds great
      looks good
      that looks good
      that works
      works for me
      fine by me
      fine with me
      i'm fine with that
      i'm okay with that`),
  ],
  pronouns: words('it that this them these those the a an my our your'),
  no: [
    ...words('no nope nah never stop abort cancel deny denied reject rejected decline declined'),
    ...words('refuse refused negative'),
    ...lines(`
      no way
      no chance
      god no
      oh god no
      hell no
      heavens no
      don't
      do not
      don't do it
      don't do that
      do not do it
      do not do that
      not now
      not today
      not this time
      not at all
      stop it
      stop that
      stop asking
      stop asking me
      cancel it
      cancel that
      abort it
      deny it
      i deny it
      reject it
      i refuse
      absolutely not
      definitely not
      certainly not
      of course not
      better not
      i'd rather not
      rather not
      i don't want that
      i don't want it
      i don't want you to
      i don't think so
      i'd rather you didn't
      permission denied
      not allowed
      not approved
      you may not
      you can't
      never mind
      forget it
      forget about it
      leave it
      it's a no
      that's a no`),
  ],
  refusals: lines(`
    don't
    do not
    never
    not now
    not today
    not this time
    not okay
    not allowed
    not approved
    rather not
    better not
    absolutely not
    definitely not
    certainly not
    you can't
    you may not
    you must not
    you shouldn't
    i refuse
    i don't want
    i don't think so
    i'd rather you didn't
    permission denied
    stop asking
    please stop
    never mind`),
  notRefusals: lines(`
    don't know
    do not know
    don't mind
    do not mind
    don't care
    don't worry
    don't think
    don't understand
    don't get it
    don't see
    don't hear
    don't have
    don't remember
    don't you
    don't need
    never heard
    never done
    never used
    no problem
    no worries
    no doubt
    no idea
    no objection
    no objections
    not yet
    why not`),
  ironies: lines(`
    yeah right
    yeah yeah
    yes right
    yep right
    sure right
    oh sure
    oh yeah
    oh right
    oh really
    oh great
    oh perfect
    oh wonderful
    yeah sure right
    sure of course
    of course right
    yeah of course right
    yes of course right
    yeah well`),
  asks: lines(`
    may i
    should i
    shall i
    can i
    could i
    do you want me to
    would you like me to
    is it okay to
    is it okay if i
    is it fine to
    is it all right to
    is it all right if i
    is it alright if i
    am i allowed to
    do i have your permission to`),
  verbs: {},
  yesLabels: ['yes', 'yeah', 'yep'],
  noLabels: ['no', 'nope'],
};
