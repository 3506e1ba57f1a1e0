/** Bundles a Worker from `../worker`. */
export function bundle(worker: string, outfile: string): Promise<void>;
/** Runs a bundle in workerd, with its objects in this folder. */
export function start(
  worker: string,
  folder: string,
  env: Readonly<Record<string, string>>,
  port?: number,
): Promise<{ readonly url: string; evict(name: string): Promise<void>; kill(): Promise<void> }>;
