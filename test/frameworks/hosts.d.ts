import type { Server } from 'node:http';
import type { OffstageServer } from '../../src/serve/index.ts';

export const hosts: Readonly<Record<string, (web: OffstageServer) => Server | Promise<Server>>>;
