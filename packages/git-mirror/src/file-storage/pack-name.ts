/** Name of a pack: `pack-<checksum>`. */
export const PACK_NAME = /^pack-(?:[0-9a-f]{40}|[0-9a-f]{64})$/u;

/** Folder in a repository, with a folder for each seed that has the name of its pack. */
export const SEEDS_FOLDER = "seeds";
