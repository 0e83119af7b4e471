/** Where the code host sends its events. */
export const HOOK_PATH = "/hooks/push";
