// Rooms with background audio: the same conversations with noise, with the echo of the lead agent's voice, and with a
// television. Only the stages with real speech (browser and room) have background audio.

import type { Dialogue } from '../dialogue.ts';
import {
  airport,
  economy,
  economyRide,
  premium,
  premiumRide,
  report,
  salesOfLastWeek,
} from './lines.ts';

export const rooms: readonly Dialogue[] = [
  {
    name: 'a ride in a noisy room',
    kind: 'room',
    background: 'noise',
    lines: [airport, premium],
    work: [premiumRide],
  },
  {
    name: 'a report in a noisy room',
    kind: 'room',
    background: 'noise',
    lines: [salesOfLastWeek],
    work: [report],
    said: [/sold best/],
  },
  {
    name: 'a ride before a loudspeaker that is heard',
    kind: 'room',
    background: 'echo',
    lines: [airport, economy],
    work: [economyRide],
  },
  {
    name: 'a report before a loudspeaker that is heard',
    kind: 'room',
    background: 'echo',
    lines: [salesOfLastWeek],
    work: [report],
    said: [/sold best/],
  },
  {
    name: 'a ride beside a television',
    kind: 'room',
    background: 'television',
    // `calm` never occurs before the session knows the user's voice.
    lines: [{ ...airport, when: { afterMs: 8000 } }, economy],
    work: [economyRide],
  },
  {
    name: 'a report beside a television',
    kind: 'room',
    background: 'television',
    lines: [{ ...salesOfLastWeek, when: { afterMs: 8000 } }],
    work: [report],
    said: [/sold best/],
  },
];
