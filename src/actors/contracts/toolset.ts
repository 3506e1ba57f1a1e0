// The type of the tools that the runtime ships: AI SDK tools by name. Their schemas describe the inputs; as a
// type they would expose the types of another package.

import type { Tool } from 'ai';

/** AI SDK tools, by name. */
export type Toolset<Name extends string> = Readonly<Record<Name, Tool>>;
