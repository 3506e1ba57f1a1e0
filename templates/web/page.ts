// The page: the chat of whoever has the link.

import { connect } from 'offstage/client';
import { show } from './chat.ts';

// The link that the terminal shows has the token.
show(connect({ url: '/offstage', token: location.hash.slice(1) }));
