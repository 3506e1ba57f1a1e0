// offstage/memory-file: memory in a file.

export { fileMemory, type FileMemoryOptions } from './file-memory.ts';
