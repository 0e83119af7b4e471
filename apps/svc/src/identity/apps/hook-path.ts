/** Path to which the code host sends its events. */
export const HOOK_PATH = "/hooks/push";
