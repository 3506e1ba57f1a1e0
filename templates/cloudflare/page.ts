// The page: the chat of this browser. The program `esbuild` makes `web/page.js` of it, which Cloudflare serves.

import { connect } from 'offstage/client';
import { show } from '../web/chat.ts';

const chat = localStorage.getItem('chat') ?? crypto.randomUUID();
localStorage.setItem('chat', chat);
// Where a model answers, the link has the token of cloudflare.ts: https://…workers.dev/#token
show(connect({ url: '/offstage', session: chat, token: location.hash.slice(1) }));
