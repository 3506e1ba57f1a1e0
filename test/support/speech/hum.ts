// "Mm-hm" as people say it: a nasal sound without words, which a synthesiser would spell out.

const SAMPLE_RATE_HZ = 24_000;
const PEAK = 7000;

/** The pitch in Hz from start to end, or null for silence. */
interface Part {
  readonly ms: number;
  readonly pitch: readonly [number, number] | null;
}

const parts: readonly Part[] = [
  { ms: 180, pitch: [120, 115] },
  { ms: 60, pitch: null },
  { ms: 240, pitch: [125, 150] },
];
/** The resonances of a closed mouth, each with its frequency and width in Hz and its share. */
const resonances = [
  { at: 250, width: 180, share: 1 },
  { at: 1100, width: 250, share: 0.15 },
  { at: 2300, width: 400, share: 0.08 },
] as const;
const HARMONICS = 12;

/** Returns a listener's hum of 0.5 s: Int16 mono at 24 kHz, the same for every call. */
export function hum(): Int16Array {
  const samples: number[] = [];
  let phase = 0;
  for (const { ms, pitch } of parts) {
    const length = (SAMPLE_RATE_HZ * ms) / 1000;
    for (let index = 0; index < length; index += 1) {
      const [from, to] = pitch ?? [0, 0];
      const hz = from + ((to - from) * index) / length;
      phase += (2 * Math.PI * hz) / SAMPLE_RATE_HZ;
      const envelope = pitch ? Math.sqrt(Math.sin((Math.PI * index) / length)) : 0;
      samples.push(PEAK * envelope * voiced(hz, phase));
    }
  }
  return Int16Array.from(samples);
}

function voiced(hz: number, phase: number): number {
  let sum = 0;
  for (let harmonic = 1; harmonic <= HARMONICS; harmonic += 1) {
    const gain = resonances.reduce(
      (total, { at, width, share }) =>
        total + share * Math.exp(-(((harmonic * hz - at) / width) ** 2)),
      0,
    );
    sum += gain * Math.sin(harmonic * phase);
  }
  return sum;
}
