/** Ending of a damaged file, which is kept until it is evicted. */
export const CORRUPT_SUFFIX = ".corrupt~";
/** Ending of a file with the checksums of a response. See separate-trailer.ts. */
export const SEPARATE_TRAILER_SUFFIX = ".sums";
