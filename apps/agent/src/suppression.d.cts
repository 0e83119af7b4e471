interface Suppression {
  /** `AGENT_SUPPRESS_HOURS` as a number of hours; undefined if it is no whole number above zero. */
  readonly suppressHours: (environment: NodeJS.ProcessEnv) => number | undefined;
  readonly markerPath: (environment: NodeJS.ProcessEnv) => string;
  /** @param now milliseconds since the epoch @throws the system's error if the marker cannot be looked at */
  readonly isSuppressed: (marker: string, hours: number, now: number) => boolean;
  /** Same as `BRAND.folder`. */
  readonly FOLDER: string;
}

declare const suppression: Suppression;
export = suppression;
