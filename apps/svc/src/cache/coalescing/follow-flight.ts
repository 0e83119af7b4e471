import type { Flight, FlightReader } from "./flight.ts";

/** A place in somebody else's flight once it may be shared; undefined: it may not, or the caller left. */
export async function follow(flight: Flight, gone: AbortSignal): Promise<FlightReader | undefined> {
  const reader = flight.join();
  const left = Promise.withResolvers<boolean>();
  const leave = (): void => {
    reader.leave();
    left.resolve(false);
  };
  gone.addEventListener("abort", leave, { once: true });
  if (gone.aborted) leave();
  if (await Promise.race([flight.shared, left.promise])) return reader;
  reader.leave();
  return undefined;
}
