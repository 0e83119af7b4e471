/** Name of a pack: `pack-<checksum>`. */
export const PACK_NAME = /^pack-(?:[0-9a-f]{40}|[0-9a-f]{64})$/u;
