// The page: the chat of this browser. `esbuild` builds `web/page.js` from this file, and Cloudflare serves it.

import { connect } from 'offstage/client';
import { show } from '../web/chat.ts';

const chat = localStorage.getItem('chat') ?? crypto.randomUUID();
localStorage.setItem('chat', chat);
// If a model answers, the link ends with the token that cloudflare.ts checks: https://…workers.dev/#token
show(connect({ url: '/offstage', session: chat, token: location.hash.slice(1) }));
