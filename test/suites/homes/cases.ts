// The cases of the suite: what users rely on, wherever their session lives.
//
// Invariants
//   HOME-1. A session is in one place at a time: whatever several users say at the same time, at any node, belongs to
//       one conversation.
// HOME-2. Accepted input survives every process: questions keep their ids, finished work is not repeated, and a call
// that must not be repeated is started only once.
//   HOME-3. A session wakes up on its own to resume its work, and when something is due.
// HOME-4. A node that has lost a session or is draining no longer changes anything in that session.

import { chanceOf } from '../../../src/testing/doubles/chance.ts';
import type { HomeBench, HomeScene, HomeUser } from './bench.ts';
import { FILL_CHARS } from './errands.ts';

const AT_ONCE = 20;
/** More than 2 MB in total. */
const FILLS = 10;
const STOPPED_LOOKS = 300;

/** Requests an errand that asks the user a question, and returns the question's id. */
async function asked(user: HomeUser, errand: string, steps = 'ask, charge'): Promise<string> {
  await user.say(`Do [errand ${errand}: ${steps}]`);
  return (await user.question(errand)).requestId;
}

/** Checks that the question is waiting under its id, that its answer is accepted, and that the result is delivered. */
async function answered(
  bench: HomeBench,
  user: HomeUser,
  errand: string,
  id: string,
): Promise<void> {
  const { requestId } = await user.question(errand);
  bench.expect(requestId === id, `the question to have its id ${id}, got ${requestId}`);
  bench.expect(await user.answer(id, 'The cheap one'), 'the answer to be taken');
  await user.told(errand);
  bench.expectCounts(errand, { charge: 1, 'model-1': 1 });
}

