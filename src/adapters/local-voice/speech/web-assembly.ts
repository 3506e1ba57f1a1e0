// The used part of the global `WebAssembly`. TypeScript describes it only together with the browser's
// globals, which the rest of the code must not see.

declare const compiled: unique symbol;

export interface WasmModule {
  readonly [compiled]: true;
}

export interface WasmMemory {
  /** A different buffer after the memory has grown. */
  readonly buffer: ArrayBuffer;
}

interface WebAssemblyApi {
  compile(bytes: Uint8Array): Promise<WasmModule>;
  instantiate(
    module: WasmModule,
    imports: Readonly<Record<string, object>>,
  ): Promise<{ readonly exports: Readonly<Record<string, unknown>> }>;
}

export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly;
