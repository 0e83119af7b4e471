import { systemDesktop } from "../desktop/desktop.ts";
import type { Host } from "../host.ts";
import { LocalActions } from "../surfaces/peer-actions/local-actions.ts";

/** Builds what peers may do on this host's desktop. All surfaces share it, as it does one action of each kind at a time. */
export function localActions({ environment, logger }: Host): LocalActions {
  return new LocalActions(systemDesktop(environment), logger);
}