export const homeScenes: readonly HomeScene[] = [
  {
    name: 'asks, accepts the answer, delivers the result, and sleeps without a client',
    async play(bench) {
      const ann = await bench.connected();
      const id = await asked(ann, 'a', 'look_up, ask, charge');
      await answered(bench, ann, 'a', id);
      bench.expectCounts('a', { look_up: 1, 'model-2': 1, 'model-3': 1, 'model-4': 1 });
      ann.client.close();
      await bench.asleep();
      const again = await bench.connected();
      await again.told('a');
    },
  },
  {
    name: `HOME-1: keeps ${AT_ONCE} simultaneous users at all nodes in one conversation`,
    async play(bench) {
      const users = Array.from({ length: AT_ONCE }, (_, at) =>
        bench.user(`user-${at}`, at % bench.nodes),
      );
      const words = users.map((_, at) => `note ${at} of ${AT_ONCE}`);
      await Promise.all(users.map((user, at) => user.say(words[at] ?? '')));
      const isWhole = ({ said }: HomeUser): boolean => words.every((each) => said.includes(each));
      await bench.until('all to have read all', () => (users.every(isWhole) ? true : undefined));
      const notes = ({ said }: HomeUser): string =>
        said.filter((text) => text.startsWith('note ')).join();
      const [first] = users.map(notes);
      for (const user of users)
        bench.expect(notes(user) === first, `one order, got ${first} and ${notes(user)}`);
      bench.expect(first?.split(',').length === AT_ONCE, `each note once, got ${first}`);
    },
  },
  {
    name: 'HOME-1: passes on a message that reaches a node without the session',
    needs: ['nodes'],
    async play(bench) {
      const ann = await bench.connected('ann', 0);
      await ann.say('I have it');
      const bob = await bench.connected('bob', 1);
      await bob.say('I am here as well');
      await bench.until('Ann to read it', () =>
        ann.said.includes('I am here as well') ? true : undefined,
      );
      const id = await asked(ann, 'a');
      await answered(bench, bob, 'a', id);
      await ann.told('a');
    },
  },
  {
    name: 'HOME-2: accepts an answer to the same question after everything is killed while the session is asleep',
    async play(bench) {
      const ann = await bench.connected();
      const id = await asked(ann, 'a');
      ann.client.close();
      await bench.asleep();
      await bench.killAll();
      await bench.startAll();
      await answered(bench, await bench.connected(), 'a', id);
    },
  },
  {
    name: 'HOME-2: reconnects the client, and accepts an answer to the same question, after everything is killed with the session in memory',
    async play(bench) {
      const ann = await bench.connected();
      const id = await asked(ann, 'a');
      await bench.killAll();
      await bench.startAll();
      await answered(bench, ann, 'a', id);
    },
  },
  {
    name: 'HOME-3: repeats a model call during which everything is killed, without a client',
    async play(bench) {
      const release = bench.hold('a/model-2');
      const ann = await bench.connected();
      await ann.say('Do [errand a: look_up, ask, charge]');
      await bench.begun('a/model-2');
      ann.client.close();
      await bench.killAll();
      release();
      await bench.startAll();
      await bench.begun('a/model-2', 2);
      const again = await bench.connected();
      await answered(bench, again, 'a', (await again.question('a')).requestId);
      bench.expectCounts('a', { look_up: 1 });
    },
  },
  {
    name: 'HOME-2: does not repeat a charge after everything is killed during it',
    async play(bench) {
      const release = bench.hold('a/charge');
      const ann = await bench.connected();
      await ann.say('Do [errand a: charge]');
      await bench.begun('a/charge');
      await bench.killAll();
      release();
      await bench.startAll();
      await ann.told('a');
      bench.expectCounts('a', { charge: 1 });
    },
  },
  {
    name: 'HOME-3: wakes without a client when a deadline passes while it sleeps',
    async play(bench) {
      const ann = await bench.connected();
      await ann.say('Do in a hurry [errand a: ask]');
      await ann.question('a');
      ann.client.close();
      await bench.begun('a/model-2');
      bench.expectCounts('a', { 'model-1': 1 });
    },
  },
  {
    name: 'HOME-3: handles a deadline that passed while everything was dead, without a client',
    async play(bench) {
      const ann = await bench.connected();
      await ann.say('Do in a hurry [errand a: ask]');
      await ann.question('a');
      ann.client.close();
      await bench.asleep();
      await bench.killAll();
      await bench.startAll();
      await bench.begun('a/model-2');
      bench.expectCounts('a', { 'model-1': 1 });
    },
  },
  {
    name: 'HOME-3: wakes without a client to send a result that was not heard, once, and tells it to the user who returns',
    async play(bench) {
      const ann = await bench.connected();
      const id = await asked(ann, 'mail-a');
      ann.client.close();
      await bench.asleep();
      const bob = await bench.connected('bob');
      bench.expect(await bob.answer(id, 'The cheap one'), 'the answer to be taken');
      bob.client.close();
      await bench.begun('mail-a/send');
      await bench.asleep();
      await bench.killAll();
      await bench.startAll();
      await (await bench.connected()).told('mail-a');
      bench.expectCounts('mail-a', { charge: 1, send: 1 });
    },
  },
  {
    name: 'HOME-2: does not send a result again after everything is killed while it is being sent',
    async play(bench) {
      const release = bench.hold('mail-a/send');
      const ann = await bench.connected();
      await ann.say('Do [errand mail-a: charge]');
      await bench.begun('mail-a/charge');
      ann.client.close();
      await bench.begun('mail-a/send');
      await bench.killAll();
      release();
      await bench.startAll();
      await (await bench.connected()).told('mail-a');
      bench.expectCounts('mail-a', { charge: 1, send: 1 });
    },
  },
  {
    name: 'HOME-2: restores a sleeping session of more than 2 MB after a kill',
    async play(bench) {
      const ann = await bench.connected();
      const id = await asked(ann, 'a', `fill ${FILLS}, ask, charge`);
      ann.client.close();
      await bench.asleep();
      await bench.killAll();
      await bench.startAll();
      const again = await bench.connected();
      await answered(bench, again, 'a', id);
      const [, read = '0'] = /(?<!\d)(\d+)$/u.exec(await again.told('a')) ?? [];
      bench.expect(Number(read) >= FILLS * FILL_CHARS, `all to be read, got ${read} characters`);
    },
  },
  {
    name: 'HOME-3: keeps an open tab connected during an eviction, and answers it',
    needs: ['evicts'],
    async play(bench) {
      const ann = await bench.connected();
      const id = await asked(ann, 'a');
      const states: string[] = [];
      ann.client.status.subscribe(({ state }) => states.push(state));
      await bench.asleep();
      await bench.stage.evict?.(bench.session);
      await answered(bench, ann, 'a', id);
      bench.expect(!states.includes('waiting'), 'the connection to stay');
    },
  },
  {
    name: 'HOME-4: continues waiting and working sessions when a node leaves before a deploy',
    needs: ['drains'],
    async play(bench) {
      const ann = await bench.connected();
      const release = bench.hold('b/model-2');
      await ann.say('Do [errand b: look_up, ask, charge]');
      await bench.begun('b/model-2');
      const id = await asked(ann, 'a');
      const drained = bench.stage.drain?.(0);
      release();
      await bench.settled('the node to leave', Promise.resolve(drained));
      await bench.stage.start(0);
      await answered(bench, ann, 'a', id);
      await answered(bench, ann, 'b', (await ann.question('b')).requestId);
      bench.expectCounts('b', { look_up: 1 });
    },
  },
  {
    name: 'HOME-4: ignores a stopped node that resumes after another node has claimed the session',
    needs: ['nodes', 'stops'],
    async play(bench) {
      const ann = await bench.connected('ann', 0);
      const id = await asked(ann, 'a');
      bench.stage.stop?.(0);
      let isHeard = false;
      ann.client.send('Said to nobody').then(
        () => (isHeard = true),
        () => undefined,
      );
      // The lease of the paused node expires during these polls.
      for (let look = 0; look < STOPPED_LOOKS; look += 1) await bench.moment();
      const bob = await bench.connected('bob', 1);
      await answered(bench, bob, 'a', id);
      bench.stage.go?.(0);
      await ann.told('a');
      await bob.say('Both are here');
      await bench.until('Ann to read it', () =>
        ann.said.includes('Both are here') ? true : undefined,
      );
      const heard = bob.said.filter((text) => text === 'Said to nobody').length;
      bench.expect(heard === Number(isHeard), `words with a receipt to be there, got ${heard}`);
      bench.expectCounts('a', { charge: 1 });
    },
  },
];

