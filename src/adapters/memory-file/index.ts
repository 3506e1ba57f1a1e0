// The entry `offstage/memory-file`: memory in a file.

export { fileMemory } from './file-memory.ts';
