/** Files that threads start with. A bundler replaces these addresses by those of its own files. */
export const INDEX_THREAD = new URL("index-thread.ts", import.meta.url);
export const CHECK_WORKER = new URL("check-worker.ts", import.meta.url);
