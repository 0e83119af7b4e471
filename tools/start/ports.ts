import { createServer } from "node:net";

/** Whether nobody listens on the port on either loopback address. */
async function isFree(port: number): Promise<boolean> {
  for (const host of ["127.0.0.1", "::1"]) {
    const failure = await new Promise<unknown>((done) => {
      const probe = createServer();
      probe.once("error", done);
      probe.listen({ port, host }, () => probe.close(() => done(undefined)));
    });
    // A machine without IPv6 gives EADDRNOTAVAIL, which does not mean that another server listens.
    if (failure instanceof Error && "code" in failure && failure.code === "EADDRINUSE") return false;
  }
  return true;
}

/** The first free port from `wanted` upwards, at most 50 tries. */
export async function freePortFrom(wanted: number): Promise<number> {
  for (let port = wanted; port < wanted + 50; port++) if (await isFree(port)) return port;
  throw new Error(`No free port between ${wanted} and ${wanted + 49}: stop what listens there`);
}
