// The demo's server: the page, its session, and three more routes, for the description of the models, news about an
// order, and a crash of this process.

import { join } from 'node:path';
import type { Journal, VoiceSession } from 'offstage';
import { serveLocally, type LocalServer, type ServedSession } from 'offstage/serve';
import { z } from 'zod';
import type { World } from './agents/world.ts';
import type { About } from './page/about.ts';

export interface DemoServerOptions {
  readonly session: ServedSession & Pick<VoiceSession, 'notifyBackground'>;
  /** The journal of the session, for the inspector. */
  readonly journal: Journal;
  readonly world: World;
  readonly about: About;
  /** The first port to try. */
  readonly port: number;
  /** The folder that stores the link's token. @defaultValue each start has a new link */
  readonly folder?: string | undefined;
  /** Kills the process when a page requests it. @defaultValue a page cannot kill it */
  readonly crash?: (() => void) | undefined;
  readonly log: (line: string) => void;
}

const orderSchema = z.strictObject({
  orderId: z.string().trim().min(1).max(40),
  status: z.string().trim().min(1).max(200),
  urgent: z.boolean().default(false),
});

/** The modules that the page imports by name. Preact replaces React, because it needs no build. */
const modules = {
  'offstage/react': 'offstage/react',
  react: 'preact/compat',
  preact: 'preact',
  'preact/hooks': 'preact/hooks',
  htm: 'htm',
  'htm/preact': 'htm/preact',
};

export function startDemoServer(options: DemoServerOptions): Promise<LocalServer> {
  const { session, journal, world, about, port, folder, crash, log } = options;
  return serveLocally({
    session,
    page: { folder: join(import.meta.dirname, 'page'), modules },
    routes: {
      'GET /about': () => ({ ...about, canCrash: crash !== undefined }),
      ...(crash && { 'POST /crash': crash }),
      'POST /order'(body) {
        const order = orderSchema.safeParse(body);
        if (!order.success)
          return Response.json({ error: z.prettifyError(order.error) }, { status: 400 });
        const { orderId, item, status } = world.updateOrder(order.data.orderId, order.data.status);
        session.notifyBackground(`Order ${orderId}, ${item}, is ${status}.`, {
          priority: order.data.urgent ? 'urgent' : 'normal',
          label: 'ORDER UPDATE',
        });
        return { orderId, item, status };
      },
    },
    port,
    user: 'you',
    inspector: { journal },
    ...(folder !== undefined && { tokenFile: join(folder, 'token') }),
    share: ['error.reported', 'tool.in_doubt'],
    limits: { clients: 8 },
    onError: (error, where) => log(`${where}: ${String(error)}`),
  });
}
