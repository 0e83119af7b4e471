/**
 * Waits until the start that started it ends, however that happens, and ends all that is left of it. Its standard input is a
 * pipe from that process. Arguments: data folder and process id of the start.
 */
import { cleanUpAfter } from "./start-record.ts";

const [data, owner] = process.argv.slice(2);
// Ctrl-C and the end of the terminal concern the start, which ends its processes itself.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
for await (const _ of process.stdin);
await cleanUpAfter(data ?? "", Number(owner));
