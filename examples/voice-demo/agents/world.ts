// The small world that the demo's tools act on: rides, tables, sales and orders. Everything is in memory and lasts as
// long as the program. Nothing is random, so the same request returns the same offer.

import { dayAfter, daysBetween } from './date-range.ts';

export interface Offer {
  readonly id: string;
  readonly name: string;
}

export interface RideOption extends Offer {
  readonly priceUsd: number;
  readonly etaMinutes: number;
}

export interface RideQuote {
  readonly destination: string;
  readonly distanceKm: number;
  readonly options: readonly RideOption[];
}

export interface RideBooking {
  readonly reference: string;
  readonly destination: string;
  readonly option: RideOption;
  readonly driver: string;
  readonly car: string;
}

export interface TableOption extends Offer {
  readonly time: string;
  readonly setting: string;
}

export interface TableBooking {
  readonly reference: string;
  readonly partySize: number;
  readonly option: TableOption;
}

export interface SalesFigures {
  readonly from: string;
  readonly to: string;
  readonly days: number;
  readonly orders: number;
  readonly revenueUsd: number;
  readonly bestDay: { readonly date: string; readonly revenueUsd: number };
  readonly byProduct: readonly { readonly product: string; readonly revenueUsd: number }[];
}

export interface Order {
  readonly orderId: string;
  readonly item: string;
  readonly status: string;
  /** 0 if the paid amount is not known. */
  readonly paidUsd: number;
}

/**
 * The data that the tools look up and change. Methods throw an `Error` whose message a user can understand.
 */
export interface World {
  quoteRide(destination: string): RideQuote;
  bookRide(destination: string, optionId: string): RideBooking;
  findTables(partySize: number): readonly TableOption[];
  bookTable(partySize: number, optionId: string): TableBooking;
  /** The sales for the days from `from` to `to` (`YYYY-MM-DD`), both included. */
  sales(from: string, to: string): SalesFigures;
  /** The order with this number, or the latest order if no number is given. */
  order(orderId?: string): Order | null;
  /** Updates an order, or adds it if it is new. */
  updateOrder(orderId: string, status: string): Order;
  /** Refunds an order. */
  refund(orderId: string, dollars: number): Order & { readonly dollars: number };
}

const distancesKm: Readonly<Record<string, number>> = {
  airport: 18,
  station: 4,
  'train station': 4,
  museum: 6,
  harbour: 9,
  hotel: 5,
  stadium: 11,
  office: 7,
  home: 8,
};

/** The places with a fixed distance. */
export const knownPlaces: readonly string[] = Object.keys(distancesKm);

const drivers = [
  { driver: 'Anna', car: 'a blue Toyota' },
  { driver: 'Marco', car: 'a white Skoda' },
  { driver: 'Lena', car: 'a grey Volvo' },
  { driver: 'Samir', car: 'a green Kia' },
] as const;

const products = [
  { product: 'Lamps', share: 0.38 },
  { product: 'Chairs', share: 0.29 },
  { product: 'Desks', share: 0.21 },
  { product: 'Rugs', share: 0.12 },
] as const;

const MAX_PARTY = 8;
const REFUNDED = 'refunded';

