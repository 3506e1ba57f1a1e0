// After a crash, the lead agent says which work continues, and the terminal shows it.

import type { VoiceSession } from 'offstage';
import { listed, workName } from '../rules/phrases.ts';

export function sayWhatResumes(session: VoiceSession, log: (line: string) => void): void {
  session.events.subscribe((event) => {
    if (event.type !== 'session.recovered') return;
    const seconds = Math.max(1, Math.round(event.downMs / 1000));
    const resumed = session.subagents
      .list()
      .filter(({ endedAt }) => endedAt === null)
      .map(({ state, toolName }) => {
        const name = workName(toolName);
        return state === 'waiting_for_input' ? `${name}, which waits for you` : name;
      });
    const work = resumed.length === 0 ? 'Nothing was under way' : `I go on with ${listed(resumed)}`;
    log(`Goes on after ${seconds} s, from ${event.entries} entries. ${work}.`);
    for (const { subagentId, reason } of event.lost) log(`${subagentId} is lost: ${reason}`);
    const gone = `I was gone for ${seconds} ${seconds === 1 ? 'second' : 'seconds'}. ${work}.`;
    // This is said before the open question is asked again.
    session.notifyBackground(gone, { label: 'Back again', priority: 'urgent' });
  });
}
