/**
 * The folder of files that are handed over must not be used: it is a symbolic link, or another user owns it. Links in it would
 * be elsewhere, and another folder would get the group of `cache.accel_group`. The message names the remedy.
 */
export class HandedFolderRefused extends Error {}
