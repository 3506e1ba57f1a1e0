// Places for unauthenticated peers: connections without a verified key, and bodies without a verified signature. A new
// peer always gets a place. If none is free, it displaces a peer of the IP address that holds the most places. Slow
// peers therefore cannot lock out a legitimate client, which proves its identity immediately.
//
// Invariants
//   PLACE-1. At most `max` places are occupied.
//   PLACE-2. A new peer is always accepted. If necessary, it displaces the oldest place of the IP address that holds
//       the most places.

type Shed = () => void;

export class UnauthenticatedPlaces {
  readonly #max: number;
  /** The places by IP address, oldest first. */
  readonly #held = new Map<string, Set<Shed>>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Takes a place. `shed` is called when a new peer displaces this peer.
   * @returns a function that releases the place; repeated calls have no effect.
   */
  take(address: string, shed: Shed): () => void {
    const entry: Shed = () => shed();
    const own = this.#held.get(address) ?? new Set();
    this.#held.set(address, own.add(entry));
    this.#size += 1;
    if (this.#size > this.#max) this.#shedOne();
    return () => this.#release(address, entry);
  }

  #shedOne(): void {
    let [victim] = this.#held;
    for (const each of this.#held) if (each[1].size > (victim?.[1].size ?? 0)) victim = each;
    if (!victim) return;
    const [address, places] = victim;
    const [oldest] = places;
    if (!oldest) return;
    this.#release(address, oldest);
    oldest();
  }

  #release(address: string, entry: Shed): void {
    const own = this.#held.get(address);
    if (!own?.delete(entry)) return;
    this.#size -= 1;
    if (own.size === 0) this.#held.delete(address);
  }
}