/** A user leaves, and processes die at moments that depend on the seed while results are sent to that user. */
export function killsWhileAway(seed: number): HomeScene {
  return {
    name: `seed ${seed}: sends each unheard result once at most, and loses none, while processes are killed`,
    async play(bench) {
      const chance = chanceOf(seed, 'away');
      const errands = Array.from({ length: 3 }, (_, at) => `mail-${seed}-${at}`);
      const ann = await bench.connected();
      const tasks = errands.map((errand) => `[errand ${errand}: look_up, charge]`);
      await ann.say(`Do ${tasks.join(' and ')}`);
      ann.client.close();
      for (let kill = 0; kill < 3; kill += 1) {
        for (let moments = chance.within(5, 120); moments > 0; moments -= 1) await bench.moment();
        const node = chance.below(bench.nodes);
        await bench.stage.kill(node);
        await bench.stage.start(node);
      }
      const again = await bench.connected();
      for (const errand of errands) {
        await again.told(errand);
        for (const what of ['charge', 'send'])
          bench.expect(bench.count(`${errand}/${what}`) <= 1, `${what} of ${errand} once at most`);
      }
    },
  };
}

/** Users request errands and answer questions while processes die at moments that depend on the seed. */
export function randomKills(seed: number): HomeScene {
  return {
    name: `seed ${seed}: completes errands while processes are killed`,
    async play(bench) {
      const chance = chanceOf(seed, 'homes');
      const ann = await bench.connected();
      const errands = Array.from({ length: 4 }, (_, at) => `e${seed}-${at}`);
      let isDone = false;
      const killing = (async () => {
        for (let kill = 0; kill < 3 && !isDone; kill += 1) {
          for (let moments = chance.within(5, 80); moments > 0 && !isDone; moments -= 1)
            await bench.moment();
          const node = chance.below(bench.nodes);
          await bench.stage.kill(node);
          await bench.stage.start(node);
        }
      })();
      for (const errand of errands) {
        await ann.say(`Do [errand ${errand}: look_up, ask, charge]`);
        await ann.answer((await ann.question(errand)).requestId, 'Any');
      }
      for (const errand of errands) await ann.told(errand);
      isDone = true;
      await killing;
      for (const errand of errands) {
        bench.expect(bench.count(`${errand}/charge`) <= 1, `${errand} to be charged once at most`);
        bench.expect(
          ann.said.filter((text) => text === `Do [errand ${errand}: look_up, ask, charge]`)
            .length === 1,
          `${errand} to be asked for once`,
        );
      }
    },
  };
}
