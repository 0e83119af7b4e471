/** Longest output and longest value of a function, in UTF-16 code units. Ours: no credential file is near it. */
export const MAX_OUTPUT = 4 * 1024 * 1024;
/**
 * Actions, pipelines and iterations of one execution. Ours: a second of work; a range over a large number must not hold
 * a daemon.
 */
export const MAX_STEPS = 1_000_000;
/** So many UTF-16 code units that go into or come out of a function count as a step, and so does each item of a list. */
export const TEXT_PER_STEP = 100;
/** Templates that call each other. Ours; Go allows 100 000, which is more stack than there is here. */
export const MAX_CALL_DEPTH = 200;
/** Parentheses and control structures inside each other, for the same reason. */
export const MAX_NESTING = 200;
/** Widths and precisions of printf, as in Go's fmt (`tooLarge`). */
export const MAX_PRINTF_NUMBER = 1_000_000;
