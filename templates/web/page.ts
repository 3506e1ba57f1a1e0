// The page: the chat. Anyone who has the link can use it.

import { connect } from 'offstage/client';
import { show } from './chat.ts';

// The link that the terminal shows contains the token.
show(connect({ url: '/offstage', token: location.hash.slice(1) }));
