/** Maximum output, and maximum result of a function, in UTF-16 code units. Credential files are much smaller. Not from Go. */
export const MAX_OUTPUT = 4 * 1024 * 1024;
/**
 * Maximum actions, pipelines and iterations of one execution, about a second of work, so that a range over a large number
 * does not block a daemon. Not from Go.
 */
export const MAX_STEPS = 1_000_000;
/** UTF-16 code units of a function's arguments and result that count as one step. Each item of a list also counts as one. */
export const TEXT_PER_STEP = 100;
/** Maximum depth of templates that call each other. Go allows 100 000, which needs more stack than Node has. */
export const MAX_CALL_DEPTH = 200;
/** Maximum depth of nested parentheses and control structures, for the same reason. */
export const MAX_NESTING = 200;
/** Maximum width and precision of printf, as in Go's fmt (`tooLarge`). */
export const MAX_PRINTF_NUMBER = 1_000_000;
