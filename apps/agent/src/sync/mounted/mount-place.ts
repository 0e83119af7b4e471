import { BRAND } from "../../brand.ts";
import type { Config } from "../../config/schema.ts";
import { expandHome } from "../../config/sections/rule.ts";

/** The filesystem mount, as configured. */
export interface MountPlace {
  /** Absolute. Undefined: there is no mount. */
  readonly mountpoint: string | undefined;
  /** The remedy where there is none. */
  readonly remedy: string;
  readonly layout: "json" | "both";
}

export function mountPlaceOf({ fuse }: Pick<Config, "fuse">, home: string): MountPlace {
  const isLinux = process.platform === "linux";
  return {
    mountpoint: isLinux && fuse.enabled ? expandHome(fuse.mountpoint, home) : undefined,
    remedy: isLinux
      ? `set fuse.enabled: true, and run '${BRAND.command} reload'`
      : "the filesystem mount works only on Linux",
    layout: fuse.layout,
  };
}
