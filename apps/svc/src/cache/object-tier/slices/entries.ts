/** Module that a digest thread runs. A bundler replaces this address with that of its own file. */
export const DIGEST_WORKER = new URL("digest-worker.ts", import.meta.url);
