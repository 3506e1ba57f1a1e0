import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BudgetAccount, type Reservation } from '../../../src/actors/admission/budget.ts';

/** An account, with the test's own record of it. */
interface Known {
  readonly account: BudgetAccount;
  readonly parent: Known | null;
  readonly holds: Reservation[];
  readonly children: Known[];
  open: boolean;
}

/** Returns the reserved amount of an account: its holds and its children's grants. */
function outstanding({ holds, children }: Known): number {
  const held = holds.reduce((sum, { amount }) => sum + amount, 0);
  return children.reduce(
    (sum, child) => sum + (child.open ? child.account.granted : outstanding(child)),
    held,
  );
}

const command = fc.record({
  who: fc.nat(20),
  what: fc.constantFrom('take', 'take', 'settle', 'settle', 'cut', 'raise', 'close'),
  amount: fc.nat(60),
  part: fc.nat(100),
});

interface World {
  readonly all: Known[];
  /** The total use. */
  used: number;
  /** The root's grant. */
  granted: number;
}

function run(commands: readonly { who: number; what: string; amount: number; part: number }[]) {
  const root: Known = {
    account: new BudgetAccount(100),
    parent: null,
    holds: [],
    children: [],
    open: true,
  };
  const world: World = { all: [root], used: 0, granted: 100 };
  for (const { who, what, amount, part } of commands) {
    const known = world.all[who % world.all.length] as Known;
    const { account, holds } = known;
    const before = { left: account.left, held: account.held, spent: account.spent };
    switch (what) {
      case 'take': {
        const hold = account.take(amount);
        // The hold succeeds if and only if it fits. BUDGET-ACCOUNT-4: a refused hold changes nothing.
        expect(hold !== null).toBe(amount <= before.left);
        if (hold) holds.push(hold);
        else
          expect({ left: account.left, held: account.held, spent: account.spent }).toEqual(before);
        break;
      }
      case 'cut': {
        const cut = account.cut(amount);
        expect(cut !== null).toBe(amount <= before.left);
        if (!cut) break;
        const child = { account: cut, parent: known, holds: [], children: [], open: true };
        known.children.push(child);
        world.all.push(child);
        break;
      }
      case 'raise': {
        const above = known.parent;
        const room = above === null ? Infinity : above.account.left;
        const granted = account.granted;
        const isRaised = account.raise(amount);
        expect(isRaised).toBe(known.open && amount <= room);
        expect(account.granted).toBe(granted + (isRaised ? amount : 0));
        if (isRaised) expect(account.left).toBe(before.left + amount);
        if (isRaised && above === null) world.granted += amount;
        break;
      }
      case 'settle': {
        const hold = holds.splice(part % Math.max(1, holds.length), 1)[0];
        if (!hold) break;
        const used = Math.floor((hold.amount * part) / 100);
        hold.settle(used);
        hold.settle(used + 1);
        world.used += used;
        break;
      }
      default:
        if (known === root) break;
        account.close();
        account.close();
        known.open = false;
        break;
    }
    for (const { account: each, open, ...rest } of world.all) {
      if (!open) {
        expect(each.take(1)).toBeNull();
        continue;
      }
      // BUDGET-ACCOUNT-1: nothing is lost, and the held amount equals the outstanding one.
      expect(each.spent + each.held).toBeLessThanOrEqual(each.granted);
      expect(each.held).toBe(outstanding({ account: each, open, ...rest }));
      expect(each.left).toBe(each.granted - each.spent - each.held);
    }
  }
  return { root, world };
}

test('BUDGET-ACCOUNT-1 to BUDGET-ACCOUNT-4: never spends or holds more than the granted amount', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => void run(commands)),
    { numRuns: 1_000 },
  );
});

test('BUDGET-ACCOUNT-3: counts only the used amounts as spent once all accounts have ended', () => {
  const order = fc.array(fc.nat(50), { maxLength: 60 });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), order, (commands, picks) => {
      const { root, world } = run(commands);
      // The accounts close in any order, before or after their children and calls.
      const ends = world.all.flatMap((known) => [
        ...(known === root ? [] : [() => known.account.close()]),
        ...known.holds.map((hold) => () => {
          hold.settle(hold.amount);
          world.used += hold.amount;
        }),
      ]);
      for (const pick of picks) ends.splice(pick % Math.max(1, ends.length), 1)[0]?.();
      for (const end of ends) end();
      expect(root.account.held).toBe(0);
      expect(root.account.spent).toBe(world.used);
      expect(root.account.left).toBe(world.granted - world.used);
    }),
    { numRuns: 1_000 },
  );
});

test('BUDGET-ACCOUNT-1: charges a call in full even if it exceeds its reservation, leaving no budget', () => {
  const root = new BudgetAccount(100);
  const child = root.cut(60) as BudgetAccount;
  const [first, second] = [child.take(30), child.take(30)] as [Reservation, Reservation];
  first.settle(45);
  expect(child.left).toBe(0);
  expect(child.take(1)).toBeNull();
  child.close();
  expect([root.spent, root.held, root.left]).toEqual([45, 30, 25]);
  second.settle(20);
  expect([root.spent, root.held, root.left]).toEqual([65, 0, 35]);
});
