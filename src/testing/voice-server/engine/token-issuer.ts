// Ephemeral tokens. The holder of a key issues them for a browser, each with the session that it is valid for.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { VoiceWire } from './control.ts';

interface Token {
  readonly wire: VoiceWire;
  readonly preset: unknown;
  /** The latest time at which a session may be opened with the token, in milliseconds since 1970. */
  readonly opensUntil: number;
  /** The number of remaining uses, or null for no limit. */
  usesLeft: number | null;
}

/** The result of redeeming a token. */
export interface RedeemedToken {
  readonly wire: VoiceWire;
  readonly preset: unknown;
  /** Why the token is invalid, or null if it is valid. */
  readonly problem: string | null;
}

export type TokenIssuer = ReturnType<typeof tokenIssuer>;

export function tokenIssuer(environment: Environment) {
  const tokens = new Map<string, Token>();

  return {
    /** @returns the token; if `uses` is null, there is no limit */
    mint(token: {
      readonly wire: VoiceWire;
      readonly preset: unknown;
      readonly opensUntil: number;
      readonly uses: number | null;
    }): string {
      const id = environment.ids.next('token');
      const name = token.wire === 'gemini-live' ? `auth_tokens/${id}` : `ek_${id}`;
      const { wire, preset, opensUntil, uses } = token;
      tokens.set(name, { wire, preset, opensUntil, usesLeft: uses });
      return name;
    },
    /** Uses a token once. Returns null if the token is unknown. */
    redeem(name: string): RedeemedToken | null {
      const token = tokens.get(name);
      if (token === undefined) return null;
      const { wire, preset } = token;
      if (environment.clock.now() >= token.opensUntil) {
        return { wire, preset, problem: 'Token has expired.' };
      }
      if (token.usesLeft === 0) {
        return { wire, preset, problem: 'Token has been used too many times.' };
      }
      if (token.usesLeft !== null) token.usesLeft -= 1;
      return { wire, preset, problem: null };
    },
  };
}
