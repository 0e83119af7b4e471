import { FLEET, type Load, type Scenario } from "./scenario.ts";

/** Repositories of the test stand, all copies of one, and how popular they are. */
export const STAND_REPOSITORIES = 6;
export const STAND_ZIPF = 1;
/** Shares of the kinds of jobs on the test stand. */
export const STAND_MIX = { full: 0.1, shallow: 0.5, blobless: 0.1, behind: 0.3 } as const;

/**
 * The test stand: all instances and all other programs share the cores of one machine, without a network between them.
 *
 * @param bytes of a full clone of its repositories
 */
export function standScenario(
  instances: number,
  load: Load,
  { cores, seconds, bytes }: { readonly cores: number; readonly seconds: number; readonly bytes: number },
): Scenario {
  return {
    ...FLEET,
    seconds,
    warmUp: STAND_WARM_UP_SECONDS,
    instances,
    oneMachine: true,
    load,
    mix: STAND_MIX,
    machine: { cores, memory: 16e9, disk: 500e9, diskRate: Infinity, network: Infinity },
    repositories: {
      count: STAND_REPOSITORIES,
      zipf: STAND_ZIPF,
      medianBytes: bytes,
      sigma: 0,
      maxBytes: bytes,
    },
    client: { rate: Infinity, roundTrip: 0, credentials: 1, ownTokens: false },
    codeHost: { ...FLEET.codeHost, roundTrip: 0, readSeconds: 0, fetchSeconds: 0, rate: Infinity },
    bucket: { roundTrip: 0, rate: Infinity },
    database: { ...FLEET.database, roundTrip: 0 },
  };
}

/** Jobs before those that count, so that responses are stored, on the stand and in the model. */
export const STAND_WARM_UP_SECONDS = 20;
