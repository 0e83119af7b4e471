/** Modules that worker threads run. A bundler replaces these addresses with those of its own files. */
export const INDEX_THREAD = new URL("index-thread.ts", import.meta.url);
export const JOB_WORKER = new URL("job-worker.ts", import.meta.url);
