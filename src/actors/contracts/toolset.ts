// The type of the tools that the runtime ships: AI SDK tools by their names. What each takes
// is said by its schema; spelled out as a type it would be in the types of another package.

import type { Tool } from 'ai';

/** AI SDK tools, by name. */
export type Toolset<Name extends string> = Readonly<Record<Name, Tool>>;
