// Every listener in this repository under random attacks: none throws, a legitimate client is still served at once, and
// no socket is left afterwards.
//
// OFFSTAGE_FUZZ_ATTACKS: the number of attacks on each listener (default 160). OFFSTAGE_FUZZ_SEED: which
// ones.

import { readdirSync, readlinkSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { chanceOf } from '../../../src/testing/doubles/chance.ts';
import { attack, socketsLostByNode, type Attacker } from './support/attacks.ts';
import { listeners, type Listener } from './support/listeners.ts';

const ATTACKS = Number(process.env['OFFSTAGE_FUZZ_ATTACKS'] ?? 160);
const SEED = Number(process.env['OFFSTAGE_FUZZ_SEED'] ?? 1);
const AT_ONCE = 40;

/** Returns the number of open sockets in this process, including the clients' sockets. */
function openSockets(): number {
  return descriptors() - socketsLostByNode();
}

function descriptors(): number {
  try {
    return readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:');
      } catch {
        return false;
      }
    }).length;
  } catch {
    return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  }
}

async function started(start: () => Promise<Listener>): Promise<Listener> {
  const listener = await start();
  onTestFinished(async () => void (await listener.close()));
  return listener;
}

/** Lets time pass until the server has closed every illegitimate socket. */
async function untilGone(
  { environment, isOwnServer }: Listener,
  attackers: readonly Attacker[],
  before: number,
): Promise<void> {
  const alive = (): number => attackers.filter(({ socket }) => !socket.destroyed).length;
  // If the server is a third party's, that server must close sockets without an upgrade.
  for (const { socket, isRightful } of attackers) if (isRightful || !isOwnServer) socket.destroy();
  while (openSockets() > before + alive()) await environment.advance(60_000);
  for (const { socket } of attackers) socket.destroy();
  while (openSockets() > before) await environment.advance(60_000);
}

describe.each(Object.entries(listeners))('%s', (name, start) => {
  test("serves a client with a key during attacks, and closes every attacker's socket", async () => {
    const listener = await started(start);
    const chance = chanceOf(SEED, name);
    await listener.serveRightful();
    const before = openSockets();
    for (let done = 0; done < ATTACKS; done += AT_ONCE) {
      const count = Math.min(AT_ONCE, ATTACKS - done);
      const attacks = Array.from({ length: count }, (_, index) =>
        attack(chanceOf(chance.below(2 ** 31), index), listener),
      );
      const attackers: Attacker[] = [];
      // Attacks that wait for a response wait until their time limit.
      const all = Promise.all(attacks.map(async (one) => attackers.push(await one)));
      await listener.environment.settle();
      await listener.serveRightful();
      let isDone = false;
      void all.then(() => (isDone = true));
      while (!isDone) await listener.environment.advance(15_000);
      await untilGone(listener, attackers, before);
    }
    await listener.serveRightful();
    await untilGone(listener, [], before);
    expect(openSockets()).toBe(before);
  });

  test('closes every socket in any state on close', async () => {
    const before = openSockets();
    const listener = await start();
    const chance = chanceOf(SEED + 1, name);
    const attacks = Array.from({ length: AT_ONCE }, () =>
      attack(chanceOf(chance.below(2 ** 31)), listener),
    );
    await listener.environment.settle();
    const closing = listener.close();
    const attackers = await Promise.all(attacks);
    while (attackers.filter(({ socket }) => !socket.destroyed).length + before < openSockets())
      await listener.environment.advance(60_000);
    for (const { socket } of attackers) socket.destroy();
    await closing;
    while (openSockets() > before) await listener.environment.settle();
    expect(openSockets()).toBeLessThanOrEqual(before);
  });
});