export function createWorld(): World {
  const orders = new Map<string, Order>([
    ['1041', { orderId: '1041', item: 'a floor lamp', status: 'delivered', paidUsd: 85 }],
    ['1042', { orderId: '1042', item: 'an oak desk', status: 'being packed', paidUsd: 640 }],
  ]);
  let booked = 0;
  const orderOf = (orderId?: string): Order | null =>
    (orderId === undefined ? [...orders.values()].at(-1) : orders.get(normalId(orderId))) ?? null;
  const nextReference = (letter: string): string => `${letter}${101 + booked++}`;

  const quoteRide = (destination: string): RideQuote => {
    const place = destination.trim();
    if (place === '') throw new Error('The destination is missing.');
    const distanceKm = distanceTo(place);
    const economy = Math.round(3 + distanceKm / 2);
    return {
      destination: place,
      distanceKm,
      options: [
        { id: 'economy', name: 'Economy', priceUsd: economy, etaMinutes: 5 },
        { id: 'premium', name: 'Premium', priceUsd: economy * 2, etaMinutes: 3 },
      ],
    };
  };

  const findTables = (partySize: number): readonly TableOption[] => {
    if (!Number.isInteger(partySize) || partySize < 1)
      throw new Error(`A table needs at least one guest, not ${partySize}.`);
    if (partySize > MAX_PARTY)
      throw new Error(`The largest table seats ${MAX_PARTY}, and you are ${partySize}.`);
    return [
      { id: 'italian', name: 'Italian', time: '7 PM', setting: 'by the window' },
      {
        id: 'french',
        name: 'French',
        time: '8:30 PM',
        setting: partySize > 4 ? 'on the terrace' : 'in the garden',
      },
    ];
  };

  return {
    quoteRide,
    bookRide(destination, optionId) {
      const { options } = quoteRide(destination);
      const option = pick(options, optionId);
      const { driver, car } = drivers[booked % drivers.length] ?? drivers[0];
      return { reference: nextReference('R'), destination, option, driver, car };
    },
    findTables,
    bookTable(partySize, optionId) {
      const option = pick(findTables(partySize), optionId);
      return { reference: nextReference('T'), partySize, option };
    },
    sales(from, to) {
      const days = daysBetween(from, to);
      if (!(days >= 1)) throw new Error(`There are no days from ${from} to ${to}.`);
      let orderCount = 0;
      let revenueUsd = 0;
      let bestDay = { date: from, revenueUsd: -1 };
      for (let offset = 0; offset < days; offset++) {
        const date = dayAfter(from, offset);
        const day = salesOf(date);
        orderCount += day.orders;
        revenueUsd += day.revenueUsd;
        if (day.revenueUsd > bestDay.revenueUsd) bestDay = { date, revenueUsd: day.revenueUsd };
      }
      const byProduct = products.map(({ product, share }) => ({
        product,
        revenueUsd: Math.round(revenueUsd * share),
      }));
      return { from, to, days, orders: orderCount, revenueUsd, bestDay, byProduct };
    },
    order: orderOf,
    updateOrder(orderId, status) {
      const id = normalId(orderId);
      const { item = 'your order', paidUsd = 0 } = orders.get(id) ?? {};
      const order = { orderId: id, item, status, paidUsd };
      // The order that changed last counts as the latest one.
      orders.delete(id);
      orders.set(id, order);
      return order;
    },
    refund(orderId, dollars) {
      const order = orderOf(orderId);
      if (!order) throw new Error(`There is no order with the number ${orderId}.`);
      if (order.status === REFUNDED) throw new Error(`Order ${orderId} was refunded before.`);
      if (dollars > order.paidUsd) throw new Error(`Only $${order.paidUsd} were paid for it.`);
      const refunded = { ...order, status: REFUNDED };
      orders.set(order.orderId, refunded);
      return { ...refunded, dollars };
    },
  };
}

function pick<O extends Offer>(options: readonly O[], id: string): O {
  const wanted = id.trim().toLowerCase();
  const option = options.find(
    (each) => each.id === wanted || each.name.toLowerCase() === wanted.replaceAll('_', ' '),
  );
  if (option) return option;
  const known = options.map((each) => each.id).join(', ');
  throw new Error(`There is no option "${id}"; there are ${known}.`);
}

function distanceTo(destination: string): number {
  const place = destination.toLowerCase().replace(/^(?:the|my|our) /, '');
  // The distance to an unknown place is computed from its name, so it is always the same.
  return distancesKm[place] ?? 3 + (hash(place) % 18);
}

/** The sales on a day: higher on weekdays, slowly rising over the years, with some variation. */
function salesOf(date: string): { readonly orders: number; readonly revenueUsd: number } {
  const time = new Date(date);
  const weekend = time.getUTCDay() % 6 === 0;
  const years = (time.getTime() - Date.UTC(2024, 0, 1)) / (365 * 86_400_000);
  const weather = (hash(date) % 41) - 20;
  const orders = Math.max(1, Math.round((weekend ? 34 : 58) * (1 + years * 0.08) + weather / 2));
  return { orders, revenueUsd: orders * (74 + (hash(`${date}:basket`) % 23)) };
}

/** The FNV-1a hash. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const char of text) value = Math.imul(value ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return value >>> 0;
}

function normalId(orderId: string): string {
  return orderId.replace(/[^a-z0-9]/gi, '').replace(/^[a-z]+(?=\d)/i, '') || orderId.trim();
}
